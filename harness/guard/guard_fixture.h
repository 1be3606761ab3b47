// Shared by the guard's tests: one installed guard per test process, and names for addresses.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/guard/guard.h"

namespace framestorm::guard_test {

// Small, so that hang tests are short; far above what any other test's walk needs.
inline constexpr GuardLimits kTestLimits{.cpu_ns = 100'000'000, .wall_ns = 300'000'000};

using Claim = bool (*)(int signo, siginfo_t* info, void* context);
inline Claim current_claim = nullptr;

inline bool dispatch_claim(int signo, siginfo_t* info, void* context) {
  return current_claim != nullptr && current_claim(signo, info, context);
}

class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  void TearDown() override { current_claim = nullptr; }
};

// Functions that are looked for in stacks are extern "C" and not inlined: dladdr knows them, since
// test executables export their symbols.
inline std::vector<std::string> names_of(std::span<const uintptr_t> stack) {
  std::vector<std::string> names;
  for (const uintptr_t pc : stack) {
    Dl_info info{};
    // Behind a call that is a function's last instruction another function begins.
    const bool known = dladdr(std::bit_cast<void*>(names.empty() ? pc : pc - 1), &info) != 0;
    names.emplace_back(known && info.dli_sname != nullptr ? info.dli_sname : "?");
  }
  return names;
}

inline std::vector<std::string> stack_of(const FaultRecord& fault) {
  return names_of({fault.stack, fault.stack_size});
}

// A function without arguments and results as a walk.
inline void run_plain(void* fn) { reinterpret_cast<void (*)()>(fn)(); }

struct Walk {
  WalkEnd end = WalkEnd::returned;
  FaultRecord fault;
  UnsafeCalls unsafe;
};

inline Walk walk(void (*fn)(void*), void* arg) {
  Walk result;
  result.end = Guard::call(fn, arg, &result.fault, &result.unsafe);
  return result;
}
inline Walk walk(void (*fn)()) { return walk(run_plain, reinterpret_cast<void*>(fn)); }

}  // namespace framestorm::guard_test

#define FRAMESTORM_TEST_FRAME extern "C" [[gnu::noinline, gnu::used, clang::disable_tail_calls]]
