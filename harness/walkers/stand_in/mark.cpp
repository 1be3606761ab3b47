// Frame marks of the stand-in.
#include <profile2.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "harness/walkers/stand_in/stand_in.h"

extern "C" {
int ASGST_RunWithIterator(void*, int32_t, ASGST_IteratorHandler, void*);
}

namespace framestorm::stand_in {
namespace {

constexpr uintptr_t kAll = UINTPTR_MAX;
using Stack = std::array<Frame, 512>;

struct Mark {
  uintptr_t sp = 0;
  bool live = true;
  ASGST_FrameMarkHandler handler = nullptr;
  void* argument = nullptr;
};
// In the order of their registration; a mark is its own ticket. Those of sequences are apart.
std::deque<Mark> of_threads;
std::deque<Mark> of_sequence;
bool in_sequence = false;
// While handlers are told: the frames below it are left.
uintptr_t staying = 0;

Defect defect() { return framestorm_stand_in()->defect; }
std::deque<Mark>& marks() { return in_sequence ? of_sequence : of_threads; }

Mark* find(const ASGST_FrameMark* ticket) {
  const auto found = std::ranges::find_if(marks(), [=](const Mark& one) {
    const bool is_open = one.live || defect() == Defect::mark_goes_on_after_its_end;
    return is_open && static_cast<const void*>(&one) == ticket;
  });
  return found == marks().end() ? nullptr : &*found;
}
ASGST_FrameMark* ticket_of(const Mark* mark) {
  return reinterpret_cast<ASGST_FrameMark*>(const_cast<Mark*>(mark));
}

// Of those below `below` the one nearest to the top, or to the bottom.
Mark* first_of(uintptr_t below, bool from_top) {
  Mark* first = nullptr;
  for (Mark& mark : marks()) {
    if (!mark.live || mark.sp == 0 || mark.sp >= below) continue;
    if (first == nullptr || (from_top ? mark.sp < first->sp : mark.sp > first->sp)) first = &mark;
  }
  return first;
}

const Mark* newest() {
  const Control& control = *framestorm_stand_in();
  if (!in_sequence && control.leaves_frames && defect() != Defect::mark_outlives_its_frame) {
    for (Mark& mark : marks()) mark.sp = 0;
  }
  return first_of(kAll, defect() != Defect::mark_walks_end_at_the_oldest);
}

// The topmost frame cannot be marked, nor what is left.
bool can_be_marked(uintptr_t sp) {
  Stack stack;
  const size_t size = framestorm_stand_in()->stack(nullptr, stack.data(), stack.size());
  const auto java = [](const Frame& frame) { return frame.type != Type::cpp; };
  const auto end = stack.begin() + static_cast<std::ptrdiff_t>(size);
  const auto top = std::find_if(stack.begin(), end, java);
  const bool is_there =
      std::any_of(top, end, [&](const Frame& frame) { return java(frame) && frame.sp == sp; });
  if (!is_there) return false;
  if (staying != 0) return sp >= staying || defect() == Defect::mark_of_what_is_left;
  return top->sp != sp || defect() == Defect::mark_of_the_topmost_frame;
}

// The stack of the test from where there is a frame that stays.
size_t staying_stack(size_t (*whole)(void*, Frame*, size_t), uintptr_t from, Frame* out,
                     size_t room) {
  Stack stack;
  const size_t size = whole(nullptr, stack.data(), stack.size());
  size_t count = 0;
  for (size_t i = 0; i < size && count < room; ++i) {
    if (stack[i].sp >= from) out[count++] = stack[i];
  }
  return count;
}

// What an iterator is opened with that begins at `from`; everything else walks the whole stack.
struct Opening {
  uintptr_t from = 0;
  size_t (*stack)(void*, Frame*, size_t) = nullptr;
  int end = 0;
} opening;

void tell(Mark told, const Mark* mark, uintptr_t from) {
  Control& control = *framestorm_stand_in();
  opening = {from, control.stack, control.end};
  Stack stay;
  const size_t size = staying_stack(control.stack, from, stay.data(), stay.size());
  const bool none = std::all_of(stay.begin(), stay.begin() + static_cast<std::ptrdiff_t>(size),
                                [](const Frame& frame) { return frame.type == Type::cpp; });
  if (none) control.end = ASGST_NO_TOP_JAVA_FRAME;
  control.stack = [](void*, Frame* out, size_t room) {
    Control& opened = *framestorm_stand_in();
    opened.stack = opening.stack;
    opened.end = opening.end;
    return staying_stack(opening.stack, opening.from, out, room);
  };
  auto call = std::pair(told, ticket_of(mark));
  ASGST_RunWithIterator(
      nullptr, 0,
      [](ASGST_Iterator* iterator, void* argument) {
        const auto& [of, ticket] = *static_cast<const decltype(call)*>(argument);
        of.handler(ticket, iterator, of.argument);
      },
      &call);
}

// The frames below `stay` are left.
void leave(uintptr_t stay) {
  if (staying != 0 || defect() == Defect::mark_not_told) return;
  staying = stay;
  const bool newest_first = defect() != Defect::mark_tells_the_oldest_first;
  while (Mark* const mark = first_of(stay, newest_first)) {
    const Mark told = *mark;
    mark->sp = 0;
    const bool from_its_frame = defect() == Defect::mark_tells_from_its_frame_on;
    tell(told, mark, from_its_frame ? told.sp : stay);
    if (defect() == Defect::mark_tells_twice) tell(told, mark, stay);
    if (defect() == Defect::mark_kept_when_told) {
      mark->sp = told.sp;
      break;
    }
  }
  staying = 0;
}

}  // namespace

uintptr_t marked_sp() {
  const Mark* const mark = newest();
  return mark == nullptr || defect() == Defect::mark_walks_go_on ? 0 : mark->sp;
}

void begin_marks() {
  of_sequence.clear();
  in_sequence = true;
  staying = 0;
}
void exit_with_marks() {
  for (Mark& mark : of_sequence) mark.live = false;
}
void end_marks() { in_sequence = false; }

}  // namespace framestorm::stand_in

