// Holds frame marks (profile2.h) to the truth in any program: a JVMTI agent that walks each Java thread
// in a signal handler twice, wholly and down to the newest mark. The frames of the second walk and the
// callers that were kept when the mark was set have to be the first one's frames.
//
//   java -agentpath:libmark_agent.so=interval=1000,output=mark.json ...
//
// Handlers of a queue, and those of the marks themselves, set two marks for each thread, at frames
// chosen at random. The file says when the program ended: how many samples ended at a mark, and how
// many of them were put together right.
//
// It is also the native half of MarkCases.java and MarkCost.java; with the option `natives` it is
// nothing else.
#include "harness/hotspot/queue_test/sampling_agent.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>

// After jni.h and jvmti.h: it is of the JDK under test, they may be of another.
#include "profile2.h"

namespace {

constexpr size_t kMaxDepth = 1200;
constexpr size_t kNearTop = 12;

struct Walked {
  ASGST_Method method;
  int bci;
  int comp_level;
  uint8_t type;
  void* pc;
  void* sp;
  bool operator==(const Walked&) const = default;
};

struct Trace {
  size_t depth = 0;
  int state = 0;
  ASGST_FrameMark* mark = nullptr;
  std::array<Walked, kMaxDepth> frames;

  bool is_cut() const { return depth == kMaxDepth; }
  // It came to the stack's end, or as far as signal handlers see.
  bool is_whole() const { return state == ASGST_NO_FRAME || state == ASGST_FRAMES_FROZEN; }
};

void copy(ASGST_Iterator* iterator, void* argument) {
  auto* trace = static_cast<Trace*>(argument);
  ASGST_Frame frame;
  trace->depth = 0;
  while (trace->depth < kMaxDepth && ASGST_NextFrame(iterator, &frame) == 1) {
    trace->frames[trace->depth++] = {frame.method, frame.bci, frame.comp_level,
                                     frame.type,   frame.pc,  frame.sp};
  }
  trace->state = trace->is_cut() ? 1 : ASGST_State(iterator);
  trace->mark = trace->is_cut() ? nullptr : ASGST_GetFrameMark(iterator);
}

// A mark, and the callers of its frame.
struct Kept {
  ASGST_FrameMark* mark = nullptr;
  Trace callers;
};

// Of one thread; never freed, since a signal may come late.
struct OfThread {
  ASGST_Queue* queue = nullptr;
  timer_t timer{};
  std::array<Kept, 2> kept;
  Trace stack;  // of handlers
  Trace whole;  // of the signal handler
  Trace part;
  uint64_t random = 0x9e3779b97f4a7c15;

  size_t below(size_t bound) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random % bound;
  }
};
thread_local OfThread* of_thread = nullptr;

std::atomic<long> samples{0}, at_mark{0}, right{0}, wrong{0}, passed_by{0}, short_walks{0};
std::atomic<long> set{0}, refused{0}, told{0}, told_wrong{0};
struct Finding {
  Trace whole;
  Trace part;
  Trace kept;
} first_wrong;  // printed when the program ends
std::atomic<bool> running{false};
std::mutex print_mutex;
long interval_us = 1000;
std::string output = "mark.json";

std::string name_of(ASGST_Method method) {
  std::array<char, 200> method_name{};
  ASGST_MethodInfo info{};
  info.method_name = method_name.data();
  info.method_name_length = method_name.size();
  return ASGST_GetMethodInfo(method, &info) == 1 ? method_name.data() : "?";
}

// Allocates.
void print(const char* what, const Trace& trace) {
  std::fprintf(stderr, "%s, %zu frames, state %d:\n", what, trace.depth, trace.state);
  for (size_t i = 0; i < std::min<size_t>(trace.depth, 24); ++i) {
    const Walked& frame = trace.frames[i];
    std::fprintf(stderr, "  %s bci %d level %d type %d pc %p sp %p\n",
                 name_of(frame.method).c_str(), frame.bci, frame.comp_level, frame.type, frame.pc,
                 frame.sp);
  }
}

// Keeps the callers of a frame of the stack, and marks it.
void keep(OfThread* self, Kept* kept, size_t frame) {
  const Trace& stack = self->stack;
  void* const sp = stack.frames[frame].sp;
  // What is inlined comes before the frame that it is in.
  while (frame < stack.depth && stack.frames[frame].sp == sp) ++frame;
  // A signal handler finds no mark while the callers are copied.
  ASGST_MoveFrameMark(kept->mark, nullptr);
  kept->callers.depth = stack.depth - frame;
  kept->callers.state = stack.state;
  std::copy(stack.frames.begin() + static_cast<long>(frame),
            stack.frames.begin() + static_cast<long>(stack.depth), kept->callers.frames.begin());
  ASGST_MoveFrameMark(kept->mark, sp);
  (ASGST_GetFrameMarkStackPointer(kept->mark) == sp ? set : refused).fetch_add(1);
}

