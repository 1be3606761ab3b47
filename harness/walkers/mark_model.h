// What profile2.h promises about frame marks, done the plain way: a mark is a frame of a list, and the
// frames that are left are the first of that list. Signal context: allocates nothing.
#pragma once

#include <profile2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace framestorm {

class MarkModel {
 public:
  static constexpr size_t kMostMarks = 8;
  static constexpr size_t kNone = SIZE_MAX;
  // Above each sp: no frame stays.
  static constexpr uintptr_t kAll = UINTPTR_MAX;

  struct Mark {
    const void* ticket = nullptr;
    bool live = false;
    uintptr_t sp = 0;   // of the physical frame that is marked; 0: none is
    bool left = false;  // is to be told at the next occasion, and marks nothing any more
    uintptr_t marked() const { return left ? 0 : sp; }
  };

  void reset(bool may_register) {
    count_ = 0;
    may_register_ = may_register;
    leaves_ = false;
  }
  bool may_register() const { return may_register_; }
  size_t count() const { return count_; }
  const Mark& at(size_t index) const { return marks_[index]; }
  // Null for what is no mark, or was one.
  Mark* find(const void* ticket) {
    const auto all = std::span(marks_).first(count_);
    const auto found = std::ranges::find_if(
        all, [ticket](const Mark& mark) { return mark.live && mark.ticket == ticket; });
    return found == all.end() ? nullptr : &*found;
  }
  void add(const void* ticket) { marks_[count_++] = {.ticket = ticket, .live = true}; }
  void end_all() {
    for (Mark& mark : marks_) mark.live = false;
  }

  // Whether the frame with that sp can be marked now; nothing where the walk does not tell.
  // `frames`: those of the thread, callee first, what is inlined by itself; C frames are left out. `end`:
  // what came after them, 1 when there are more.
  std::optional<bool> can_be_marked(std::span<const ASGST_Frame> frames, int end,
                                    uintptr_t sp) const {
    const size_t first = first_from(frames, sp);
    if (sp == 0 || first == frames.size() || sp_of(frames[first]) != sp) return false;
    if (enters_continuation(frames[first])) return false;
    // The topmost frame may be past its poll; while others are told to be left, what stays is not.
    if (leaves_ ? sp < stay_ : sp == sp_of(frames[0])) return false;
    const bool has_caller = first_from(frames, sp + 1) != frames.size();
    if (!has_caller && end < 0 && end != ASGST_FRAMES_FROZEN) return {};
    return true;
  }
  static void move(Mark* mark, uintptr_t sp) {
    mark->sp = sp;
    mark->left = false;
  }

  // Of those that mark a frame the one nearest to the top, and of one frame's the first registered.
  const Mark* newest() const {
    const Mark* newest = nullptr;
    for (const Mark& mark : std::span(marks_).first(count_)) {
      if (!mark.live || mark.marked() == 0) continue;
      if (newest == nullptr || mark.sp < newest->sp) newest = &mark;
    }
    return newest;
  }

  // The frames below that sp are left: the handlers of their marks are called, one after the other.
  void begin_leave(uintptr_t stay) {
    stay_ = stay;
    leaves_ = true;
  }
  // Whose is called next; kNone when none is.
  size_t next_told() {
    size_t next = kNone;
    for (size_t i = 0; i < count_; ++i) {
      const Mark& mark = marks_[i];
      if (!mark.live || mark.sp == 0 || !(mark.left || mark.sp < stay_)) continue;
      if (next == kNone || mark.sp < marks_[next].sp) next = i;
    }
    if (next != kNone) move(&marks_[next], 0);
    return next;
  }
  void end_leave() { leaves_ = false; }
  bool leaves() const { return leaves_; }
  uintptr_t stay() const { return stay_; }

  // An exception is on its way to frozen frames: the frames that return to those are going to be left.
  void throw_to_frozen(std::span<const ASGST_Frame> frames) {
    for (Mark& mark : std::span(marks_).first(count_)) {
      if (!mark.live || mark.sp == 0) continue;
      const size_t caller = first_from(frames, mark.sp + 1);
      if (caller != frames.size() && frames[caller].type == ASGST_FRAME_CONTINUATION_FROZEN) {
        mark.left = true;
      }
    }
  }

  static uintptr_t sp_of(const ASGST_Frame& frame) { return reinterpret_cast<uintptr_t>(frame.sp); }
  static bool enters_continuation(const ASGST_Frame& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  }
  // The first frame that begins there or behind; their number when there is none.
  static size_t first_from(std::span<const ASGST_Frame> frames, uintptr_t sp) {
    const auto found =
        std::ranges::find_if(frames, [sp](const ASGST_Frame& frame) { return sp_of(frame) >= sp; });
    return static_cast<size_t>(found - frames.begin());
  }

 private:
  std::array<Mark, kMostMarks> marks_;
  size_t count_ = 0;
  bool may_register_ = false;
  bool leaves_ = false;
  uintptr_t stay_ = 0;
};

}  // namespace framestorm
