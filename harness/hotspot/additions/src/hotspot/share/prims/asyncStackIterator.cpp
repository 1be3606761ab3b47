/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#include "prims/asyncStackIterator.hpp"

#include "prims/asyncCrashProtection.hpp"
#include "prims/asyncFrameMarks.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncThreads.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "runtime/atomic.hpp"
#include "runtime/safefetch.hpp"
#include "runtime/thread.hpp"

#include <new>

// The iterators of profile2.h: each a walker that stands still between frames.

namespace {

// Lives on the stack of ASGST_RunWithIterator, while its handler runs. A handler may be left by
// longjmp; then nobody says that the iteration is gone, and other frames come to lie over it. So it
// is sealed whenever it is left alone, and what is not whole is not used.
class Iteration {
 public:
  explicit Iteration(const AsyncStackIterator::Source& source) : _state(source) {}

  ASGST_Iterator* accept(uintptr_t ticket) {
    _ticket = ticket;
    seal();
    return reinterpret_cast<ASGST_Iterator*>(ticket);
  }

  void rewind() {
    ::new (static_cast<void*>(&_state.walker)) AsyncStackWalker(_state.source.walker);
    _state.looked = false;
    _state.has_first = _state.source.has_first;
    _state.error = _state.source.error;
    seal();
  }

  int state() {
    const int result = look();
    seal();
    return result;
  }

  int next(ASGST_Frame* frame) {
    const int result = look();
    const AsyncStackWalker::Frame& next = _state.next;
    if (result < 0) *frame = {};
    if (result == 0 && is_before_java()) {
      *frame = {};
      frame->type = ASGST_FRAME_JAVA;
      frame->pc = reinterpret_cast<void*>(next.pc);
      frame->sp = reinterpret_cast<void*>(next.sp);
      frame->fp = reinterpret_cast<void*>(next.fp);
    }
    if (result == 1) {
      _state.looked = false;
      frame->type = static_cast<uint8_t>(next.type);
      frame->comp_level = next.comp_level;
      frame->bci = next.bci;
      frame->method = next.method;
      frame->pc = reinterpret_cast<void*>(next.pc);
      frame->sp = reinterpret_cast<void*>(next.sp);
      frame->fp = reinterpret_cast<void*>(next.fp);
    }
    seal();
    return result;
  }

  void* mark() const { return _state.looked ? _state.walker.ended_at_mark() : nullptr; }

  // Whether there is, at any address, an iteration with this ticket, as it was left.
  static bool is_whole(uintptr_t iteration, uintptr_t ticket) {
    const uintptr_t* const words = reinterpret_cast<const uintptr_t*>(iteration);
    const size_t count = sizeof(Iteration) / sizeof(uintptr_t) - 1;
    uintptr_t sum = iteration;
    for (size_t i = 0; i < count; i++) sum = mixed(sum, fetch(words + i));
    return fetch(words + count - 1) == ticket && fetch(words + count) == sum;
  }

 private:
  struct State {
    explicit State(const AsyncStackIterator::Source& s)
        : source(s), walker(s.walker), has_first(s.has_first), error(s.error) {}
    const AsyncStackIterator::Source source;
    AsyncStackWalker walker;
    AsyncStackWalker::Frame next = {};
    bool has_first;  // still to be given
    int error;       // below 0: there is no frame any more, but this
    bool looked = false;
    bool has_next = false;
  };

  static uintptr_t mixed(uintptr_t sum, uintptr_t word) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
    return sum ^ (sum >> 29);
  }
  static uintptr_t fetch(const uintptr_t* word) {
    return static_cast<uintptr_t>(
        SafeFetchN(reinterpret_cast<intptr_t*>(const_cast<uintptr_t*>(word)), 0));
  }

  void seal() {
    const uintptr_t* const words = reinterpret_cast<const uintptr_t*>(this);
    uintptr_t sum = p2u(this);
    for (size_t i = 0; i < sizeof(Iteration) / sizeof(uintptr_t) - 1; i++) {
      sum = mixed(sum, words[i]);
    }
    _seal = sum;
  }