// At a poll of the thread. A mark that marks a frame mostly stays.
void keep_some(OfThread* self) {
  if (ASGST_RunWithIterator(nullptr, 0, &copy, &self->stack) <= 0 || self->stack.depth == 0 ||
      !self->stack.is_whole()) {
    return;
  }
  for (size_t i = 0; i < self->kept.size(); ++i) {
    Kept& kept = self->kept[i];
    if (ASGST_GetFrameMarkStackPointer(kept.mark) != nullptr && self->below(4) != 0) continue;
    const size_t bound = i == 0 ? std::min(self->stack.depth, kNearTop) : self->stack.depth;
    keep(self, &kept, self->below(bound));
  }
}

void on_left(ASGST_FrameMark* mark, ASGST_Iterator* iterator, void*) {
  OfThread* const self = of_thread;
  if (self == nullptr || !running.load()) return;
  told.fetch_add(1);
  for (Kept& kept : self->kept) {
    if (kept.mark != mark) continue;
    ASGST_Frame caller{};
    const int state = ASGST_NextFrame(iterator, &caller);
    const bool is_caller = state == 1 && kept.callers.depth > 0 &&
                           caller.method == kept.callers.frames[0].method &&
                           caller.bci == kept.callers.frames[0].bci;
    // A frame that comes out of the heap, or the carrier's, when a virtual thread yields.
    const bool is_virtual =
        state == 1 && (caller.sp == nullptr || kept.callers.depth == 0 ||
                       caller.type == ASGST_FRAME_CONTINUATION ||
                       caller.type == ASGST_FRAME_CONTINUATION_FROZEN ||
                       kept.callers.frames[0].type == ASGST_FRAME_CONTINUATION_FROZEN);
    const bool is_last = state == ASGST_NO_TOP_JAVA_FRAME || state == ASGST_NO_FRAME;
    if (!is_caller && !is_virtual && !(is_last && kept.callers.depth == 0) &&
        told_wrong.fetch_add(1) < 5) {
      const std::lock_guard lock(print_mutex);
      std::fprintf(stderr, "told of a caller: state %d, %s bci %d type %d\n", state,
                   name_of(caller.method).c_str(), caller.bci, caller.type);
      print("kept callers", kept.callers);
    }
  }
  if (self->below(2) == 0) keep_some(self);
}

void on_sample(ASGST_Iterator*, void*, void*) {
  if (of_thread != nullptr) keep_some(of_thread);
}

// The frames of `part` and those that are kept, against the whole.
bool is_put_together(const Trace& part, const Trace& kept, const Trace& whole) {
  const size_t depth = std::min(part.depth + kept.depth, kMaxDepth);
  if (!whole.is_cut() && !kept.is_cut() && depth != whole.depth) return false;
  for (size_t i = 0; i < std::min(depth, whole.depth); ++i) {
    const Walked& frame = i < part.depth ? part.frames[i] : kept.frames[i - part.depth];
    if (frame != whole.frames[i]) return false;
  }
  return true;
}

// Async-signal-safe.
void on_signal(int, siginfo_t*, void* ucontext) {
  const int saved = errno;
  OfThread* const self = of_thread;
  if (self != nullptr && running.load(std::memory_order_relaxed)) {
    if (ASGST_RunWithIterator(ucontext, 0, &copy, &self->whole) == ASGST_JAVA_TRACE &&
        ASGST_RunWithIterator(ucontext, ASGST_END_AT_FRAME_MARK, &copy, &self->part) ==
            ASGST_JAVA_TRACE) {
      samples.fetch_add(1);
      const Kept* kept = nullptr;
      bool is_set = false;
      for (const Kept& each : self->kept) {
        is_set = is_set || ASGST_GetFrameMarkStackPointer(each.mark) != nullptr;
        if (self->part.state == ASGST_AT_FRAME_MARK && each.mark == self->part.mark) kept = &each;
      }
      if (!self->whole.is_cut() && !self->whole.is_whole()) {
        short_walks.fetch_add(1);
      } else if (kept != nullptr) {
        at_mark.fetch_add(1);
        if (is_put_together(self->part, kept->callers, self->whole)) {
          right.fetch_add(1);
        } else if (wrong.fetch_add(1) == 0) {
          first_wrong = {self->whole, self->part, kept->callers};
        }
      } else if (is_set) {
        passed_by.fetch_add(1);
      }
    }
    ASGST_Enqueue(self->queue, ucontext, nullptr);
  }
  errno = saved;
}

