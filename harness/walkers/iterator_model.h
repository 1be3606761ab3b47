// What profile2.h promises about iterators, done the plain way: an iterator is a position in a list
// of frames that was recorded before. Signal context: allocates nothing.
#pragma once

#include <profile2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace framestorm {

class IteratorModel {
 public:
  // Stacks that are deeper are known up to here; beyond it everything is right.
  static constexpr size_t kMostFrames = 512;
  static constexpr size_t kMostIterators = 64;
  static constexpr size_t kNone = SIZE_MAX;

  // What is known of addresses.
  struct Places {
    // The VM's own code; where that is not known, any.
    uintptr_t code_cache_begin = 0;
    uintptr_t code_cache_end = UINTPTR_MAX;
    // What signals' handlers return to, where the frame of what was interrupted is the next one.
    uintptr_t handlers_return_to = 0;
  };
  // Of the list: the frames of an iterator.
  struct Part {
    size_t begin = 0;    // kNone: not known
    size_t end = kNone;  // where it is not known how they go on; kNone: as the list does
  };

  explicit IteratorModel(const Places& places) : places_(places) {}

  void reset() {
    frames_ = 0;
    whole_ = false;
    end_ = ASGST_NO_FRAME;
    iterators_ = 0;
  }

  // The recording. False when there is no room for more.
  bool record(const ASGST_Frame& frame) {
    if (frames_ == list_.size()) return false;
    list_[frames_++] = frame;
    return true;
  }
  // What came after the last frame.
  void record_end(int result) {
    whole_ = true;
    end_ = result;
  }

  // A new iterator, whose frames are this part of the list. Its number, or kNone when there is no
  // room; the number counts in the order of opening.
  // `opener`: an address in the frame of who opens it. `to_java`: with ASGST_END_ON_FIRST_JAVA_FRAME.
  size_t open(const void* handle, Part part, bool from_frame, uintptr_t opener, bool to_java) {
    if (iterators_ == opened_.size()) return kNone;
    opened_[iterators_] = {handle, part, part.begin, from_frame, to_java, opener, Life::open};
    return iterators_++;
  }
  // The handlers of this iterator and of those opened after it have been left.
  void close_from(size_t iterator, bool by_jump) {
    for (size_t i = iterator; i < iterators_; ++i) {
      if (opened_[i].life == Life::open) opened_[i].life = by_jump ? Life::jumped : Life::closed;
    }
  }
  size_t opened() const { return iterators_; }
  const void* handle_of(size_t iterator) const {
    return iterator < iterators_ ? opened_[iterator].handle : nullptr;
  }

  // What a call returns.
  struct Expected {
    std::optional<int> result;  // none: not known
    bool or_invalid = false;    // ASGST_INVALID_ITERATOR is right too
    bool or_end = false;        // and ASGST_NO_FRAME
    bool is(int got) const {
      return !result || got == *result || (or_invalid && got == ASGST_INVALID_ITERATOR) ||
             (or_end && got == ASGST_NO_FRAME);
    }
  };

  // `handle` may be of any iterator there was: one whose handle was given again since is that other
  // one. Nobody tells the VM of a longjmp: it may take an iterator whose handler was left so for
  // valid as long as that handler's frame might still be there, which is when the call comes from
  // further down the stack (`caller`: an address in its frame). What it gives then has to be right
  // all the same.
  Expected next(const void* handle, uintptr_t caller) const {
    return expected(find(handle), caller);
  }
  Expected state(const void* handle, uintptr_t caller) const {
    if (handle == nullptr) return {ASGST_NO_FRAME};
    return expected(find(handle), caller);
  }
  // NextFrame has given a frame, as it should: the list's one at last_frame().
  void advance(const void* handle) {
    if (Iterator* const iterator = find(handle)) last_ = iterator->next++;
  }
  void rewind(const void* handle) {
    Iterator* const iterator = find(handle);
    // One that was left may have been taken for valid or not: then where it is is not known.
    if (iterator == nullptr) return;
    if (iterator->life == Life::open) {
      iterator->next = iterator->part.begin;
    } else {
      iterator->life = Life::unknown;
    }
  }
  bool is_open(const void* handle) const {
    const Iterator* const iterator = find(handle);
    return iterator != nullptr && iterator->life == Life::open;
  }
  // Opened from a frame of another one.
  bool is_from_frame(const void* handle) const {
    const Iterator* const iterator = find(handle);
    return iterator != nullptr && iterator->from_frame;
  }

  // The Java frame that this iterator ends before; null: it has not come to one, or does not end there.
  const ASGST_Frame* java_frame_ahead(const void* handle) const {
    const Iterator* const iterator = find(handle);
    return iterator != nullptr && is_before_java(*iterator) ? &list_[iterator->next] : nullptr;
  }

