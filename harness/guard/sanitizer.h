// Sanitizer reports made during a walk come back as data, like faults and unsafe calls; all others
// go where the process wants them.
//
//   ASan   __asan_on_error, report callback: the walk goes on (halt_on_error=0) where the code was
//          compiled with -fsanitize-recover=address; where not, ASan ends the process, which ends
//          the walk as a terminal call.
//   UBSan  the additions' own handlers in libjvm call a hook (framestorm_ubsan.cpp): clang's
//          runtime reports a place once per process only.
//
// Sources: compiler-rt's asan_interface.h and common_interface_defs.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

inline constexpr size_t kMaxSanitizerReports = 4;
inline constexpr size_t kSanitizerStack = 24;

struct SanitizerReport {
  char check[64] = {};  // "heap-buffer-overflow", "shift-out-of-bounds"
  // UBSan: "frame.cpp:207:5". ASan: what the address is near, "8 bytes after 456-byte region".
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

// Whether this process runs with ASan's runtime.
bool has_asan();

// Makes reports reach the guard; before the first walk. `elsewhere_fd` gets the text of those made
// outside a walk, -1 for standard error; the caller keeps it open.
void install(int elsewhere_fd);

// Once more, after somebody else took over ASan's end of the process: libFuzzer does when it
// starts.
void take_death_callback();

// What a libjvm with the additions' UBSan handlers calls. `pc`: behind the check; `frame`: of the
// handler, which pc called. Any thread, also in a walk: async-signal-safe there.
void on_ubsan(const char* check, const char* file, uint32_t line, uint32_t column, const void* pc,
              const void* frame);

// Reports made outside walks so far. Any thread.
uint64_t reports_elsewhere();

}  // namespace sanitizer
}  // namespace framestorm