void JNICALL on_thread_start(jvmtiEnv*, JNIEnv* jni, jthread) {
  auto* self = new OfThread;
  self->random += static_cast<uint64_t>(gettid());
  self->queue = ASGST_RegisterQueue(jni, 4, 0, &on_sample, nullptr);
  for (Kept& kept : self->kept) {
    kept.mark = ASGST_RegisterFrameMark(jni, &on_left, 0, nullptr);
    if (kept.mark == nullptr || self->queue == nullptr) {
      std::fprintf(stderr, "mark_agent: no mark or no queue\n");
      return;
    }
  }
  of_thread = self;
  self->timer = sampling_agent::make_timer();
  sampling_agent::set_timer(self->timer, interval_us, interval_us);
}

void JNICALL on_thread_end(jvmtiEnv*, JNIEnv*, jthread) {
  if (of_thread != nullptr) timer_delete(of_thread->timer);
}

void JNICALL on_vm_init(jvmtiEnv*, JNIEnv* jni, jthread thread) {
  running.store(true);
  on_thread_start(nullptr, jni, thread);
}

void JNICALL on_vm_death(jvmtiEnv*, JNIEnv*) {
  running.store(false);
  usleep(100'000);  // handlers that run
  if (wrong != 0) {
    print("whole", first_wrong.whole);
    print("walked part", first_wrong.part);
    print("kept part", first_wrong.kept);
  }
  std::ofstream out(output);
  out << "{\"samples\": " << samples << ", \"at_mark\": " << at_mark << ", \"right\": " << right
      << ", \"wrong\": " << wrong << ", \"passed_by\": " << passed_by
      << ", \"short\": " << short_walks << ", \"set\": " << set << ", \"refused\": " << refused
      << ", \"told\": " << told << ", \"told_wrong\": " << told_wrong << "}\n";
}

// ---- Of MarkCases.java --------------------------------------------------------------------------

struct Case {
  ASGST_FrameMark* mark = nullptr;
  ASGST_Method caller = nullptr;  // of the marked frame
  bool is_in_heap = false;
  std::atomic<int> told{0};
  std::atomic<int> order{0};
};
std::array<Case, 1024> cases;
std::atomic<size_t> next_case{0};
std::atomic<int> next_order{1};
std::atomic<int> wrong_callers{0};
jvmtiEnv* jvmti_of_cases = nullptr;

void on_case(ASGST_FrameMark* mark, ASGST_Iterator* iterator, void* argument) {
  auto* const it = static_cast<Case*>(argument);
  ASGST_Frame caller{};
  const bool has_caller = ASGST_NextFrame(iterator, &caller) == 1;
  const bool yields = caller.type == ASGST_FRAME_CONTINUATION;
  // An error is no end at another mark.
  const bool ends_at_mark =
      ASGST_State(iterator) == ASGST_NO_TOP_JAVA_FRAME && ASGST_GetFrameMark(iterator) != nullptr;
  if (it->mark != mark || ASGST_GetFrameMarkStackPointer(mark) != nullptr || ends_at_mark ||
      (!yields && !it->is_in_heap && it->caller != (has_caller ? caller.method : nullptr))) {
    wrong_callers.fetch_add(1);
  }
  it->order.store(next_order.fetch_add(1));
  it->told.fetch_add(1);
}

bool enters_continuation(const Walked& frame) {
  return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
}

// Marks the physical frame that is `up` calls above the topmost; -1: the outermost, -2: of a virtual
// thread.
bool move(Case* it, int up) {
  thread_local Trace stack;
  if (ASGST_RunWithIterator(nullptr, 0, &copy, &stack) <= 0) return false;
  size_t frame = 0;
  for (int i = 0; i != up; ++i) {
    size_t next = frame;
    while (next < stack.depth && stack.frames[next].sp == stack.frames[frame].sp) ++next;
    if (next == stack.depth || (up == -2 && enters_continuation(stack.frames[next]))) break;
    frame = next;
  }
  void* const sp = stack.frames[frame].sp;
  while (frame < stack.depth && stack.frames[frame].sp == sp) ++frame;
  // From the heap comes another one than the signal handler sees.
  it->is_in_heap =
      frame < stack.depth && stack.frames[frame].type == ASGST_FRAME_CONTINUATION_FROZEN;
  it->caller = frame < stack.depth ? stack.frames[frame].method : nullptr;
  ASGST_MoveFrameMark(it->mark, sp);
  return ASGST_GetFrameMarkStackPointer(it->mark) == sp;
}

// The number of a new mark, or -1 when the frame cannot be marked.
jint mark_case(JNIEnv* jni, jint up, int options) {
  const size_t number = next_case.fetch_add(1) % cases.size();
  Case& it = cases[number];
  ASGST_RemoveFrameMark(it.mark);
  it.told = it.order = 0;
  it.mark = ASGST_RegisterFrameMark(jni, &on_case, options, &it);
  return it.mark != nullptr && move(&it, up) ? static_cast<jint>(number) : -1;
}

// Of MarkCost.java.
Case of_cost;

void count(ASGST_Iterator* iterator, void* frames) {
  ASGST_Frame frame;
  while (ASGST_NextFrame(iterator, &frame) == 1) ++*static_cast<int*>(frames);
}

int options_of(jboolean to_mark) { return to_mark == JNI_TRUE ? ASGST_END_AT_FRAME_MARK : 0; }

}  // namespace