extern "C" {

using namespace framestorm::stand_in;

ASGST_FrameMark* ASGST_RegisterFrameMark(JNIEnv*, ASGST_FrameMarkHandler handler, int,
                                         void* argument) {
  if (in_sequence && (is_exiting() || framestorm_stand_in()->kind == ASGST_NO_THREAD)) {
    return nullptr;
  }
  return ticket_of(&marks().emplace_back(Mark{.handler = handler, .argument = argument}));
}

void ASGST_MoveFrameMark(ASGST_FrameMark* ticket, void* new_sp) {
  Mark* const mark = find(ticket);
  const auto sp = reinterpret_cast<uintptr_t>(new_sp);
  if (mark != nullptr) mark->sp = sp != 0 && !is_exiting() && can_be_marked(sp) ? sp : 0;
}

void* ASGST_GetFrameMarkStackPointer(ASGST_FrameMark* ticket) {
  newest();
  const Mark* const mark = find(ticket);
  return mark == nullptr ? nullptr : reinterpret_cast<void*>(mark->sp);
}

void ASGST_RemoveFrameMark(ASGST_FrameMark* ticket) {
  if (Mark* const mark = find(ticket)) mark->live = false;
}

ASGST_FrameMark* ASGST_GetFrameMark(ASGST_Iterator* iterator) {
  if (ASGST_State(iterator) != ASGST_AT_FRAME_MARK) return nullptr;
  if (framestorm_stand_in()->defect == Defect::mark_of_nobody) {
    return reinterpret_cast<ASGST_FrameMark*>(8);
  }
  return ticket_of(newest());
}

void framestorm_queues_reserve_marks(int) {}

uintptr_t framestorm_queues_poll_word() {
  const Mark* const mark = first_of(kAll, defect() != Defect::mark_polls_at_the_oldest);
  return mark == nullptr ? kAll : mark->sp - 8;
}

void framestorm_queues_return(void* sp) {
  Stack stack;
  const size_t size = framestorm_stand_in()->stack(nullptr, stack.data(), stack.size());
  const auto from = reinterpret_cast<uintptr_t>(sp);
  uintptr_t stay = from + 1;
  for (size_t i = size; i > 0; --i) {
    if (stack[i - 1].type != Type::cpp && stack[i - 1].sp > from) stay = stack[i - 1].sp;
  }
  leave(stay);
}

void framestorm_queues_unwind(void* sp) { leave(reinterpret_cast<uintptr_t>(sp)); }
void* framestorm_queues_continuation() { return nullptr; }
void framestorm_queues_freeze() {}
void framestorm_queues_throw_to_frozen() {}
void framestorm_queues_leave_java() { leave(kAll); }
}
