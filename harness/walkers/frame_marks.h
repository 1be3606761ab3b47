// Frame marks of profile2.h as a profiler uses them: a thread's callers are walked and kept at a poll
// of its own, and a frame of it is marked. Walks end at the mark, and what was kept follows.
//
//   a walk: nothing is marked ──Enqueue──> the thread polls: its stack is walked, frames are marked
//                ^                                                        │
//                └──── the frame is left: the VM takes the mark away <──── walks end at it
#pragma once

#include <profile2.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "harness/walkers/iterator_walker.h"
#include "harness/walkers/walker.h"

namespace framestorm {

class FrameMarks {
 public:
  // The one for the JVM that has these exports: adapters of one JVM share the threads' marks. Lives
  // until the process ends, since the VM calls it. Throws SetupError when a function is missing.
  static FrameMarks& of(const Exports& exports);

  // All that follow: in signal context, on the thread or while it is halted.

  // What was kept of the frame that an iterator has ended at; nothing when nobody knows that mark.
  // Valid until the thread runs on.
  const IteratorWalker::Rest* callers(const void* java_thread, ASGST_Iterator* iterator,
                                      int32_t options) const;
  // Has the thread mark frames at its next poll, where it has none that are.
  void want(const void* java_thread, void* context);
  // Whether it is going to: its poll was armed for that.
  bool is_wanted(const void* java_thread) const;
  // Whether the thread is known by now, and may have marks. A thread of the harness's own sees to
  // that, since no handler may.
  bool is_known(const void* java_thread) const;

 private:
  static constexpr size_t kMostThreads = 256;
  // Of deeper stacks no frame is marked.
  static constexpr size_t kMostFrames = 512;
  // By the options that decide which frames are given.
  static constexpr size_t kWays = 4;

  struct Api {
    explicit Api(const Exports& exports);
    decltype(&ASGST_RunWithIterator) run;
    decltype(&ASGST_NextFrame) next;
    decltype(&ASGST_RegisterQueue) register_queue;
    decltype(&ASGST_Enqueue) enqueue;
    decltype(&ASGST_GetQueueSizeInfo) size_info;
    decltype(&ASGST_RegisterFrameMark) register_mark;
    decltype(&ASGST_MoveFrameMark) move;
    decltype(&ASGST_GetFrameMarkStackPointer) stack_pointer;
    decltype(&ASGST_GetFrameMark) mark_of;
  };
  struct Stack {
    std::array<ASGST_Frame, kMostFrames> frames;
    size_t depth = 0;
    int end = ASGST_NO_FRAME;  // what came after the frames
  };
  struct Kept {
    std::atomic<ASGST_FrameMark*> mark{nullptr};
    std::array<Stack, kWays> stacks;
    std::array<IteratorWalker::Rest, kWays> callers;
  };
  // Of one thread: near its top, and anywhere.
  using Marks = std::array<Kept, 2>;
  enum class State : uint8_t { free, taken, asked, known, refused };
  struct OfThread {
    FrameMarks* all = nullptr;
    std::atomic<State> state{State::free};
    std::atomic<const void*> thread{nullptr};
    std::atomic<ASGST_Queue*> queue{nullptr};
    Marks* marks = nullptr;  // there when `known`
    uint32_t walks = 0;
    uint64_t random = 1;
  };

  explicit FrameMarks(const Exports& exports);

  OfThread* find(const void* java_thread);
  const OfThread* find(const void* java_thread) const;
  bool has_ended(const OfThread& one) const;
  void ask(const void* java_thread);
  // The harness's thread.
  void serve();
  void know(OfThread* one);
  // At a poll of the thread.
  void mark_some(OfThread* self);
  bool keep_stacks(Kept* kept) const;
  bool mark(Kept* kept, size_t frame) const;

  static constexpr size_t way_of(int32_t options) {
    return ((options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0 ? 1U : 0U) +
           ((options & ASGST_END_AT_CONTINUATION) != 0 ? 2U : 0U);
  }
  static constexpr int32_t options_of(size_t way) {
    return (way % 2 != 0 ? ASGST_INCLUDE_NON_JAVA_FRAMES : 0) |
           (way / 2 != 0 ? ASGST_END_AT_CONTINUATION : 0);
  }

  const Api api_;
  const size_t jni_env_;
  sem_t asked_;
  std::array<OfThread, kMostThreads> threads_;
};

}  // namespace framestorm
