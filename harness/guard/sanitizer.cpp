#include "harness/guard/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "harness/base/fixed_text.h"
#include "harness/guard/guard.h"
#include "harness/guard/interposer.h"
#include "harness/guard/sanitizer_record.h"
#include "harness/guard/unsafe_calls_record.h"

// Bound when the process has ASan's runtime, null otherwise: one build of the harness serves both.
extern "C" {
[[gnu::weak]] void __asan_set_error_report_callback(void (*callback)(const char* report));
[[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());
[[gnu::weak]] void __sanitizer_set_report_fd(void* fd);
[[gnu::weak]] const char* __asan_get_report_description();
[[gnu::weak]] void* __asan_get_report_pc();
[[gnu::weak]] void* __asan_get_report_bp();
[[gnu::weak]] void* __asan_get_report_address();
[[gnu::weak]] size_t __asan_get_report_access_size();
[[gnu::weak]] int __asan_get_report_access_type();
[[gnu::weak]] void __asan_get_shadow_mapping(size_t* scale, size_t* offset);
[[gnu::weak]] const char* __asan_locate_address(void* address, char* name, size_t name_size,
                                                void** region, size_t* region_size);
}

namespace framestorm {
namespace {

std::atomic<uint64_t> elsewhere{0};
std::atomic<int> elsewhere_fd{-1};
size_t shadow_scale = 0;
size_t shadow_offset = 0;

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

void write_text(std::string_view text) {
  const int fd = elsewhere_fd.load(std::memory_order_relaxed);
  [[maybe_unused]] const ssize_t written =
      write(fd < 0 ? STDERR_FILENO : fd, text.data(), text.size());
}

void write_elsewhere(std::string_view report) {
  elsewhere.fetch_add(1, std::memory_order_relaxed);
  write_text(report);
}

// Where the walk's next report goes; null when there is no room, or nobody asks.
SanitizerReport* next_report(const WalkState& walk) {
  if (walk.reports == nullptr) return nullptr;
  const uint32_t index = walk.reports->count++;
  if (index >= kMaxSanitizerReports) return nullptr;
  SanitizerReport* report = &walk.reports->reports[index];
  *report = {};
  return report;
}

// `frame`: of the sanitizer's function that `report->pc` called; its frame pointer and return
// address stand there.
void record_stack(const WalkState& walk, uintptr_t frame, SanitizerReport* report) {
  uintptr_t fp = 0;
  arch::safe_load(frame, &fp);
  const uintptr_t sp = frame + 2 * sizeof(uintptr_t);
  report->stack_size = static_cast<uint32_t>(frame_pointer_backtrace(
      report->pc, sp, fp, backtrace_limit(walk.recovery), report->stack, kSanitizerStack));
}

// What ASan calls an access that a shadow byte forbids (asan_internal.h, asan_errors.cpp).
const char* check_of(uint8_t shadow) {
  switch (shadow) {
    case 0xfa:
    case 0xac:
      return "heap-buffer-overflow";
    case 0xfd:
      return "heap-use-after-free";
    case 0xf1:
      return "stack-buffer-underflow";
    case 0xf2:
    case 0xf3:
      return "stack-buffer-overflow";
    case 0xf5:
      return "stack-use-after-return";
    case 0xf6:
      return "initialization-order-fiasco";
    case 0xf7:
      return "use-after-poison";
    case 0xf8:
      return "stack-use-after-scope";
    case 0xf9:
      return "global-buffer-overflow";
    case 0xbb:
      return "intra-object-overflow";
    case 0xca:
    case 0xcb:
      return "dynamic-stack-buffer-overflow";
    case 0xfc:
      return "container-overflow";
    default:
      return "unknown-crash";
  }
}

// The first byte of shadow that says why: below 0x80 it says how much of a granule may be accessed,
// and the next one why not more.
const char* check_of(uintptr_t address, size_t size) {
  constexpr uintptr_t kFarEnough = 64;  // granules
  constexpr uintptr_t kForbids = 0x80;
  constexpr uintptr_t kWord = sizeof(uintptr_t);
  const uintptr_t first = (address >> shadow_scale) + shadow_offset;
  const uintptr_t last = ((address + size - 1) >> shadow_scale) + shadow_offset + 1;
  for (uintptr_t at = first; at <= std::min(last, first + kFarEnough); ++at) {
    uintptr_t word = 0;
    if (!arch::safe_load(at & ~(kWord - 1), &word)) break;
    const auto shadow = static_cast<uint8_t>(word >> (8 * (at % kWord)));
    if (shadow >= kForbids) return check_of(shadow);
  }
  return "unknown-crash";
}

// ASan's report of this thread is complete and not printed yet. Signal context.
void on_asan_error() {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0) return;
  // What ASan itself does from here on is not the walker's doing.
  walk.reporting = true;
  walk.reporting_errno = errno;
  SanitizerReport* report = next_report(walk);
  if (report == nullptr) return;
  FixedText(report->check).text(__asan_get_report_description());
  report->pc = address_of(__asan_get_report_pc());
  report->address = address_of(__asan_get_report_address());
  report->access_size = __asan_get_report_access_size();
  report->is_write = __asan_get_report_access_type() != 0;
  record_stack(walk, address_of(__asan_get_report_bp()), report);
}

// Of the report that was recorded last: "0x515000030948 is located 8 bytes after 456-byte region ["
void note_place(const WalkState& walk, const char* text) {
  constexpr std::string_view kBefore = "is located ";
  if (walk.reports == nullptr || walk.reports->count > kMaxSanitizerReports) return;
  const std::string_view all(text);
  const size_t at = all.find(kBefore);
  if (at == std::string_view::npos) return;
  const size_t begin = at + kBefore.size();
  const std::string_view place = all.substr(begin, all.find_first_of("[\n", begin) - begin);
  FixedText(walk.reports->reports[walk.reports->count - 1].place).text(place);
}

// The report's text, printed. Signal context.
void on_asan_report(const char* text) {
  WalkState& walk = walk_state;
  if (walk.reporting) {
    note_place(walk, text);
    walk.reporting = false;
    errno = walk.reporting_errno;
  } else {
    write_elsewhere(text);
  }
}

// ASan ends the process: of code that was not compiled to go on and has its checks done by ASan's
// functions. Its locks stay held.
void on_death() {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0) {
    // Behind the report's text: whoever looks at what is left of the process knows what ended it.
    write_text(sanitizer::kEndsProcess);
    return;
  }
  walk.reporting = true;  // also where there was no report, as of a failed check of ASan's own
  end_walk_in_terminal_call(sanitizer::kTerminalCall,
                            reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

// "frame.cpp:207:5"
void add_place(FixedText* out, const char* file, uint32_t line, uint32_t column) {
  out->text(file_name(file)).text(":").number(line).text(":").number(column);
}

struct Location {
  uintptr_t address = 0;
  uintptr_t region = 0;
  size_t region_size = 0;
};

void locate(void* self) {
  auto* location = static_cast<Location*>(self);
  char name[128];
  void* region = nullptr;
  __asan_locate_address(reinterpret_cast<void*>(location->address), name, sizeof name, &region,
                        &location->region_size);
  location->region = address_of(region);
}

}  // namespace

bool record_asan_check(uintptr_t address, size_t size, bool is_write, bool ends, const void* pc,
                       const void* frame) {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0) return false;
  if (SanitizerReport* report = next_report(walk)) {
    FixedText(report->check).text(check_of(address, size));
    report->pc = address_of(pc);
    report->address = address;
    report->access_size = size;
    report->is_write = is_write;
    record_stack(walk, address_of(frame), report);
  }
  if (ends) end_walk_in_terminal_call(sanitizer::kTerminalCall, address_of(frame));
  return true;
}

namespace sanitizer {

bool has_asan() { return &__asan_set_error_report_callback != nullptr; }

void install(int fd) {
  elsewhere_fd.store(fd);
  if (!has_asan()) return;
  // Reports are taken from the callback; thousands of them would drown what is on stderr.
  const int silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(silent)));
  __asan_set_error_report_callback(&on_asan_report);
  __asan_get_shadow_mapping(&shadow_scale, &shadow_offset);
  take_death_callback();
}

