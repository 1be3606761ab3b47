#include "harness/walkers/frame_marks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace framestorm {
namespace {

// A mark near the top is one of so many frames below it.
constexpr size_t kNearTop = 4;
// So many frames in a row are tried: some cannot be marked.
constexpr size_t kTries = 8;
// A thread that could not have marks is asked for again after so many walks: it may be another one by
// then.
constexpr uint32_t kAskAgain = 64;

}  // namespace

FrameMarks::Api::Api(const Exports& exports) {
  run = exports.require("ASGST_RunWithIterator");
  next = exports.require("ASGST_NextFrame");
  register_queue = exports.require("ASGST_RegisterQueue");
  enqueue = exports.require("ASGST_Enqueue");
  size_info = exports.require("ASGST_GetQueueSizeInfo");
  register_mark = exports.require("ASGST_RegisterFrameMark");
  move = exports.require("ASGST_MoveFrameMark");
  stack_pointer = exports.require("ASGST_GetFrameMarkStackPointer");
  mark_of = exports.require("ASGST_GetFrameMark");
}

FrameMarks& FrameMarks::of(const Exports& exports) {
  static std::mutex mutex;
  // Never freed: handlers and the thread use them.
  static auto& all = *std::make_unique<std::map<void*, std::unique_ptr<FrameMarks>>>().release();
  const std::lock_guard lock(mutex);
  std::unique_ptr<FrameMarks>& one = all[exports.require(WalkerId::asgst_mark)];
  if (one == nullptr) one.reset(new FrameMarks(exports));
  return *one;
}

FrameMarks::FrameMarks(const Exports& exports) : api_(exports), jni_env_(exports.jni_env) {
  for (OfThread& one : threads_) one.all = this;
  sem_init(&asked_, 0, 0);
  std::thread([this] { serve(); }).detach();
}

FrameMarks::OfThread* FrameMarks::find(const void* java_thread) {
  const auto found = std::ranges::find_if(threads_, [=](const OfThread& one) {
    return one.thread.load(std::memory_order_acquire) == java_thread;
  });
  return found == threads_.end() ? nullptr : &*found;
}
const FrameMarks::OfThread* FrameMarks::find(const void* java_thread) const {
  return const_cast<FrameMarks*>(this)->find(java_thread);
}

bool FrameMarks::has_ended(const OfThread& one) const {
  return api_.size_info(one.queue.load(std::memory_order_relaxed)).capacity == 0;
}

bool FrameMarks::is_known(const void* java_thread) const {
  const OfThread* const one = find(java_thread);
  return one != nullptr && one->state.load(std::memory_order_acquire) == State::known &&
         !has_ended(*one);
}

const IteratorWalker::Rest* FrameMarks::callers(const void* java_thread, ASGST_Iterator* iterator,
                                                int32_t options) const {
  const OfThread* const one = find(java_thread);
  if (one == nullptr || one->state.load(std::memory_order_acquire) != State::known) return nullptr;
  const ASGST_FrameMark* const mark = api_.mark_of(iterator);
  for (const Kept& kept : *one->marks) {
    if (mark != nullptr && kept.mark.load() == mark) return &kept.callers[way_of(options)];
  }
  return nullptr;
}

bool FrameMarks::is_wanted(const void* java_thread) const {
  const OfThread* const one = find(java_thread);
  return one != nullptr && one->state.load(std::memory_order_acquire) == State::known &&
         api_.size_info(one->queue.load()).size != 0;
}

void FrameMarks::want(const void* java_thread, void* context) {
  if (java_thread == nullptr) return;
  OfThread* const one = find(java_thread);
  const State state = one == nullptr ? State::free : one->state.load(std::memory_order_acquire);
  const bool may_be_another = state == State::refused && ++one->walks % kAskAgain == 0;
  if (state == State::free || may_be_another || (state == State::known && has_ended(*one))) {
    ask(java_thread);
    return;
  }
  if (state != State::known) return;
  const bool all_set = std::ranges::all_of(*one->marks, [this](const Kept& kept) {
    return api_.stack_pointer(kept.mark.load()) != nullptr;
  });
  if (!all_set && api_.size_info(one->queue.load()).size == 0) {
    api_.enqueue(one->queue.load(), context, nullptr);
  }
}

