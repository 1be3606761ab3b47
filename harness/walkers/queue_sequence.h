// Sequences of calls to safepoint queues and frame marks (Input::queue_calls), each checked against a
// plain model of them. A halted thread comes to no poll: framestorm_queues.cpp of the instrumented JDK
// has it poll where it is, leave frames, and end.
#pragma once

#include <profile2.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "harness/input/input.h"
#include "harness/walkers/iterator_sequence.h"
#include "harness/walkers/mark_model.h"
#include "harness/walkers/queue_memory.h"
#include "harness/walkers/queue_model.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// Throws SetupError when one is missing.
struct QueueApi {
  explicit QueueApi(const Exports& exports);

  decltype(&ASGST_RunWithIterator) run;
  decltype(&ASGST_RunWithIterator) run_with_sample;  // framestorm_run_with_sample
  decltype(&ASGST_NextFrame) next;
  decltype(&ASGST_State) state;
  decltype(&ASGST_RegisterQueue) register_queue;
  decltype(&ASGST_DeregisterQueue) deregister;
  decltype(&ASGST_Enqueue) enqueue;
  decltype(&ASGST_GetEnqueuableElement) enqueuable;
  decltype(&ASGST_GetQueueElement) element;
  decltype(&ASGST_ResizeQueue) resize;
  decltype(&ASGST_GetQueueSizeInfo) size_info;
  decltype(&ASGST_SetOnQueueProcessingStart) on_start;
  decltype(&ASGST_SetOnQueueProcessingEnd) on_end;
  decltype(&ASGST_RegisterFrameMark) register_mark;
  decltype(&ASGST_MoveFrameMark) move_mark;
  decltype(&ASGST_GetFrameMarkStackPointer) stack_pointer;
  decltype(&ASGST_RemoveFrameMark) remove_mark;
  decltype(&ASGST_GetFrameMark) mark_of;
  // framestorm_queues_...
  void (*reserve_marks)(int count);
  int (*begin)(void* (*allocate)(size_t), void (*release)(void*), void* ucontext);
  void (*poll)(void* ucontext);
  uintptr_t (*poll_word)();
  void (*return_frame)(void* sp);
  void (*unwind)(void* sp);
  void* (*continuation)();
  void (*freeze)();
  void (*throw_to_frozen)();
  void (*leave_java)();
  void (*exit)();
  void (*end)();
};

class QueueSequence {
 public:
  explicit QueueSequence(const Exports& exports);

  // Makes the calls on a thread that stands at `context`. What is wrong goes to facts->complaints.
  // Signal context; may be abandoned anywhere, and then wants abandoned().
  void run(std::span<const QueueCall> calls, void* context, int options, WalkFacts* facts);
  void abandoned();

 private:
  // Contexts that elements are noted of: the walk's, that with the registers of its n-th frame, none.
  static constexpr size_t kContexts = size_t{kMaxIteratorArgument} + 2;
  static constexpr size_t kNoContext = kContexts - 1;
  // What comes after so many frames is not looked at.
  static constexpr size_t kMostFrames = 128;

  // A walk without a queue.
  struct Walked {
    bool made = false;
    int result = 0;
    std::array<ASGST_Frame, kMostFrames> frames;
    size_t count = 0;
    int end = 0;                 // what came after the frames: 1 when there are more
    const void* mark = nullptr;  // that it has ended at
    std::span<const ASGST_Frame> list() const { return std::span(frames).first(count); }
  };
  struct Slot {
    QueueSequence* sequence;
    size_t index;
  };

  void execute();
  void step(const QueueCall& call);
  void register_queue(int size);
  void enqueue(size_t origin);
  void element(int n, bool change);
  void enqueuable();
  void set_on_safepoint(bool start, int how);
  void poll(bool exits);
  void select(size_t choice);
  void check_end();
  void check_iterator_left();

  // mark_sequence.cpp
  void step_of_marks(const QueueCall& call);
  bool check_marks();
  void register_mark();
  void move_mark(size_t frame);
  void walk_to_mark();
  void leave_frames(QueueCallKind how, size_t frame);
  template <typename Leave>
  void leave_to(uintptr_t stay, Leave leave);
  void leave_java();
  void check_poll_word();
  static void on_left(ASGST_FrameMark* mark, ASGST_Iterator* iterator, void* slot);
  void compare_staying(ASGST_Iterator* iterator);
  bool complain_of_frame(std::string_view clause, ComplaintScope scope, const ASGST_Frame& frame,
                         const ASGST_Frame& wanted, size_t index);
  const Walked& java_frames();

  // queue_handlers.cpp
  bool enter(const Slot& slot, QueueModel::EventKind kind, QueueModel::Event* event);
  // `wanted`: null when the thread ends.
  void handle(ASGST_Iterator* iterator, const Walked* wanted, bool may_be_left);
  void compare(ASGST_Iterator* iterator, const Walked* wanted, bool may_be_left);
  static void on_element(ASGST_Iterator* iterator, void* slot, void* argument);
  static void on_safepoint(ASGST_Queue* queue, ASGST_Iterator* iterator, void* slot,
                           QueueModel::EventKind kind);

  void* context_of(size_t origin);
  const Walked& walked(size_t origin);
  const Walked& walked_at_safepoint();
  void record(Walked* into, void* context, int options, decltype(&ASGST_RunWithIterator) by);

  void complain(std::string_view clause, ComplaintScope scope, std::string_view what, int64_t got,
                int64_t wanted);
  // The model and the VM do not mean the same queue any more.
  void give_up() { lost_ = true; }

  QueueApi api_;
  QueueModel model_;
  MarkModel marks_;
  std::unique_ptr<QueueMemory> memory_;
  std::array<Slot, std::max(QueueModel::kMostQueues, MarkModel::kMostMarks)> slots_;
  std::unique_ptr<std::array<Walked, kContexts>> walked_;
  std::unique_ptr<Walked> at_safepoint_;
  std::unique_ptr<Walked> java_;  // its frames of Java
  std::unique_ptr<Walked> whole_;
  std::unique_ptr<Walked> to_mark_;
  ucontext_t of_frame_;

  WalkFacts* facts_ = nullptr;
  std::span<const QueueCall> calls_;
  size_t at_ = 0;  // the call being made
  void* context_ = nullptr;
  int options_ = 0;
  const void* chosen_ = nullptr;
  const void* chosen_mark_ = nullptr;
  uintptr_t next_argument_ = 1;
  bool in_handler_ = false;
  bool in_mark_handler_ = false;
  bool lost_ = false;
  ASGST_Iterator* last_iterator_ = nullptr;
};

}  // namespace framestorm
