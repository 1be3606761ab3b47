#include "harness/guard/vm_error.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "harness/guard/interposer.h"
#include "harness/guard/unsafe_calls_record.h"

namespace framestorm::vm_error {
namespace {

// Text that is cut where the room ends. Async-signal-safe.
class Text {
 public:
  explicit Text(std::span<char> room) : room_(room) { room_[0] = '\0'; }

  void add(std::string_view text) {
    const size_t length = std::min(text.size(), room_.size() - 1 - size_);
    std::memcpy(room_.data() + size_, text.data(), length);
    size_ += length;
    room_[size_] = '\0';
  }
  void add(int number) {
    char digits[12];
    char* at = digits + sizeof digits;
    unsigned rest = number < 0 ? 0U : static_cast<unsigned>(number);
    do {
      *--at = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    add(std::string_view(at, static_cast<size_t>(digits + sizeof digits - at)));
  }
  void add_formatted(const char* format, va_list values) {
    format_past_interposer(room_.data() + size_, room_.size() - size_, format, values);
    size_ = std::strlen(room_.data());
  }

 private:
  std::span<char> room_;
  size_t size_ = 0;
};

std::string_view name_of_file(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

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
  Text name(record.error);
  name.add(what);
  if (general) {
    name.add(": ");
    name.add(format);
  }
  name.add(" (");
  name.add(name_of_file(file));
  name.add(")");

  Text detail(record.error_detail);
  detail.add(what);
  detail.add(" at ");
  detail.add(name_of_file(file));
  detail.add(":");
  detail.add(line);
  if (format != nullptr && *format != '\0') {
    detail.add(": ");
    // libc's doings are not the walker's; a value that cannot be read is a fault of this frame.
    walk.reporting = true;
    walk.libc_entry_frame = frame;
    detail.add_formatted(format, values);
    walk.reporting = false;
    walk.libc_entry_frame = 0;
  }
  record_terminal_call(&walk, nullptr, frame);
  record.end = WalkEnd::vm_error;
  arch::framestorm_resume(&walk.recovery, static_cast<int>(WalkEnd::vm_error));
}

}  // namespace framestorm::vm_error
