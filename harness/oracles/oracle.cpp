#include "harness/oracles/oracle.h"

namespace framestorm {

void Violations::add(FindingKind kind, std::string_view clause, std::string detail) {
  add(kind, clause, std::move(detail), FaultRecord{});
}

void Violations::add(FindingKind kind, std::string_view clause, std::string detail,
                     const FaultRecord& fault) {
  findings_.push_back({kind, std::string(clause), std::move(detail), fault, {}});
}

std::vector<std::unique_ptr<Oracle>> make_oracles() {
  std::vector<std::unique_ptr<Oracle>> oracles;
  oracles.push_back(make_fault_oracle());
  oracles.push_back(make_sanitizer_oracle());
  oracles.push_back(make_memory_oracle());
  oracles.push_back(make_signal_safety_oracle());
  oracles.push_back(make_contract_oracle());
  oracles.push_back(make_kinds_oracle());
  oracles.push_back(make_calls_oracle());
  oracles.push_back(make_prefix_oracle());
  oracles.push_back(make_determinism_oracle());
  oracles.push_back(make_options_oracle());
  oracles.push_back(make_truth_oracle());
  oracles.push_back(make_agreement_oracle());
  return oracles;
}

}  // namespace framestorm