void FrameMarks::ask(const void* java_thread) {
  const auto take = [&](OfThread& one, State from) {
    if (!one.state.compare_exchange_strong(from, State::taken)) return false;
    one.thread.store(java_thread, std::memory_order_release);
    one.state.store(State::asked, std::memory_order_release);
    sem_post(&asked_);
    return true;
  };
  if (OfThread* const one = find(java_thread)) {
    take(*one, one->state.load());
    return;
  }
  for (OfThread& one : threads_) {
    if (take(one, State::free)) return;
  }
  // Those of threads that have ended.
  for (OfThread& one : threads_) {
    const State state = one.state.load();
    const bool is_over = state == State::refused || (state == State::known && has_ended(one));
    if (is_over && take(one, state)) return;
  }
}

void FrameMarks::serve() {
  for (;;) {
    while (sem_wait(&asked_) != 0) {
    }
    for (OfThread& one : threads_) {
      if (one.state.load(std::memory_order_acquire) == State::asked) know(&one);
    }
  }
}

// The VM refuses what is no thread of Java's, or is none any more.
void FrameMarks::know(OfThread* one) {
  const auto thread = reinterpret_cast<uintptr_t>(one->thread.load());
  auto* const env = reinterpret_cast<JNIEnv*>(thread + jni_env_);
  if (one->marks == nullptr) one->marks = std::make_unique<Marks>().release();
  one->random = thread | 1;
  ASGST_Queue* const queue = api_.register_queue(
      env, 1, 0,
      [](ASGST_Iterator*, void* self, void*) {
        auto* const of = static_cast<OfThread*>(self);
        of->all->mark_some(of);
      },
      one);
  one->queue.store(queue);
  bool has_all = queue != nullptr;
  for (Kept& kept : *one->marks) {
    // That its frame was left is seen by the mark.
    const auto on_left = [](ASGST_FrameMark*, ASGST_Iterator*, void*) {};
    kept.mark.store(has_all ? api_.register_mark(env, on_left, 0, nullptr) : nullptr);
    has_all = has_all && kept.mark.load() != nullptr;
  }
  one->state.store(has_all ? State::known : State::refused, std::memory_order_release);
}

void FrameMarks::mark_some(OfThread* self) {
  if (self->state.load(std::memory_order_acquire) != State::known) return;
  const auto any_below = [self](size_t bound) {
    self->random = self->random * 6364136223846793005U + 1442695040888963407U;
    return static_cast<size_t>(self->random >> 33) % bound;
  };
  bool near_top = true;
  for (Kept& kept : *self->marks) {
    const size_t bound = near_top ? kNearTop : kMostFrames;
    near_top = false;
    if (api_.stack_pointer(kept.mark.load()) != nullptr || !keep_stacks(&kept)) continue;
    const Stack& stack = kept.stacks[0];
    size_t frame = any_below(std::min(bound, stack.depth));
    for (size_t i = 0; i < kTries && frame < stack.depth && !mark(&kept, frame); ++i) ++frame;
  }
}

// Nothing is marked: a signal handler finds nothing of it meanwhile.
bool FrameMarks::keep_stacks(Kept* kept) const {
  struct Copying {
    const Api& api;
    Stack& stack;
  };
  for (size_t way = 0; way < kWays; ++way) {
    Stack& stack = kept->stacks[way];
    Copying copying = {api_, stack};
    stack.depth = 0;
    stack.end = 1;
    const int result = api_.run(
        nullptr, options_of(way),
        [](ASGST_Iterator* iterator, void* argument) {
          auto& [api, to] = *static_cast<Copying*>(argument);
          while (to.depth < kMostFrames) {
            to.end = api.next(iterator, &to.frames[to.depth]);
            if (to.end != 1) return;
            ++to.depth;
          }
        },
        &copying);
    if (result <= 0 || stack.depth == 0 || stack.end == 1) return false;
  }
  return true;
}

// The frame of the first way, with all that is inlined into it.
bool FrameMarks::mark(Kept* kept, size_t frame) const {
  void* const sp = kept->stacks[0].frames[frame].sp;
  const auto is_it = [sp](const ASGST_Frame& each) {
    return each.sp == sp && each.type != ASGST_FRAME_NON_JAVA;
  };
  for (size_t way = 0; way < kWays; ++way) {
    const Stack& stack = kept->stacks[way];
    const auto frames = std::span(stack.frames).first(stack.depth);
    const auto last = std::ranges::find_if(frames.rbegin(), frames.rend(), is_it);
    const auto callers = static_cast<size_t>(frames.rend() - last);
    // A walk that ended before, where a continuation began, comes to the mark once that has yielded.
    kept->callers[way] = last == frames.rend()
                             ? kept->callers[way % 2]
                             : IteratorWalker::Rest{frames.subspan(callers), stack.end};
  }
  api_.move(kept->mark.load(), sp);
  return api_.stack_pointer(kept->mark.load()) != nullptr;
}

}  // namespace framestorm