  // The frame that next() gave last.
  const ASGST_Frame* last_frame() const { return last_ < frames_ ? &list_[last_] : nullptr; }
  // What a walk gives that starts from that frame's registers: it begins at the first of the frames
  // that are inlined into the same physical one. Where that is not known, nothing is: those of the
  // innermost frame do not say whether pc is a return address. Nor do those of compiled code that has
  // a stub or C code above it, where a poll's stub has moved the return address behind the poll: the
  // debug information there is of what follows. `options`: of both walks. C frames that they do not ask
  // for are those of a thread that is not known to be Java's, which its stack may say.
  Part part_from_last(int32_t options) const {
    const ASGST_Frame& last = list_[last_];
    if (last.type == ASGST_FRAME_NON_JAVA) {
      const bool asked_for = (options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
      return asked_for && is_c(last) ? part_from_c() : Part{.begin = kNone};
    }
    size_t begin = last_;
    while (begin > 0 && list_[begin - 1].sp == last.sp &&
           list_[begin - 1].type == ASGST_FRAME_JAVA_INLINED) {
      --begin;
    }
    const auto above = std::span(list_).first(begin);
    const bool is_polled =
        last.comp_level > 0 &&
        std::ranges::all_of(
            above, [](uint8_t type) { return type == ASGST_FRAME_NON_JAVA; }, &ASGST_Frame::type);
    return {.begin = is_polled || begin == 0 ? kNone : begin};
  }
  void forget_last() { last_ = kNone; }

 private:
  enum class Life : uint8_t { open, jumped, unknown, closed };
  struct Iterator {
    const void* handle;
    Part part;
    size_t next;
    bool from_frame;  // of another one's frame
    bool to_java;
    uintptr_t opener;
    Life life;
  };

  const Iterator* find(const void* handle) const {
    for (size_t i = iterators_; i-- > 0;) {
      if (opened_[i].handle == handle && opened_[i].life != Life::closed) return &opened_[i];
    }
    return nullptr;
  }
  Iterator* find(const void* handle) {
    return const_cast<Iterator*>(static_cast<const IteratorModel*>(this)->find(handle));
  }
  Expected expected(const Iterator* iterator, uintptr_t caller) const {
    if (iterator == nullptr) return {ASGST_INVALID_ITERATOR};
    if (iterator->life == Life::unknown) return {std::nullopt};
    const bool jumped = iterator->life == Life::jumped;
    if (jumped && caller >= iterator->opener) return {ASGST_INVALID_ITERATOR};
    // One that starts behind where the frozen frames are missing does not know of them.
    const std::optional<int> result =
        is_before_java(*iterator) ? ASGST_NO_FRAME : result_at(*iterator);
    return {result, jumped, iterator->from_frame && result == ASGST_FRAMES_FROZEN};
  }
  bool is_before_java(const Iterator& iterator) const {
    if (!iterator.to_java || iterator.next >= std::min(frames_, iterator.part.end)) return false;
    const uint8_t type = list_[iterator.next].type;
    return type == ASGST_FRAME_JAVA || type == ASGST_FRAME_JAVA_INLINED;
  }
  std::optional<int> result_at(const Iterator& iterator) const {
    if (iterator.next >= iterator.part.end) return std::nullopt;
    if (iterator.next < frames_) return 1;
    return whole_ ? std::optional<int>(end_) : std::nullopt;
  }

  bool is_c(const ASGST_Frame& frame) const {
    const auto pc = reinterpret_cast<uintptr_t>(frame.pc);
    return frame.type == ASGST_FRAME_NON_JAVA &&
           (pc < places_.code_cache_begin || pc >= places_.code_cache_end);
  }
  // Three registers of C code do not say where the Java frames go on: known are the C frames before
  // those, and the thread's end where there are none. What a signal has interrupted has called nothing.
  Part part_from_c() const {
    const auto callee = [&] { return reinterpret_cast<uintptr_t>(list_[last_ - 1].pc); };
    if (last_ == 0 || callee() == places_.handlers_return_to) return {.begin = kNone};
    size_t end = last_;
    while (end < frames_ && is_c(list_[end])) ++end;
    const bool is_thread_end = end == frames_ && end_ == ASGST_NO_FRAME;
    return {.begin = last_, .end = is_thread_end ? kNone : end};
  }

  const Places places_;
  std::array<ASGST_Frame, kMostFrames> list_ = {};
  size_t frames_ = 0;
  bool whole_ = false;
  int end_ = ASGST_NO_FRAME;
  std::array<Iterator, kMostIterators> opened_ = {};
  size_t iterators_ = 0;
  size_t last_ = kNone;
};

// The first field that differs; empty when none does. `same_walk`: neither was started from a
// frame, where the frame pointer is what the caller says.
inline std::string_view frame_difference(const ASGST_Frame& a, const ASGST_Frame& b,
                                         bool same_walk) {
  // Which of the two follows from the frame before, which is not there where a walk starts.
  const auto enters = [](const ASGST_Frame& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  };
  if (a.type != b.type && (same_walk || !enters(a) || !enters(b))) return "type";
  if (a.comp_level != b.comp_level) return "comp_level";
  if (a.bci != b.bci) return "bci";
  if (a.method != b.method) return "method";
  if (a.pc != b.pc) return "pc";
  if (a.sp != b.sp) return "sp";
  return same_walk && a.fp != b.fp ? "fp" : "";
}

}  // namespace framestorm
