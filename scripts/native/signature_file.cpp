#include "scripts/native/signature_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/base/error.h"
#include "harness/executor/signature.h"

namespace framestorm {

SignatureFile::SignatureFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw SetupError("cannot read signature " + path.string());
  try {
    const auto json = nlohmann::json::parse(file);
    kind_ = json.at("kind");
    clause_ = json.value("clause", "");
    if (json.contains("detail_class")) detail_class_ = json.at("detail_class");
    if (json.contains("walker")) walker_ = json.at("walker");
    const Modules modules = Modules::snapshot();
    for (const auto& frame : json.at("frames")) {
      const std::string name = frame.at(0);
      const Module* module = modules.by_name(name);
      if (module == nullptr) throw SetupError("signature names " + name + ", which is not loaded");
      Frame ranges;
      for (size_t i = 1; i < frame.size(); ++i) {
        ranges.push_back({module->base + frame.at(i).at(0).get<uintptr_t>(),
                          module->base + frame.at(i).at(1).get<uintptr_t>()});
      }
      if (ranges.empty()) throw SetupError("signature names " + name + " without a range");
      frames_.push_back(std::move(ranges));
    }
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(path.string() + " is no signature: " + error.what());
  }
}

bool SignatureFile::matches(const Finding& finding) const {
  if (name_of(finding.kind) != kind_ || finding.clause != clause_) return false;
  if (detail_class_) {
    const std::string did = detail_class(finding);
    // Older ones do not say where it did it: `compiled code: frame * is *`.
    if (did != *detail_class_ && !did.ends_with(": " + *detail_class_)) return false;
  }
  if (walker_ && *walker_ != name_of(finding.input.walker)) return false;
  size_t next = 0;
  for (uint32_t i = 0; i < finding.fault.stack_size && next < frames_.size(); ++i) {
    const uintptr_t address = finding.fault.stack[i] - (i == 0 ? 0 : 1);
    const auto covers = [&](const Range& range) {
      return address >= range.begin && address < range.end;
    };
    if (std::ranges::any_of(frames_[next], covers)) ++next;
  }
  return next == frames_.size();
}

}  // namespace framestorm
