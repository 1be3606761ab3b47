#include <profile2.h>

#include <array>

#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::stand_in {
namespace {

constexpr size_t kCapacity = 512;
constexpr size_t kIterators = 64;

struct Iteration {
  std::array<Frame, kCapacity> stack;
  size_t size = 0;
  size_t next = 0;
  bool c_frames = false;
  bool ended = false;
  bool to_mark = false;  // it ends with the frame that is marked
  bool to_java = false;  // before the first method that is not native
  int end = 0;
};

struct Slot {
  size_t number = 0;  // of the iterator, which is its handle and never given again
  Iteration iteration;
  const void* frame = nullptr;  // of who runs the handler
  bool closed = false;
};

std::array<Slot, kIterators> slots;
size_t opened = 0;
size_t shared_position = 0;
int thread_state_calls = 0;

Defect defect() { return framestorm_stand_in()->defect; }

ASGST_Iterator* handle_of(size_t number) {
  return reinterpret_cast<ASGST_Iterator*>(0x100 + number);
}

// One whose handler was run below the caller was left by longjmp.
Iteration* resolve(const ASGST_Iterator* iterator) {
  const auto number = reinterpret_cast<uintptr_t>(iterator) - 0x100;
  if (number >= opened) return nullptr;
  Slot& slot = slots[number % kIterators];
  if (slot.number != number) return nullptr;
  if (slot.closed && defect() != Defect::accepts_closed_iterators) return nullptr;
  const bool left = slot.frame < __builtin_frame_address(0);
  if (left && !slot.closed && defect() != Defect::accepts_left_iterators) return nullptr;
  return &slot.iteration;
}

size_t& position_of(Iteration* iteration) {
  return defect() == Defect::nested_share_their_position ? shared_position : iteration->next;
}

bool is_before_java(const Iteration& iteration, size_t next) {
  if (!iteration.to_java || next >= iteration.size) return false;
  const Type type = iteration.stack[next].type;
  return (type == Type::java || type == Type::inlined) && defect() != Defect::goes_on_into_java;
}

int state_of(Iteration* iteration) {
  size_t& next = position_of(iteration);
  while (next < iteration->size && iteration->stack[next].type == Type::cpp &&
         !iteration->c_frames) {
    ++next;
  }
  if (is_before_java(*iteration, next)) return ASGST_NO_FRAME;
  if (next < iteration->size) return 1;
  if (defect() == Defect::ends_otherwise_later && iteration->ended) return ASGST_STOPPED_BAD_PC;
  iteration->ended = true;
  return iteration->to_mark ? int{ASGST_AT_FRAME_MARK} : iteration->end;
}

// Takes the callers of the newest marked frame away.
void end_at_mark(Iteration* iteration) {
  const uintptr_t sp = marked_sp();
  size_t end = iteration->size;
  while (sp != 0 && end > 0 && iteration->stack[end - 1].sp != sp) --end;
  iteration->to_mark = sp != 0 && end > 0;
  if (iteration->to_mark) iteration->size = end;
}

[[gnu::noinline]] Slot& claim() {
  Slot& slot = slots[opened % kIterators];
  slot.number = opened++;
  slot.closed = false;
  slot.iteration.next = 0;
  slot.iteration.ended = slot.iteration.to_mark = slot.iteration.to_java = false;
  slot.iteration.end = framestorm_stand_in()->end;
  return slot;
}

[[gnu::noinline]] int run(Slot* slot, ASGST_IteratorHandler handler, void* argument) {
  const size_t number = slot->number;
  // As where a VM has its iterator, of some size, on the stack.
  std::array<volatile char, 1024> place;
  place[0] = 0;
  slot->frame = const_cast<const char*>(place.data());
  if (defect() != Defect::calls_no_handler) handler(handle_of(number), argument);
  if (defect() == Defect::calls_handlers_twice) handler(handle_of(number), argument);
  slot->closed = true;
  const bool nested = number > 0 && !slots[(number - 1) % kIterators].closed;
  if (defect() == Defect::nested_give_another_kind && nested) return ASGST_DEOPT_TRACE;
  return framestorm_stand_in()->kind;
}

bool refuses_null(ASGST_IteratorHandler handler) {
  return handler == nullptr && defect() != Defect::accepts_null_handlers;
}

}  // namespace
}  // namespace framestorm::stand_in