extern "C" {

JNIEXPORT jboolean JNICALL Java_MarkCost_mark(JNIEnv* jni, jclass, jint up) {
  if (of_cost.mark == nullptr) {
    of_cost.mark = ASGST_RegisterFrameMark(jni, &on_case, 0, &of_cost);
  }
  return move(&of_cost, up) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jint JNICALL Java_MarkCost_frames(JNIEnv*, jclass, jboolean to_mark) {
  int frames = 0;
  ASGST_RunWithIterator(nullptr, options_of(to_mark), &count, &frames);
  return frames;
}

JNIEXPORT jdouble JNICALL Java_MarkCost_cost(JNIEnv*, jclass, jboolean to_mark, jint walks) {
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    timespec from{};
    timespec to{};
    int frames = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < walks; ++i) {
      ASGST_RunWithIterator(nullptr, options_of(to_mark), &count, &frames);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    const double each = (static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 +
                         static_cast<double>(to.tv_nsec - from.tv_nsec)) /
                        walks;
    best = round == 0 ? each : std::min(best, each);
  }
  return best;
}

JNIEXPORT jint JNICALL Java_MarkCases_mark(JNIEnv* jni, jclass, jint up) {
  return mark_case(jni, up, 0);
}

// Whose handler's iterator ends at the next mark.
JNIEXPORT jint JNICALL Java_MarkCases_markToMark(JNIEnv* jni, jclass, jint up) {
  return mark_case(jni, up, ASGST_END_AT_FRAME_MARK);
}

JNIEXPORT jboolean JNICALL Java_MarkCases_move(JNIEnv*, jclass, jint number, jint up) {
  return move(&cases[static_cast<size_t>(number)], up) ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT jint JNICALL Java_MarkCases_told(JNIEnv*, jclass, jint number) {
  return cases[static_cast<size_t>(number)].told;
}

JNIEXPORT jint JNICALL Java_MarkCases_order(JNIEnv*, jclass, jint number) {
  return cases[static_cast<size_t>(number)].order;
}

JNIEXPORT jboolean JNICALL Java_MarkCases_isSet(JNIEnv*, jclass, jint number) {
  const Case& it = cases[static_cast<size_t>(number)];
  return ASGST_GetFrameMarkStackPointer(it.mark) != nullptr ? JNI_TRUE : JNI_FALSE;
}

JNIEXPORT void JNICALL Java_MarkCases_remove(JNIEnv*, jclass, jint number) {
  ASGST_RemoveFrameMark(cases[static_cast<size_t>(number)].mark);
}

// Ends the topmost frame of another thread, by a return of 7 or so that its call is made again.
JNIEXPORT jint JNICALL Java_MarkCases_leave(JNIEnv*, jclass, jobject thread, jboolean pop) {
  const jvmtiError suspended = jvmti_of_cases->SuspendThread(thread);
  if (suspended != JVMTI_ERROR_NONE) return suspended;
  const jvmtiError left = pop == JNI_TRUE ? jvmti_of_cases->PopFrame(thread)
                                          : jvmti_of_cases->ForceEarlyReturnInt(thread, 7);
  const jvmtiError resumed = jvmti_of_cases->ResumeThread(thread);
  return left != JVMTI_ERROR_NONE ? left : resumed;
}

// How often a handler was given another caller than the marked frame had, or ended at a mark without any.
JNIEXPORT jint JNICALL Java_MarkCases_wrongCallers(JNIEnv*, jclass) { return wrong_callers; }

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* text, void*) {
  const std::string options = text == nullptr ? "" : text;
  jvmtiEnv* jvmti = nullptr;
  if (!sampling_agent::parse(options, &interval_us, &output) ||
      (ASGST_Capabilities() & ASGST_MARK_FRAME) == 0 ||
      vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) {
    return JNI_ERR;
  }
  if (options == "natives") {
    jvmtiCapabilities capabilities{};
    capabilities.can_suspend = capabilities.can_pop_frame = 1;
    capabilities.can_force_early_return = 1;
    jvmti_of_cases = jvmti;
    return jvmti->AddCapabilities(&capabilities) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
  }
  jvmtiEventCallbacks callbacks{};
  callbacks.VMInit = &on_vm_init;
  callbacks.VMDeath = &on_vm_death;
  callbacks.ThreadStart = &on_thread_start;
  callbacks.ThreadEnd = &on_thread_end;
  sampling_agent::start(jvmti, &on_signal, callbacks);
  return JNI_OK;
}

}  // extern "C"
