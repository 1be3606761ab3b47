#include "harness/guard/vm_error.h"

#include <string_view>

#include "harness/base/fixed_text.h"
#include "harness/guard/interposer.h"
#include "harness/guard/unsafe_calls_record.h"

namespace framestorm::vm_error {

// noinline: the frame is this function's.
[[gnu::noinline]] void on_error(const char* file, int line, const char* condition,
                                const char* format, va_list values) {
  WalkState& walk = walk_state;
  if (walk.claim.sp != 0) arch::framestorm_resume(&walk.claim, 1);
  if (walk.recovery.sp == 0) return;
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  FaultRecord& record = *walk.fault;
  const std::string_view what = condition == nullptr ? std::string_view("error") : condition;
  // fatal() has one text for all: what it says of the case is its format.
  const bool general = format != nullptr && (condition == nullptr || what == "fatal error");
  FixedText name(record.error);
  name.text(what);
  if (general) name.text(": ").text(format);
  name.text(" (").text(file_name(file)).text(")");

  FixedText detail(record.error_detail);
  detail.text(what).text(" at ").text(file_name(file)).text(":").number(line);
  if (format != nullptr && *format != '\0') {
    detail.text(": ");
    // libc's doings are not the walker's; a value that cannot be read is a fault of this frame.
    walk.reporting = true;
    walk.libc_entry_frame = frame;
    format_past_interposer(detail.rest().data(), detail.rest().size(), format, values);
    walk.reporting = false;
    walk.libc_entry_frame = 0;
  }
  record_terminal_call(&walk, nullptr, frame);
  record.end = WalkEnd::vm_error;
  arch::framestorm_resume(&walk.recovery, static_cast<int>(WalkEnd::vm_error));
}

}  // namespace framestorm::vm_error
