// Switches on the oracles of added_oracle_fixture.cpp, which say nothing otherwise. In a process of
// its own: FRAMESTORM_ADDED_ORACLES in its environment.
#pragma once

namespace framestorm::jvm_test {

inline constexpr const char* kAddedOracles = "FRAMESTORM_ADDED_ORACLES";
void switch_added_oracles_on();

}  // namespace framestorm::jvm_test
