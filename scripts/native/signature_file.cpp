#include "scripts/native/signature_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/jvm/error.h"

namespace framestorm {

SignatureFile::SignatureFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw SetupError("cannot read signature " + path.string());
  try {
    const auto json = nlohmann::json::parse(file);
    kind_ = json.at("kind");
    clause_ = json.value("clause", "");
    const Modules modules = Modules::snapshot();
    for (const auto& frame : json.at("frames")) {
      const std::string name = frame.at(0);
      const Module* module = modules.by_name(name);
      if (module == nullptr) throw SetupError("signature names " + name + ", which is not loaded");
      frames_.push_back({module->base + frame.at(1).get<uintptr_t>(),
                         module->base + frame.at(2).get<uintptr_t>()});
    }
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(path.string() + " is no signature: " + error.what());
  }
}

bool SignatureFile::matches(const Finding& finding) const {
  if (name_of(finding.kind) != kind_ || finding.clause != clause_) return false;
  size_t next = 0;
  for (uint32_t i = 0; i < finding.fault.stack_size && next < frames_.size(); ++i) {
    const uintptr_t address = finding.fault.stack[i] - (i == 0 ? 0 : 1);
    if (address >= frames_[next].begin && address < frames_[next].end) ++next;
  }
  return next == frames_.size();
}

}  // namespace framestorm