void take_death_callback() {
  if (has_asan()) __sanitizer_set_death_callback(&on_death);
}

void on_ubsan(const char* check, const char* file, uint32_t line, uint32_t column, const void* pc,
              const void* frame) {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0) {
    char room[512];
    FixedText text(room);
    text.text("UndefinedBehaviorSanitizer: ").text(check).text(" in ");
    add_place(&text, file, line, column);
    write_elsewhere(text.text("\n").view());
    return;
  }
  SanitizerReport* report = next_report(walk);
  if (report == nullptr) return;
  FixedText(report->check).text(check);
  FixedText place(report->place);
  add_place(&place, file, line, column);
  report->pc = address_of(pc);
  record_stack(walk, address_of(frame), report);
}

std::string describe_address(uintptr_t address) {
  Location location;
  location.address = address;
  FaultRecord fault;
  UnsafeCalls unsafe;
  if (!has_asan() || Guard::call(&locate, &location, &fault, &unsafe) != WalkEnd::returned ||
      location.region_size == 0) {
    return {};
  }
  const uintptr_t end = location.region + location.region_size;
  const std::string region = std::to_string(location.region_size) + "-byte region";
  if (address < location.region) {
    return std::to_string(location.region - address) + " bytes before " + region;
  }
  if (address >= end) return std::to_string(address - end) + " bytes after " + region;
  return std::to_string(address - location.region) + " bytes inside of " + region;
}

uint64_t reports_elsewhere() { return elsewhere.load(std::memory_order_relaxed); }

}  // namespace sanitizer
}  // namespace framestorm

// ASan's weak hook, and the options the JVM needs: HotSpot owns the fault signals and takes stack
// addresses for positions; a walk goes on after a report, and each walk makes its own.
extern "C" [[gnu::visibility("default")]] void __asan_on_error() { framestorm::on_asan_error(); }

extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:"
         "allow_user_segv_handler=1:use_sigaltstack=0:detect_stack_use_after_return=0:"
         "detect_leaks=0:halt_on_error=0:suppress_equal_pcs=0:symbolize=0:fast_unwind_on_fatal=1:"
         "allocator_may_return_null=1:verify_asan_link_order=0";
}
