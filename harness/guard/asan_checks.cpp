// What code compiled with -fsanitize=address calls where a check failed. The executable exports
// these, so libjvm and plugins bind to them. In a walk they only record: ASan's own reports take
// milliseconds and a lock that a halted thread may hold, and read and print what is around an
// address that an input made. Outside a walk they pass the call on to ASan.
//
// Source: clang's AddressSanitizer.cpp, InstrumentationNames; ASan's asan_rtl.cpp.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "harness/guard/sanitizer_record.h"

namespace framestorm {
namespace {

// ASan's own function of that name. Not in a walk.
template <typename Function>
Function* own(std::atomic<Function*>* known, const char* name) {
  Function* function = known->load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    if (function == nullptr) std::abort();  // such code does not load without ASan's runtime
    known->store(function, std::memory_order_release);
  }
  return function;
}

}  // namespace
}  // namespace framestorm

// Parameters and arguments come with their parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

// ASan looks at its caller's frame: what is passed on has to be a jump.
#define FRAMESTORM_CHECK(access, suffix, is_write, ends, size, parameters, arguments)             \
  extern "C" [[gnu::visibility("default")]] void __asan_report_##access##suffix parameters {      \
    static constinit std::atomic<void(*) parameters> known{nullptr};                              \
    if (framestorm::record_asan_check(address, size, is_write, ends, __builtin_return_address(0), \
                                      __builtin_frame_address(0))) {                              \
      return;                                                                                     \
    }                                                                                             \
    [[clang::musttail]] return framestorm::own(&known, "__asan_report_" #access #suffix)          \
        arguments;                                                                                \
  }

// As the compiler calls them: with `_noabort` the code goes on.
#define FRAMESTORM_CHECKS(access, is_write, suffix, ends)                                         \
  FRAMESTORM_CHECK(access, 1##suffix, is_write, ends, 1, (uintptr_t address), (address))          \
  FRAMESTORM_CHECK(access, 2##suffix, is_write, ends, 2, (uintptr_t address), (address))          \
  FRAMESTORM_CHECK(access, 4##suffix, is_write, ends, 4, (uintptr_t address), (address))          \
  FRAMESTORM_CHECK(access, 8##suffix, is_write, ends, 8, (uintptr_t address), (address))          \
  FRAMESTORM_CHECK(access, 16##suffix, is_write, ends, 16, (uintptr_t address), (address))        \
  FRAMESTORM_CHECK(access, _n##suffix, is_write, ends, size, (uintptr_t address, uintptr_t size), \
                   (address, size))

// NOLINTEND(bugprone-macro-parentheses)

FRAMESTORM_CHECKS(load, false, _noabort, false)
FRAMESTORM_CHECKS(store, true, _noabort, false)
FRAMESTORM_CHECKS(load, false, , true)
FRAMESTORM_CHECKS(store, true, , true)
