// Sanitizer reports made during a walk come back as data, like faults and unsafe calls. All others
// go where the process wants them.
//
//   what finds it                how the guard hears of it           the walk afterwards
//   ──────────────────────────   ─────────────────────────────────   ──────────────────────────────
//   ASan, a check in compiled    the functions that compiled code    goes on if compiled with
//   code                         calls (asan_checks.cpp)             -fsanitize-recover=address,
//                                                                    else ends as a terminal call
//   ASan itself (memcpy, checks  __asan_on_error and the report      goes on; where ASan would end
//   of large functions)          callback                            the process, it ends and holds
//                                                                    ASan's locks
//   UBSan, a check in compiled   the additions' own handlers         goes on
//   code                         (framestorm_ubsan.cpp) call a hook
//
// The additions have handlers of their own because clang's runtime reports a place only once per
// process. Sources: compiler-rt's asan_interface.h and common_interface_defs.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace framestorm {

inline constexpr size_t kMaxSanitizerReports = 4;
inline constexpr size_t kSanitizerStack = 24;

struct SanitizerReport {
  char check[64] = {};  // "heap-buffer-overflow", "shift-out-of-bounds"
  // UBSan: "frame.cpp:207:5". ASan's own reports: what the address is near, "8 bytes after 456-byte
  // region"; see describe_address() for the others.
  char place[128] = {};
  uintptr_t pc = 0;
  uintptr_t address = 0;  // ASan: what was accessed
  size_t access_size = 0;
  bool is_write = false;
  uint32_t stack_size = 0;
  uintptr_t stack[kSanitizerStack] = {};  // as FaultRecord::stack
};

struct SanitizerReports {
  uint32_t count = 0;  // all of them; the first kMaxSanitizerReports are in `reports`
  SanitizerReport reports[kMaxSanitizerReports];
};

namespace sanitizer {

// The name of the terminal call when ASan ends the process.
inline constexpr const char* kTerminalCall = "AddressSanitizer";

// What is written behind the report with which ASan ends the process outside a walk.
inline constexpr std::string_view kEndsProcess = "framestorm: AddressSanitizer ends the process\n";

// Whether this process runs with ASan's runtime.
bool has_asan();

// Makes reports reach the guard; before the first walk. `elsewhere_fd` gets the text of those made
// outside a walk, -1 for standard error; the caller keeps it open.
void install(int elsewhere_fd);

// Once more, after somebody else took over ASan's end of the process: libFuzzer does when it
// starts.
void take_death_callback();

// What an address is near: "8 bytes after 456-byte region"; empty when ASan does not know it. Not
// in a walk. Contained: ASan may wait for a lock that a halted thread holds.
std::string describe_address(uintptr_t address);

// What a libjvm with the additions' UBSan handlers calls. `pc`: behind the check; `frame`: of the
// handler, which pc called. Any thread, also in a walk: async-signal-safe there.
void on_ubsan(const char* check, const char* file, uint32_t line, uint32_t column, const void* pc,
              const void* frame);

// Reports made outside walks so far. Any thread.
uint64_t reports_elsewhere();

}  // namespace sanitizer
}  // namespace framestorm
