#include "stress/agent/kept_sample.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/executor/run_files.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

using nlohmann::json;

// Addresses of the sampled process, in words.
class Words {
 public:
  Words(const Sample& sample, const Jvm& jvm, const Modules& modules)
      : sample_(sample), code_(jvm.code_map()), modules_(modules) {}

  // Empty for a number that is no address of anything known.
  std::string describe(uintptr_t address) const {
    if (const CodeEntry* const entry = code_.find(address)) {
      std::string text = std::string(name_of(entry->kind)) + " \"" + entry->name + "\"";
      if (entry->tier != 0) text += " tier " + std::to_string(entry->tier);
      return text + " entry + " + hex(address - entry->begin);
    }
    if (address >= sample_.stack_end && address < sample_.stack_base) {
      const auto sp = sample_.sp();
      return address >= sp ? "sp + " + std::to_string(address - sp)
                           : "sp - " + std::to_string(sp - address);
    }
    const auto thread = reinterpret_cast<uintptr_t>(sample_.java_thread);
    if (address >= thread && address < thread + kThreadBytes) {
      return "JavaThread + " + hex(address - thread);
    }
    return modules_.find(address) != nullptr ? modules_.describe(address) : std::string();
  }

  const CodeEntry* code(uintptr_t address) const { return code_.find(address); }

 private:
  static constexpr uintptr_t kThreadBytes = 1024;
  const Sample& sample_;
  const CodeMap& code_;
  const Modules& modules_;
};

}  // namespace

const char* end_name(WalkEnd end) {
  constexpr const char* kNames[] = {"returned", "fault", "hang", "terminal call", "vm error"};
  return kNames[static_cast<size_t>(end)];
}

json describe_trace(const WalkView& view, const Sample& sample, const Modules& modules) {
  const Words words(sample, *view.subject.jvm, modules);
  json trace = json::array();
  for (size_t i = 0; i < view.record.frame_count(); ++i) {
    const Frame frame = view.frame(i);
    json one = {{"method", method_name(frame, *view.subject.methods)}, {"bci", frame.bci}};
    if (frame.method != nullptr && view.method_of(frame) == nullptr) {
      one["jmethodID"] = hex(reinterpret_cast<uintptr_t>(frame.method));
    }
    if (frame.pc != 0) one["pc"] = words.describe(frame.pc);
    if (frame.sp != 0) one["sp"] = hex(frame.sp);
    if (frame.tier != kNoTier) one["tier"] = frame.tier;
    trace.push_back(one);
  }
  return trace;
}

json describe_sample(const Sample& sample, std::span<const std::byte> stack, const json& trace,
                     const Jvm& jvm, const Modules& modules, SamplingMode mode) {
  const Words words(sample, jvm, modules);
  std::map<uintptr_t, const CodeEntry*> referred;
  const auto refer = [&](uintptr_t address) {
    if (const CodeEntry* const entry = words.code(address)) referred[entry->begin] = entry;
  };
  ucontext_t context = {};
  std::copy_n(sample.registers, NGREG, context.uc_mcontext.gregs);
  json registers = json::object();
  for (const Register reg : all_of<Register>()) {
    const uintptr_t value = get_register(context, reg);
    registers[std::string(name_of(reg))] = {{"value", hex(value)}, {"is", words.describe(value)}};
    refer(value);
  }
  json stack_words = json::array();
  for (size_t at = 0; at + sizeof(uintptr_t) <= stack.size(); at += sizeof(uintptr_t)) {
    const auto word = read_at<uintptr_t>(stack.data(), at);
    const std::string is = words.describe(word);
    if (!is.empty()) stack_words.push_back({{"at", at}, {"value", hex(word)}, {"is", is}});
    refer(word);
  }
  refer(sample.last_java_pc);
  json code = json::array();
  for (const auto& [begin, entry] : referred) {
    code.push_back({{"begin", hex(entry->begin)},
                    {"end", hex(entry->end)},
                    {"kind", std::string(name_of(entry->kind))},
                    {"name", entry->name},
                    {"tier", entry->tier}});
  }
  return {{"framestorm-sample", 1},
          {"number", sample.number},
          {"walker", std::string(name_of(sample.walk.walker))},
          {"mode", std::string(name_of(mode))},
          {"depth", sample.walk.depth},
          {"end", end_name(sample.walk.end)},
          {"result", sample.walk.result},
          {"walk_ns", sample.walk.ns},
          {"thread",
           {{"tid", sample.tid},
            {"java_thread", hex(reinterpret_cast<uintptr_t>(sample.java_thread))},
            {"state", thread_state_name(sample.walk.thread_state)},
            {"last_java_sp", hex(sample.last_java_sp)},
            {"last_java_pc", hex(sample.last_java_pc)},
            {"last_java_pc_is", words.describe(sample.last_java_pc)},
            {"last_java_fp", hex(sample.last_java_fp)},
            {"stack_base", hex(sample.stack_base)},
            {"stack_end", hex(sample.stack_end)}}},
          {"registers", registers},
          {"stack",
           {{"begin", hex(sample.sp())},
            {"bytes", hex_bytes(reinterpret_cast<const uint8_t*>(stack.data()), stack.size())},
            {"words", stack_words}}},
          {"code", code},
          {"trace", trace}};
}

}  // namespace framestorm::stress
