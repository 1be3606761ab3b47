#include "fuzz/libfuzzer_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace framestorm {
namespace {

// What libFuzzer would choose otherwise, where the command line does not say.
constexpr const char* kDefaults[] = {
    "-max_len=4096",    // kMaxEncodedInput
    "-len_control=0",   // inputs are short from the start
    "-mutate_depth=5",  // each mutation is one of the structure
};
// HotSpot and the guard own the signals. A walk has limits of its own (-timeout sets how long one
// may be blocked): libFuzzer's alarm asks which thread it is on, and the loop changes threads.
constexpr const char* kForced[] = {"-handle_segv=0", "-handle_bus=0",  "-handle_ill=0",
                                   "-handle_fpe=0",  "-handle_int=0",  "-handle_term=0",
                                   "-handle_xfsz=0", "-handle_usr1=0", "-handle_usr2=0",
                                   "-timeout=0",     "-detect_leaks=0"};
constexpr std::string_view kIgnoreTheRest = "-ignore_remaining_args=1";

std::string name_of_flag(std::string_view argument) {
  return std::string(argument.substr(1, argument.find('=') - 1));
}

}  // namespace

LibFuzzerArguments::LibFuzzerArguments(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)) {
  for (size_t i = 1; i < arguments_.size(); ++i) {
    const std::string& argument = arguments_[i];
    if (argument == kIgnoreTheRest) break;
    if (argument.starts_with("--")) continue;  // libFuzzer ignores them
    if (!argument.starts_with("-")) {
      paths_.push_back(argument);
    } else if (const size_t equals = argument.find('='); equals != std::string::npos) {
      flags_.push_back({name_of_flag(argument), argument.substr(equals + 1)});
    }
  }
}

const std::string* LibFuzzerArguments::find(std::string_view flag) const {
  const auto last = std::ranges::find(flags_.rbegin(), flags_.rend(), flag, &Flag::name);
  return last == flags_.rend() ? nullptr : &last->value;
}

bool LibFuzzerArguments::is_set(std::string_view flag) const {
  const std::string* value = find(flag);
  return value != nullptr && *value != "0";
}

long LibFuzzerArguments::number(std::string_view flag, long otherwise) const {
  const std::string* value = find(flag);
  return value == nullptr ? otherwise : std::strtol(value->c_str(), nullptr, 10);
}

bool LibFuzzerArguments::only_starts_others() const {
  if (is_set("help") || is_set("fork") || is_set("jobs") || is_set("cleanse_crash")) return true;
  if (is_set("merge") || is_set("set_cover_merge")) return !merges();
  return is_set("minimize_crash") && !is_set("minimize_crash_internal_step");
}

bool LibFuzzerArguments::executes_files() const {
  return !paths_.empty() && !merges() && !is_set("minimize_crash_internal_step") &&
         std::ranges::all_of(paths_, [](const std::string& path) {
           std::error_code error;
           return std::filesystem::is_regular_file(path, error);
         });
}

std::string LibFuzzerArguments::minimized_file() const {
  return is_set("minimize_crash_internal_step") && !paths_.empty() ? paths_.front() : "";
}

std::string LibFuzzerArguments::artifact_path(std::string_view name) const {
  if (const std::string* exact = find("exact_artifact_path"); exact != nullptr && !exact->empty()) {
    return *exact;
  }
  const std::string* prefix = find("artifact_prefix");
  return (prefix == nullptr ? std::string() : *prefix) + std::string(name);
}

std::vector<std::string> LibFuzzerArguments::completed() const {
  std::vector<std::string> result = {arguments_.front()};
  for (const char* argument : kDefaults) {
    if (find(name_of_flag(argument)) == nullptr) result.emplace_back(argument);
  }
  const auto rest = std::find(arguments_.begin() + 1, arguments_.end(), kIgnoreTheRest);
  result.insert(result.end(), arguments_.begin() + 1, rest);
  result.insert(result.end(), std::begin(kForced), std::end(kForced));
  result.insert(result.end(), rest, arguments_.end());
  return result;
}

}  // namespace framestorm
