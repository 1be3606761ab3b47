#include "scripts/native/sample_view.h"

#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>

namespace framestorm {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* key) {
  return object.value(key, std::string());
}

void show_head(const json& sample, std::ostream& out) {
  out << "sample " << sample.at("number") << ", " << text_of(sample, "mode") << " "
      << text_of(sample, "walker") << ", depth " << sample.at("depth") << ": ";
  const int result = sample.at("result");
  if (text_of(sample, "end") != "returned") {
    out << text_of(sample, "end");
  } else if (result >= 0) {
    out << result << " frames";
  } else {
    out << "error " << result;
  }
  out << ", " << sample.at("walk_ns") << " ns\n";
  if (!sample.contains("finding")) return;
  const json& finding = sample["finding"];
  if (!text_of(sample, "what").empty()) out << text_of(sample, "what") << "\n";
  out << "finding: " << text_of(finding, "kind");
  if (!text_of(finding, "clause").empty()) out << ", " << text_of(finding, "clause");
  out << ": " << text_of(finding, "detail") << "\n";
  for (const json& frame : finding.value("stack", json::array())) {
    out << "  walker at " << frame.get<std::string>() << "\n";
  }
}

void show_thread(const json& thread, std::ostream& out) {
  out << "thread " << thread.at("tid") << " " << text_of(thread, "state") << ", JavaThread "
      << text_of(thread, "java_thread") << ", stack " << text_of(thread, "stack_end") << " to "
      << text_of(thread, "stack_base") << "\n  last Java sp " << text_of(thread, "last_java_sp")
      << ", fp " << text_of(thread, "last_java_fp") << ", pc " << text_of(thread, "last_java_pc")
      << "  " << text_of(thread, "last_java_pc_is") << "\n";
}

void show_words(const json& stack, std::ostream& out) {
  const size_t bytes = text_of(stack, "bytes").size() / 2;
  out << "stack: " << bytes << " bytes from " << text_of(stack, "begin")
      << "; words that refer to something:\n";
  for (const json& word : stack.at("words")) {
    out << "  sp + " << std::left << std::setw(7) << word.at("at").get<size_t>() << std::setw(20)
        << text_of(word, "value") << text_of(word, "is") << "\n";
  }
}

// What `step` knows: the stack as control flow has built it, and the way there.
void show_step(const json& step, std::ostream& out) {
  out << "at " << text_of(step, "position") << "; true are:\n";
  for (const json& frame : step.at("truth")) out << "  " << frame.get<std::string>() << "\n";
  out << "it was led there by, the last one first:\n";
  for (const json& one : step.at("path")) out << "  " << one.get<std::string>() << "\n";
}

void show(const json& sample, std::ostream& out) {
  show_head(sample, out);
  show_thread(sample.at("thread"), out);
  out << "registers:\n";
  for (const auto& [name, value] : sample.at("registers").items()) {
    out << "  " << std::left << std::setw(7) << name << std::setw(20) << text_of(value, "value")
        << text_of(value, "is") << "\n";
  }
  out << "trace:\n";
  size_t index = 0;
  for (const json& frame : sample.at("trace")) {
    out << "  #" << std::left << std::setw(4) << index++ << text_of(frame, "method") << " @ "
        << frame.at("bci");
    if (frame.contains("tier")) out << " tier " << frame["tier"];
    if (frame.contains("pc")) out << "  " << text_of(frame, "pc");
    if (frame.contains("jmethodID")) out << "  jmethodID " << text_of(frame, "jmethodID");
    out << "\n";
  }
  if (sample.contains("step")) show_step(sample["step"], out);
  show_words(sample.at("stack"), out);
}

}  // namespace

int show_sample(const std::filesystem::path& file, std::ostream& out, std::ostream& errors) {
  std::ifstream in(file);
  if (!in) {
    errors << file.string() << " cannot be read\n";
    return 2;
  }
  try {
    const json sample = json::parse(in);
    if (sample.value("framestorm-sample", 0) != 1) {
      errors << file.string() << " is no sample of this version of framestorm\n";
      return 2;
    }
    show(sample, out);
  } catch (const json::exception& error) {
    errors << file.string() << " is no sample: " << error.what() << "\n";
    return 2;
  }
  return 0;
}

}  // namespace framestorm
