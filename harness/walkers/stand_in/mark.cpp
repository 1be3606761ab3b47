// Frame marks of the stand-in.
#include <profile2.h>

#include <algorithm>
#include <array>
#include <deque>

#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::stand_in {
namespace {

struct Mark {
  uintptr_t sp = 0;
};
// In the order of their registration; a mark is its own ticket.
std::deque<Mark> marks;

Mark* find(const ASGST_FrameMark* ticket) {
  const auto found = std::ranges::find_if(
      marks, [=](const Mark& one) { return static_cast<const void*>(&one) == ticket; });
  return found == marks.end() ? nullptr : &*found;
}

const Mark* newest() {
  const Control& control = *framestorm_stand_in();
  if (control.leaves_frames && control.defect != Defect::mark_outlives_its_frame) {
    for (Mark& mark : marks) mark.sp = 0;
  }
  const Mark* least = nullptr;
  for (const Mark& mark : marks) {
    if (mark.sp != 0 && (least == nullptr || mark.sp < least->sp)) least = &mark;
  }
  return least;
}

// The topmost frame cannot be marked.
bool can_be_marked(uintptr_t sp) {
  std::array<Frame, 512> stack;
  const size_t size = framestorm_stand_in()->stack(nullptr, stack.data(), stack.size());
  const auto java = [](const Frame& frame) { return frame.type != Type::cpp; };
  const auto end = stack.begin() + static_cast<std::ptrdiff_t>(size);
  const auto top = std::find_if(stack.begin(), end, java);
  return top != end && top->sp != sp &&
         std::any_of(top, end, [&](const Frame& frame) { return java(frame) && frame.sp == sp; });
}

}  // namespace

uintptr_t marked_sp() {
  const Mark* const mark = newest();
  return mark == nullptr ? 0 : mark->sp;
}

}  // namespace framestorm::stand_in

extern "C" {

using namespace framestorm::stand_in;

ASGST_FrameMark* ASGST_RegisterFrameMark(JNIEnv*, ASGST_FrameMarkHandler, int, void*) {
  return reinterpret_cast<ASGST_FrameMark*>(&marks.emplace_back());
}

void ASGST_MoveFrameMark(ASGST_FrameMark* ticket, void* new_sp) {
  Mark* const mark = find(ticket);
  const auto sp = reinterpret_cast<uintptr_t>(new_sp);
  if (mark != nullptr) mark->sp = sp != 0 && can_be_marked(sp) ? sp : 0;
}

void* ASGST_GetFrameMarkStackPointer(ASGST_FrameMark* ticket) {
  newest();
  const Mark* const mark = find(ticket);
  return mark == nullptr ? nullptr : reinterpret_cast<void*>(mark->sp);
}

void ASGST_RemoveFrameMark(ASGST_FrameMark* ticket) { ASGST_MoveFrameMark(ticket, nullptr); }

ASGST_FrameMark* ASGST_GetFrameMark(ASGST_Iterator* iterator) {
  if (ASGST_State(iterator) != ASGST_AT_FRAME_MARK) return nullptr;
  if (framestorm_stand_in()->defect == Defect::mark_of_nobody) {
    return reinterpret_cast<ASGST_FrameMark*>(8);
  }
  return reinterpret_cast<ASGST_FrameMark*>(const_cast<Mark*>(newest()));
}
}
