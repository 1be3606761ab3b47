// Holds safepoint queues (profile2.h) to the truth in any program: a JVMTI agent that walks each
// Java thread in a signal handler and enqueues the same moment. What the queue's handler is told
// later has to be what was walked then, or an error.
//
//   java -agentpath:libqueue_agent.so=interval=100,output=queue.json ...
//
// interval is in microseconds of the clock, for each thread, from one signal handler's end on: so the
// program gets that time however long its walks are. A thread whose queue is full waits, and so does one
// without Java frames mostly: it is left alone for longer. The file says when the program ended:
// how many were enqueued, told right, told as errors, told wrong, and not told.
#include "harness/hotspot/queue_test/sampling_agent.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

// After jni.h and jvmti.h: it is of the JDK under test, they may be of another.
#include "profile2.h"

namespace {

constexpr size_t kMaxDepth = 640;
constexpr int kDownFrames = 451;  // QueueWorkload.DEPTH, and the one that calls bottom()
constexpr long kQuietIntervals = 64;
constexpr size_t kRing = 64;

struct Walked {
  ASGST_Method method;
  int bci;
  int comp_level;
  uint8_t type;
  bool operator==(const Walked&) const = default;
};

struct Trace {
  int depth = 0;
  std::array<Walked, kMaxDepth> frames;
};

std::atomic<long> enqueued{0}, right{0}, wrong{0}, full{0}, refused{0}, handler_calls{0};
// Of a virtual thread that never yields; of some whose callers are frozen; of which the carrier's
// frames are missing.
std::atomic<long> carried{0}, across{0}, no_carrier{0};
std::atomic<long> thawed{0};  // right, and with frozen frames that the signal handler did not see
std::array<std::atomic<long>, 64> errors;  // by -code
std::atomic<bool> running{false};
std::mutex print_mutex;
long interval_us = 100;
std::string output = "queue.json";

// Of one thread; never freed, since a signal may come late.
struct OfThread {
  ASGST_Queue* queue = nullptr;
  timer_t timer{};
  std::array<Trace, kRing> traces;  // of the elements in the queue, in turn
  size_t next = 0;
};
thread_local OfThread* of_thread = nullptr;
std::mutex threads_mutex;
std::map<pid_t, OfThread*> threads;

void copy(ASGST_Iterator* iterator, void* argument) {
  auto* trace = static_cast<Trace*>(argument);
  ASGST_Frame frame;
  trace->depth = 0;
  while (trace->depth < static_cast<int>(kMaxDepth) && ASGST_NextFrame(iterator, &frame) == 1) {
    trace->frames[trace->depth++] = {frame.method, frame.bci, frame.comp_level, frame.type};
  }
}

// Not in the signal handler.
const std::string& name_of(ASGST_Method method) {
  // By each thread, since samples are many. What is asked for here is of classes that stay.
  static thread_local std::unordered_map<ASGST_Method, std::string> names;
  const auto known = names.find(method);
  if (known != names.end()) return known->second;
  std::array<char, 200> method_name{};
  std::array<char, 200> class_name{};
  ASGST_MethodInfo info{};
  info.method_name = method_name.data();
  info.method_name_length = method_name.size();
  ASGST_ClassInfo class_info{};
  class_info.class_name = class_name.data();
  class_info.class_name_length = class_name.size();
  std::string name = "?";
  if (ASGST_GetMethodInfo(method, &info) == 1 && ASGST_GetClassInfo(info.klass, &class_info) == 1) {
    name = std::string(class_name.data()) + "." + method_name.data();
  }
  return names.emplace(method, std::move(name)).first->second;
}

// Queues begin below what method handles jump through, which has no bytecodes.
bool is_intrinsic(const Walked& frame) {
  if (frame.type != ASGST_FRAME_JAVA_NATIVE) return false;
  const std::string& name = name_of(frame.method);
  return name.starts_with("java/lang/invoke/MethodHandle.linkTo") ||
         name == "java/lang/invoke/MethodHandle.invokeBasic";
}

bool enters_continuation(const Walked& frame) {
  return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
}

void print(const char* what, const Trace& trace, int from) {
  std::fprintf(stderr, "%s:\n", what);
  for (int i = from; i < trace.depth && i < from + 12; ++i) {
    const Walked& frame = trace.frames[i];
    std::fprintf(stderr, "  %s bci %d level %d type %d\n", name_of(frame.method).c_str(), frame.bci,
                 frame.comp_level, frame.type);
  }
}

// What the signal handler cannot see: where it says that frames are missing, there are some more,
// and nothing else is different.
bool is_walked_and_more(const Trace& walked, int from, const Trace& told) {
  const auto first = walked.frames.begin() + from;
  const auto last = walked.frames.begin() + walked.depth;
  const auto entry = std::find_if(first, last, [](const Walked& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  });
  const long more = told.depth - (last - first);
  if (entry == last || entry == first) {
    // Both are cut at the same depth.
    const bool cut = walked.depth == static_cast<int>(kMaxDepth);
    return (more == 0 || (cut && more > 0)) && std::equal(first, last, told.frames.begin());
  }
  Walked whole = *entry;
  whole.type = ASGST_FRAME_CONTINUATION;
  const auto told_entry = told.frames.begin() + (entry - first) + more;
  return more > 0 && std::equal(first, entry, told.frames.begin()) && *told_entry == whole &&
         std::equal(entry + 1, last, told_entry + 1);
}

// Of a virtual thread at the bottom of its recursion all callers are known.
bool is_recursion(const Trace& told) {
  const auto is = [&](int at, const char* name) {
    return at < told.depth && name_of(told.frames[at].method) == name;
  };
  int at = 0;
  while (at < 3 && !is(at, "QueueWorkload.bottom")) ++at;
  if (at == 3) return true;
  for (int i = 1; i <= kDownFrames; ++i) {
    // The first calls another method, and from elsewhere.
    if (!is(at + i, "QueueWorkload.down") ||
        (i > 2 && told.frames[at + i].bci != told.frames[at + 2].bci)) {
      return false;
    }
  }
  at += kDownFrames + 1;
  if (!is(at, "QueueWorkload.virtual")) return false;
  while (at < told.depth && told.frames[at].type != ASGST_FRAME_CONTINUATION) ++at;
  return is(at - 1, "jdk/internal/vm/Continuation.enter") &&
         is(told.depth - 1, "java/util/concurrent/ForkJoinWorkerThread.run");
}

// What the signal handler walked goes on into the carrier, if it is of a virtual thread.
bool shows_carrier(const Trace& walked) {
  const auto begin = walked.frames.begin();
  const auto end = begin + walked.depth;
  const auto entry =
      std::find_if(begin, end, [](const Walked& frame) { return enters_continuation(frame); });
  const bool is_busy = std::any_of(begin, end, [](const Walked& frame) {
    return frame.type == ASGST_FRAME_JAVA && name_of(frame.method) == "QueueWorkload.busy";
  });
  if (entry == end) return !is_busy;
  if (is_busy) {
    carried.fetch_add(1);
    if (entry->type != ASGST_FRAME_CONTINUATION) return false;
  } else if (entry->type == ASGST_FRAME_CONTINUATION_FROZEN) {
    across.fetch_add(1);
  }
  return name_of(entry->method) == "jdk/internal/vm/Continuation.enterSpecial" &&
         name_of(walked.frames[walked.depth - 1].method) ==
             "java/util/concurrent/ForkJoinWorkerThread.run";
}

void on_sample(ASGST_Iterator* iterator, void*, void* argument) {
  handler_calls.fetch_add(1);
  const Trace& walked = *static_cast<const Trace*>(argument);
  if (walked.depth < static_cast<int>(kMaxDepth) && !shows_carrier(walked) &&
      no_carrier.fetch_add(1) < 5) {
    const std::lock_guard lock(print_mutex);
    print("no carrier", walked, 0);
  }
  const int state = ASGST_State(iterator);
  if (state != 1) {
    errors[static_cast<size_t>(-state) % errors.size()].fetch_add(1);
    return;
  }
  static thread_local Trace told;
  copy(iterator, &told);
  int from = 0;
  while (from < walked.depth && is_intrinsic(walked.frames[from])) ++from;
  if (is_walked_and_more(walked, from, told) && is_recursion(told)) {
    right.fetch_add(1);
    if (told.depth > walked.depth) thawed.fetch_add(1);
    return;
  }
  if (wrong.fetch_add(1) < 5) {
    const std::lock_guard lock(print_mutex);
    print("walked", walked, from);
    print("told", told, 0);
  }
}

// Async-signal-safe.
void on_signal(int, siginfo_t*, void* ucontext) {
  const int saved = errno;
  OfThread* const self = of_thread;
  if (self != nullptr && running.load(std::memory_order_relaxed)) {
    long next_us = interval_us * kQuietIntervals;
    Trace& trace = self->traces[self->next % kRing];
    const ASGST_QueueSizeInfo info = ASGST_GetQueueSizeInfo(self->queue);
    // One place more is kept free: the oldest element's trace may be being compared.
    if (info.size >= static_cast<int>(kRing) - 1) {
      full.fetch_add(1);
    } else if (ASGST_RunWithIterator(ucontext, 0, &copy, &trace) == ASGST_JAVA_TRACE &&
               ASGST_Enqueue(self->queue, ucontext, &trace) > 0) {
      self->next++;
      next_us = interval_us;
      enqueued.fetch_add(1);
    } else {
      refused.fetch_add(1);
    }
    sampling_agent::set_timer(self->timer, next_us);
  }
  errno = saved;
}

void JNICALL on_thread_start(jvmtiEnv*, JNIEnv* jni, jthread) {
  auto* self = new OfThread;
  self->queue = ASGST_RegisterQueue(jni, kRing, 0, &on_sample, nullptr);
  if (self->queue == nullptr) {
    std::fprintf(stderr, "queue_agent: no queue\n");
    return;
  }
  of_thread = self;
  {
    const std::lock_guard lock(threads_mutex);
    threads[gettid()] = self;
  }
  self->timer = sampling_agent::make_timer();
  sampling_agent::set_timer(self->timer, interval_us);
}

void JNICALL on_thread_end(jvmtiEnv*, JNIEnv*, jthread) {
  OfThread* const self = of_thread;
  if (self == nullptr) return;
  timer_delete(self->timer);
  const std::lock_guard lock(threads_mutex);
  threads.erase(gettid());
}

void JNICALL on_vm_init(jvmtiEnv*, JNIEnv* jni, jthread thread) {
  running.store(true);
  on_thread_start(nullptr, jni, thread);
}

void JNICALL on_vm_death(jvmtiEnv*, JNIEnv*) {
  running.store(false);
  usleep(100'000);  // handlers that run
  long left = 0;
  {
    const std::lock_guard lock(threads_mutex);
    for (const auto& [id, thread] : threads) left += ASGST_GetQueueSizeInfo(thread->queue).size;
  }
  std::ofstream out(output);
  out << "{\"enqueued\": " << enqueued << ", \"handler_calls\": " << handler_calls
      << ", \"right\": " << right << ", \"wrong\": " << wrong << ", \"left\": " << left
      << ", \"thawed\": " << thawed << ", \"carried\": " << carried << ", \"across\": " << across
      << ", \"no_carrier\": " << no_carrier << ", \"full\": " << full
      << ", \"refused\": " << refused;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] != 0) out << ", \"error" << -static_cast<int>(i) << "\": " << errors[i];
  }
  out << "}\n";
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* text, void*) {
  jvmtiEnv* jvmti = nullptr;
  if (!sampling_agent::parse(text == nullptr ? "" : text, &interval_us, &output) ||
      vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) {
    return JNI_ERR;
  }
  jvmtiEventCallbacks callbacks{};
  callbacks.VMInit = &on_vm_init;
  callbacks.VMDeath = &on_vm_death;
  callbacks.ThreadStart = &on_thread_start;
  callbacks.ThreadEnd = &on_thread_end;
  sampling_agent::start(jvmti, &on_signal, callbacks);
  return JNI_OK;
}