  // What next() will return; looks one frame ahead.
  int look() {
    if (_state.error == 0 && !_state.looked) {
      if (_state.has_first) {
        _state.next = _state.source.first;
        _state.has_next = true;
      } else if (!_state.source.other_thread) {
        step(&_state);
      } else if (!AsyncCrashProtection::call(&step, &_state)) {
        _state.error = ASGST_CONTAINED_FAULT;
      }
      _state.has_first = false;
      _state.looked = true;
    }
    if (_state.error < 0) return _state.error;
    if (is_before_java()) return ASGST_NO_FRAME;
    return _state.has_next ? 1 : code_of(_state.walker);
  }

  // With ASGST_END_ON_FIRST_JAVA_FRAME: the frame that comes is left to who asked for that.
  bool is_before_java() const {
    return _state.source.to_first_java_frame && _state.has_next &&
           (_state.next.type == AsyncStackWalker::FrameType::java ||
            _state.next.type == AsyncStackWalker::FrameType::java_inlined);
  }

  static void step(void* state) {
    State* const at = static_cast<State*>(state);
    at->has_next = at->walker.next(&at->next);
  }

  static int code_of(const AsyncStackWalker& walker) {
    switch (walker.stop()) {
      case AsyncStackWalker::Stop::bad_stack:
        return ASGST_STOPPED_BAD_STACK;
      case AsyncStackWalker::Stop::bad_pc:
        return ASGST_STOPPED_BAD_PC;
      case AsyncStackWalker::Stop::bad_frame:
        return ASGST_STOPPED_BAD_FRAME;
      case AsyncStackWalker::Stop::no_unwind_info:
        return ASGST_STOPPED_NO_UNWIND_INFO;
      case AsyncStackWalker::Stop::too_deep:
        return ASGST_STOPPED_TOO_DEEP;
      case AsyncStackWalker::Stop::none:
      case AsyncStackWalker::Stop::end:
        break;
    }
    if (walker.ended_at_mark() != nullptr) return ASGST_AT_FRAME_MARK;
    return walker.left_out_frozen_frames() ? ASGST_FRAMES_FROZEN : ASGST_NO_FRAME;
  }

  State _state;
  uintptr_t _ticket = 0;
  uintptr_t _seal = 0;  // of the words before it
};
static_assert(sizeof(Iteration) % sizeof(uintptr_t) == 0, "sealed word by word");

// An ASGST_Iterator* is a ticket, not an address: a number that is never given again, and a place
// in this table, so that one whose handler has returned is recognised for ever. Places whose
// handlers were left by longjmp are taken when no free one is left, the oldest first.
constexpr uint32_t kPlaceBits = 8;
constexpr uint32_t kPlaces = 1 << kPlaceBits;

// What a place holds, in one word: where the iteration is, and the number's lowest bits, which tell
// its age. Zero: free.
class Occupant {
  static const int number_bits = 64 - (48 - LogBytesPerWord);  // addresses of user space

 public:
  static uint64_t of(const Iteration* iteration, uint64_t number) {
    return (uint64_t(p2u(iteration)) >> LogBytesPerWord << number_bits) |
           (number & right_n_bits(number_bits));
  }
  static uintptr_t address(uint64_t word) { return word >> number_bits << LogBytesPerWord; }
  // How many numbers ago it came.
  static uint64_t age(uint64_t word, uint64_t number) {
    return (number - word) & right_n_bits(number_bits);
  }
};

volatile uint64_t places[kPlaces];
volatile uint64_t tickets = 0;

uint32_t oldest_place(uint64_t number) {
  uint32_t oldest = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < kPlaces; i++) {
    const uint64_t age = Occupant::age(Atomic::load(&places[i]), number);
    if (age > most) {
      oldest = i;
      most = age;
    }
  }
  return oldest;
}

ASGST_Iterator* claim(Iteration* iteration) {
  const uint64_t number = Atomic::add(&tickets, uint64_t(1));
  const uint64_t occupant = Occupant::of(iteration, number);
  for (uint32_t i = 0; i < kPlaces; i++) {
    const uint32_t place = (number + i) % kPlaces;
    if (Atomic::cmpxchg(&places[place], uint64_t(0), occupant) == 0) {
      return iteration->accept((number << kPlaceBits) | place);
    }
  }
  const uint32_t place = oldest_place(number);
  Atomic::release_store(&places[place], occupant);
  return iteration->accept((number << kPlaceBits) | place);
}

void release(ASGST_Iterator* ticket, const Iteration* iteration) {
  // Unless it was taken meanwhile.
  const uint64_t occupant = Occupant::of(iteration, p2u(ticket) >> kPlaceBits);
  Atomic::cmpxchg(&places[p2u(ticket) % kPlaces], occupant, uint64_t(0));
}