extern "C" {

using namespace framestorm::stand_in;

int ASGST_RunWithIterator(void* ucontext, int32_t options, ASGST_IteratorHandler fun,
                          void* argument) {
  Control& control = *framestorm_stand_in();
  control.options = static_cast<uint32_t>(options);
  if (refuses_null(fun)) return ASGST_INVALID_ARGUMENT;
  if (control.kind <= 0 || fun == nullptr) return control.kind;
  Slot& slot = claim();
  Iteration& iteration = slot.iteration;
  iteration.size = control.stack(ucontext, iteration.stack.data(), iteration.stack.size());
  iteration.c_frames = (options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
  iteration.to_java = (options & ASGST_END_ON_FIRST_JAVA_FRAME) != 0;
  if ((options & ASGST_END_AT_FRAME_MARK) != 0) end_at_mark(&iteration);
  return run(&slot, fun, argument);
}

int framestorm_run_with_sample(void* ucontext, int options, ASGST_IteratorHandler fun,
                               void* argument) {
  Control& control = *framestorm_stand_in();
  control.in_sample = true;
  const int result = ASGST_RunWithIterator(ucontext, options, fun, argument);
  control.in_sample = false;
  return result;
}

int ASGST_RunWithIteratorFromFrame(void* sp, void* /*fp*/, void* /*pc*/, int options,
                                   ASGST_IteratorHandler fun, void* argument) {
  Control& control = *framestorm_stand_in();
  if (refuses_null(fun)) return ASGST_INVALID_ARGUMENT;
  if (control.kind <= 0 || fun == nullptr) return control.kind;
  Slot& slot = claim();
  Iteration& iteration = slot.iteration;
  const size_t size = control.stack(nullptr, iteration.stack.data(), iteration.stack.size());
  size_t begin = 0;
  while (begin < size && iteration.stack[begin].sp != reinterpret_cast<uintptr_t>(sp)) ++begin;
  if (begin == size) {
    slot.closed = true;
    return ASGST_NO_TOP_JAVA_FRAME;
  }
  if (control.defect == Defect::from_frame_skips_it) ++begin;
  for (size_t i = begin; i < size; ++i) iteration.stack[i - begin] = iteration.stack[i];
  iteration.size = size - begin;
  iteration.c_frames = (options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
  iteration.to_java = (options & ASGST_END_ON_FIRST_JAVA_FRAME) != 0;
  return run(&slot, fun, argument);
}

int ASGST_NextFrame(ASGST_Iterator* iterator, ASGST_Frame* frame) {
  const Defect wrong = framestorm_stand_in()->defect;
  if (iterator == nullptr && wrong == Defect::accepts_null_iterators) return ASGST_NO_FRAME;
  Iteration* const iteration = resolve(iterator);
  if (iteration == nullptr) {
    if (frame != nullptr && wrong != Defect::leaves_frames_of_errors) *frame = {};
    return ASGST_INVALID_ITERATOR;
  }
  if (frame == nullptr) {
    return wrong == Defect::accepts_null_frames ? 1 : ASGST_INVALID_ARGUMENT;
  }
  const int result = state_of(iteration);
  if (result < 0 && wrong != Defect::leaves_frames_of_errors) *frame = {};
  if (result == ASGST_NO_FRAME && wrong == Defect::gives_a_java_frame_at_the_end) {
    *frame = {.type = ASGST_FRAME_JAVA};
  }
  if (result == ASGST_NO_FRAME && is_before_java(*iteration, position_of(iteration))) {
    const Frame& ahead = iteration->stack[position_of(iteration)];
    const uintptr_t moved = wrong == Defect::gives_another_java_frame ? 1 : 0;
    *frame = {.type = ASGST_FRAME_JAVA,
              .pc = reinterpret_cast<void*>(ahead.pc + moved),
              .sp = reinterpret_cast<void*>(ahead.sp),
              .fp = reinterpret_cast<void*>(ahead.fp)};
  }
  if (result != 1) return result;
  const size_t at = position_of(iteration)++;
  const Frame& from = iteration->stack[at];
  *frame = {static_cast<uint8_t>(from.type),
            from.tier,
            from.bci,
            from.method,
            reinterpret_cast<void*>(from.pc),
            reinterpret_cast<void*>(from.sp),
            reinterpret_cast<void*>(from.fp)};
  static int given = 0;
  if (wrong == Defect::frames_change && ++given % 5 == 0) ++frame->bci;
  if (wrong == Defect::sp_of_inlined_differs && from.type == Type::inlined) {
    frame->sp = reinterpret_cast<void*>(from.sp - 8);
  }
  return 1;
}

void ASGST_RewindIterator(ASGST_Iterator* iterator) {
  Iteration* const iteration = resolve(iterator);
  if (iteration == nullptr) return;
  position_of(iteration) = 0;
  if (framestorm_stand_in()->defect == Defect::rewinds_to_the_second) position_of(iteration) = 1;
}

int ASGST_State(ASGST_Iterator* iterator) {
  if (iterator == nullptr) return ASGST_NO_FRAME;
  Iteration* const iteration = resolve(iterator);
  if (iteration == nullptr) return ASGST_INVALID_ITERATOR;
  const int result = state_of(iteration);
  if (framestorm_stand_in()->defect == Defect::state_takes_a_frame) ++position_of(iteration);
  return result;
}

int ASGST_ThreadState() {
  const Control& control = *framestorm_stand_in();
  return control.defect == Defect::thread_state_changes ? control.state + ++thread_state_calls
                                                        : control.state;
}

// Methods are their IDs here.
jmethodID ASGST_MethodToJMethodID(ASGST_Method method) { return static_cast<jmethodID>(method); }
}
