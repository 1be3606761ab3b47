#include "stress/agent/code_place.h"

namespace framestorm::stress {

std::string code_of(const CodeMap& code, uintptr_t pc, std::string* kind) {
  const CodeEntry* const entry = code.find(pc);
  *kind = "native or VM";
  if (entry == nullptr) return *kind;
  switch (entry->kind) {
    case CodeKind::nmethod:
      *kind = entry->tier == 4 ? "c2" : entry->tier == 0 ? "native wrapper" : "c1";
      return *kind;
    case CodeKind::codelet:
      *kind = "interpreter";
      return *kind;
    case CodeKind::stub:
      *kind = "stub";
      return "stub " + entry->name;
    default:
      return entry->name;
  }
}

std::string position_of(const CodeMap& code, uintptr_t pc, std::string* kind) {
  std::string name = code_of(code, pc, kind);
  const auto place = code.describe(pc);
  if (!place || *kind == "stub" || place->ref.kind == CodeKind::nmethod) return name;
  return *kind + " " + place->ref.name;
}

bool may_lack_innermost(const CodeMap& code, uintptr_t pc, int32_t method,
                        const std::function<int32_t(jmethodID)>& number_of) {
  const CodeEntry* const entry = code.find(pc);
  if (entry == nullptr) return false;
  if (entry->kind == CodeKind::stub) return true;
  if (entry->kind != CodeKind::nmethod) return false;
  return entry->debug == nullptr || number_of(entry->debug->method()) != method;
}

}  // namespace framestorm::stress