// Whether an iteration's frame is gone, because the stack has been left by longjmp to above it. On
// a stack of nobody's what lies closely below `here` is on it.
bool is_below(uintptr_t iteration, uintptr_t here) {
  if (iteration > here) return false;
  AsyncThreads::Entry stack;
  const bool known = AsyncThreads::find_by_stack(here, &stack);
  return known ? iteration >= stack.stack_low : here - iteration < 64 * K;
}

// Null for what is no ticket, or no longer.
Iteration* resolve(const ASGST_Iterator* ticket) {
  const uint64_t occupant = Atomic::load_acquire(&places[p2u(ticket) % kPlaces]);
  const uintptr_t iteration = Occupant::address(occupant);
  if (iteration == 0 || is_below(iteration, p2u(&ticket)) ||
      !Iteration::is_whole(iteration, p2u(ticket))) {
    return nullptr;
  }
  return reinterpret_cast<Iteration*>(iteration);
}

bool has(int options, int option) { return (options & option) != 0; }

int run(const AsyncStackWalker& walker, int options, int kind, ASGST_IteratorHandler fun,
        void* argument) {
  AsyncStackIterator::Source source(walker);
  source.to_first_java_frame = has(options, ASGST_END_ON_FIRST_JAVA_FRAME);
  AsyncStackIterator::run(source, fun, argument);
  return kind;
}

int error_of(AsyncWalkedThread::Refusal refusal) {
  switch (refusal) {
    case AsyncWalkedThread::Refusal::no_thread:
      return ASGST_NO_THREAD;
    case AsyncWalkedThread::Refusal::exiting:
      return ASGST_THREAD_EXIT;
    default:
      return ASGST_UNSAFE_STATE;
  }
}

// An iterator from a frame: the thread may be another one, which nothing keeps from ending.
struct Starting {
  const AsyncWalkedThread& thread;
  const AsyncContext frame;
  const int options;
  AsyncStackIterator::Source source;
  int kind;  // or error
};

void start_at_frame(void* argument) {
  Starting* const it = static_cast<Starting*>(argument);
  it->kind = AsyncStackIterator::judge(it->thread, it->options);
  if (it->kind > 0 && !it->source.walker.start_at_frame(it->frame)) {
    it->kind = ASGST_NO_TOP_JAVA_FRAME;
  }
}

}  // namespace

void AsyncStackIterator::run(const Source& source, ASGST_IteratorHandler fun, void* argument) {
  Iteration iteration(source);
  ASGST_Iterator* const ticket = claim(&iteration);
  fun(ticket, argument);
  release(ticket, &iteration);
}

AsyncStackWalker AsyncStackIterator::walker_of(const AsyncWalkedThread& thread, bool c_frames,
                                               int options) {
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), c_frames);
  if (has(options, ASGST_END_AT_CONTINUATION)) walker.end_at_continuation();
  if (has(options, ASGST_END_AT_FRAME_MARK)) AsyncFrameMarks::end_at_newest(thread, &walker);
  return walker;
}

int AsyncStackIterator::judge(const AsyncWalkedThread& thread, int options) {
  if (thread.java_thread() != nullptr) {
    const AsyncWalkedThread::Refusal refusal =
        thread.refusal(has(options, ASGST_WALK_DURING_UNSAFE_STATES));
    if (refusal != AsyncWalkedThread::Refusal::none) return ::error_of(refusal);
  } else if (!has(options, ASGST_INCLUDE_NON_JAVA_THREADS)) {
    return ASGST_NO_THREAD;
  }
  return thread.kind();
}

int AsyncStackIterator::error_of(AsyncWalkedThread::Start start) {
  return start == AsyncWalkedThread::Start::unknown_state ? ASGST_UNSAFE_STATE
                                                          : ASGST_NO_TOP_JAVA_FRAME;
}

