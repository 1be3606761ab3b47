// Sanitizer reports made during a walk come back as data, like faults and unsafe calls; all others
// go where the process wants them.
//
//   ASan   the functions that compiled code calls for a failed check (asan_checks.cpp). The walk
//   goes
//          on where the code was compiled with -fsanitize-recover=address; where not, it ends as a
//          terminal call. What ASan finds itself (memcpy and the like, large functions' checks)
//          comes through __asan_on_error and the report callback; where it then ends the process,
//          the walk ends, holding ASan's locks.
//   UBSan  the additions' own handlers in libjvm call a hook (framestorm_ubsan.cpp): clang's
//          runtime reports a place once per process only.
//
// Sources: compiler-rt's asan_interface.h and common_interface_defs.h.
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
