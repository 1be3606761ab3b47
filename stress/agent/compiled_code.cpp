#include "stress/agent/compiled_code.h"

#include <map>
#include <set>
#include <string>

namespace framestorm::stress {
namespace {

struct Compiled {
  uint8_t tier = 0;
  std::set<std::string> inlined;
};

void add_inlined(const DebugInfo& debug, const MethodTable& methods, std::set<std::string>* names) {
  for (const auto place : debug.places()) {
    if (place.empty()) continue;
    for (const DebugInfo::JavaFrame& frame : place.first(place.size() - 1)) {
      if (const MethodInfo* const info = methods.find(frame.method)) names->insert(info->name);
    }
  }
}

}  // namespace

nlohmann::json compiled_code(const CodeMap& code, const MethodTable& methods) {
  std::map<std::string, Compiled> all;
  for (const CodeEntry& entry : code.entries()) {
    if (entry.kind != CodeKind::nmethod || entry.debug == nullptr) continue;
    Compiled& compiled = all[entry.name];
    if (entry.tier < compiled.tier) continue;
    // Of two versions of one tier, one may be on its way out, or compiled for a loop.
    if (entry.tier > compiled.tier) compiled.inlined.clear();
    compiled.tier = entry.tier;
    add_inlined(*entry.debug, methods, &compiled.inlined);
  }
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, compiled] : all) {
    result[name] = {{"tier", compiled.tier}, {"inlined", compiled.inlined}};
  }
  return result;
}

}  // namespace framestorm::stress