extern "C" {

JNIEXPORT int JNICALL ASGST_Capabilities(void) { return ASGST_REGISTER_QUEUE | ASGST_MARK_FRAME; }

JNIEXPORT int JNICALL ASGST_RunWithIterator(void* ucontext, int32_t options,
                                            ASGST_IteratorHandler fun, void* argument) {
  if (fun == nullptr) return ASGST_INVALID_ARGUMENT;
  if (!AsyncCrashProtection::faults_arrive(__builtin_return_address(0))) {
    return ASGST_FAULTS_BLOCKED;
  }
  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  AsyncWalkedThread thread = AsyncWalkedThread::current();
  const int kind = AsyncStackIterator::judge(thread, options);
  if (kind <= 0) return kind;
  const bool c_frames = has(options, ASGST_INCLUDE_NON_JAVA_FRAMES);
  if (thread.java_thread() == nullptr) {
    if (!has_context) return ASGST_NO_TOP_JAVA_FRAME;
    if (thread.thread() == nullptr) thread.assume_stack(context.sp);
    AsyncStackWalker walker = AsyncStackIterator::walker_of(thread, /*c_frames=*/true, options);
    if (!walker.start_at_context(context)) return ASGST_NO_TOP_JAVA_FRAME;
    return run(walker, options, kind, fun, argument);
  }
  AsyncStackWalker walker = AsyncStackIterator::walker_of(thread, c_frames, options);
  const AsyncWalkedThread::Start start =
      thread.start(&walker, has_context ? &context : nullptr, c_frames);
  return start == AsyncWalkedThread::Start::started ? run(walker, options, kind, fun, argument)
                                                    : AsyncStackIterator::error_of(start);
}

JNIEXPORT int JNICALL ASGST_RunWithIteratorFromFrame(void* sp, void* fp, void* pc, int options,
                                                     ASGST_IteratorHandler fun, void* argument) {
  if (fun == nullptr) return ASGST_INVALID_ARGUMENT;
  if (!AsyncCrashProtection::faults_arrive(__builtin_return_address(0))) {
    return ASGST_FAULTS_BLOCKED;
  }
  AsyncWalkedThread thread;
  if (!AsyncWalkedThread::with_stack(p2u(sp), &thread)) thread.assume_stack(p2u(sp));
  const bool c_frames =
      has(options, ASGST_INCLUDE_NON_JAVA_FRAMES) || thread.java_thread() == nullptr;
  Starting starting = {
      thread,
      {p2u(pc), p2u(sp), p2u(fp), nullptr},
      options,
      AsyncStackIterator::Source(AsyncStackIterator::walker_of(thread, c_frames, options)),
      0};
  starting.source.other_thread =
      thread.thread() != nullptr && thread.thread() != Thread::current_or_null_safe();
  if (!starting.source.other_thread) {
    start_at_frame(&starting);
  } else if (!AsyncCrashProtection::call(&start_at_frame, &starting)) {
    return ASGST_CONTAINED_FAULT;
  }
  starting.source.to_first_java_frame = has(options, ASGST_END_ON_FIRST_JAVA_FRAME);
  if (starting.kind > 0) AsyncStackIterator::run(starting.source, fun, argument);
  return starting.kind;
}

JNIEXPORT int JNICALL ASGST_NextFrame(ASGST_Iterator* iterator, ASGST_Frame* frame) {
  Iteration* const iteration = resolve(iterator);
  if (iteration == nullptr) {
    if (frame != nullptr) *frame = {};
    return ASGST_INVALID_ITERATOR;
  }
  return frame == nullptr ? ASGST_INVALID_ARGUMENT : iteration->next(frame);
}

JNIEXPORT void JNICALL ASGST_RewindIterator(ASGST_Iterator* iterator) {
  Iteration* const iteration = resolve(iterator);
  if (iteration != nullptr) iteration->rewind();
}

JNIEXPORT int JNICALL ASGST_State(ASGST_Iterator* iterator) {
  if (iterator == nullptr) return ASGST_NO_FRAME;
  Iteration* const iteration = resolve(iterator);
  return iteration == nullptr ? ASGST_INVALID_ITERATOR : iteration->state();
}

JNIEXPORT ASGST_FrameMark* JNICALL ASGST_GetFrameMark(ASGST_Iterator* iterator) {
  const Iteration* const iteration = resolve(iterator);
  return iteration == nullptr ? nullptr : static_cast<ASGST_FrameMark*>(iteration->mark());
}

JNIEXPORT int JNICALL ASGST_ThreadState(void) {
  const AsyncWalkedThread thread = AsyncWalkedThread::current();
  return thread.java_thread() == nullptr ? 0 : thread.jvmti_state();
}

}  // extern "C"
