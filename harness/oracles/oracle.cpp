#include "harness/oracles/oracle.h"

#include <algorithm>
#include <tuple>

namespace framestorm {
namespace {

// Set before any constructor runs.
constinit const OracleRegistration* last_registered = nullptr;

}  // namespace

std::string_view name_of(Need need) {
  constexpr std::string_view kNames[] = {"a halted world",
                                         "further walks",
                                         "a scenario's known frames",
                                         "the records of a walk",
                                         "guarded frames",
                                         "the unsafe-call interposer",
                                         "a trace",
                                         "the code as it was at the walk"};
  return name_in(kNames, need);
}

void Violations::add(FindingKind kind, std::string_view clause, std::string detail,
                     const FaultRecord& fault) {
  findings_.push_back({kind, std::string(clause), std::move(detail), fault, {}, {}});
}

OracleRegistration::OracleRegistration(const OracleDeclaration& declared, Make maker) noexcept
    : declaration(declared), make(maker), next_(last_registered) {
  last_registered = this;
}

std::vector<const OracleRegistration*> OracleRegistration::all() {
  std::vector<const OracleRegistration*> all;
  for (const OracleRegistration* each = last_registered; each != nullptr; each = each->next_) {
    all.push_back(each);
  }
  std::ranges::sort(all, {}, [](const OracleRegistration* each) {
    return std::tuple(each->declaration.order, each->declaration.name);
  });
  return all;
}

}  // namespace framestorm
