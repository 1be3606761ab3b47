// A sampling profiler in one file, on the iterator interface of profile2.h: a JVMTI agent that
// draws a flame graph when the program ends.
//
//   java -agentpath:libsmall_profiler.so=interval=1000,output=flames.html ...
//
// interval is in microseconds. A thread of the agent signals each Java thread in turn; the signal
// handler walks its own stack and copies methods to a ring; the agent's thread turns them into
// names. No jmethodID is needed, so no class has to be touched when it is loaded.
#include <jvmti.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

// After jni.h and jvmti.h: it is of the JDK under test, they may be of another.
#include "profile2.h"

namespace {

constexpr size_t kMaxDepth = 512;
constexpr size_t kRing = 64;

struct Trace {
  std::atomic<bool> full{false};
  size_t depth = 0;
  std::array<ASGST_Method, kMaxDepth> methods;
};

struct Node {
  std::map<std::string, Node> callees;
  size_t samples = 0;  // those of its callees included
};

struct Options {
  std::chrono::microseconds interval{1000};
  std::string output = "flames.html";
};

Options options;
std::array<Trace, kRing> ring;  // filled by signal handlers, emptied by drain()
std::atomic<size_t> failed{0};
std::atomic<size_t> dropped{0};

std::mutex threads_mutex;
std::set<pid_t> threads;

std::mutex graph_mutex;
Node graph;
std::map<ASGST_Method, std::string> names;

std::atomic<bool> running{false};
std::thread sampler;

// In the signal handler; async-signal-safe.
void store(ASGST_Iterator* iterator, void* argument) {
  auto* trace = static_cast<Trace*>(argument);
  ASGST_Frame frame;
  trace->depth = 0;
  while (trace->depth < kMaxDepth && ASGST_NextFrame(iterator, &frame) == 1) {
    trace->methods[trace->depth++] = frame.method;
  }
}

// Async-signal-safe.
void on_signal(int, siginfo_t*, void* ucontext) {
  static std::atomic<size_t> next{0};
  Trace& trace = ring[next.fetch_add(1) % kRing];
  if (trace.full.load(std::memory_order_acquire)) {
    dropped.fetch_add(1);
    return;
  }
  if (ASGST_RunWithIterator(ucontext, 0, &store, &trace) == ASGST_JAVA_TRACE && trace.depth > 0) {
    trace.full.store(true, std::memory_order_release);
  } else {
    failed.fetch_add(1);
  }
}

const std::string& name_of(ASGST_Method method) {
  const auto known = names.find(method);
  if (known != names.end()) return known->second;
  std::array<char, 256> method_name{};
  std::array<char, 256> class_name{};
  ASGST_MethodInfo info{};
  info.method_name = method_name.data();
  info.method_name_length = method_name.size();
  ASGST_ClassInfo class_info{};
  class_info.class_name = class_name.data();
  class_info.class_name_length = class_name.size();
  std::string name = "(unloaded)";
  if (ASGST_GetMethodInfo(method, &info) == 1 && ASGST_GetClassInfo(info.klass, &class_info) == 1) {
    name = std::string(class_name.data()) + "." + method_name.data();
  }
  return names.emplace(method, std::move(name)).first->second;
}

void drain() {
  const std::lock_guard lock(graph_mutex);
  for (Trace& trace : ring) {
    if (!trace.full.load(std::memory_order_acquire)) continue;
    Node* node = &graph;
    node->samples++;
    for (size_t i = trace.depth; i-- > 0;) {
      node = &node->callees[name_of(trace.methods[i])];
      node->samples++;
    }
    trace.full.store(false, std::memory_order_release);
  }
}

// Methods that are about to go are turned into names while they are there.
void on_class_unload(ASGST_Class, ASGST_Method* methods, int count, bool, void*) {
  drain();
  const std::lock_guard lock(graph_mutex);
  for (int i = 0; i < count; ++i) names.erase(methods[i]);
}

void sample() {
  while (running.load()) {
    std::vector<pid_t> now;
    {
      const std::lock_guard lock(threads_mutex);
      now.assign(threads.begin(), threads.end());
    }
    for (const pid_t thread : now) syscall(SYS_tgkill, getpid(), thread, SIGPROF);
    std::this_thread::sleep_for(options.interval);
    drain();
  }
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') {
      out += "&#" + std::to_string(static_cast<int>(c)) + ";";
    } else {
      out += c;
    }
  }
  return out;
}

// A box as wide as its share of its caller's samples; callees stand below.
void draw(const std::string& name, const Node& node, size_t callers_samples, std::ostream& out) {
  const double width =
      100.0 * static_cast<double>(node.samples) / static_cast<double>(callers_samples);
  if (node.samples == 0) return;
  size_t hash = 0;
  for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
  const double share =
      100.0 * static_cast<double>(node.samples) / static_cast<double>(graph.samples);
  out << "<div class=f style='width:" << width << "%'><div class=n style='background:hsl("
      << 10 + hash % 45 << ",85%," << 60 + hash % 15 << "%)' title=\"" << escaped(name) << ": "
      << node.samples << " samples, " << share << " %\">" << escaped(name) << "</div><div class=c>";
  for (const auto& [callee, below] : node.callees) draw(callee, below, node.samples, out);
  out << "</div></div>\n";
}

void write_graph() {
  std::ofstream out(options.output);
  out << "<!doctype html><meta charset=utf-8><title>Flame graph</title><style>"
         "body{font:12px sans-serif;margin:1em}.c{display:flex}.f{min-width:0}"
         ".n{overflow:hidden;white-space:nowrap;height:17px;line-height:17px;padding:0 3px;"
         "border:1px solid #fff;border-radius:2px;box-sizing:border-box}</style>\n<p>"
      << graph.samples << " samples, " << failed.load() << " without a Java trace, "
      << dropped.load() << " dropped; every " << options.interval.count() << " &micro;s</p>\n";
  draw("all", graph, graph.samples, out);
  if (!out.flush()) {
    std::fprintf(stderr, "small_profiler: cannot write %s: %s\n", options.output.c_str(),
                 std::strerror(errno));
  }
}

bool parse(const char* text) {
  const std::string all = text == nullptr ? "" : text;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    const std::string option = all.substr(begin, end - begin);
    begin = end + 1;
    if (option.starts_with("output=")) {
      options.output = option.substr(7);
    } else if (option.starts_with("interval=") && std::atoi(option.c_str() + 9) > 0) {
      options.interval = std::chrono::microseconds(std::atoi(option.c_str() + 9));
    } else {
      std::fprintf(stderr,
                   "small_profiler: unknown option '%s'; options: interval=MICROSECONDS, "
                   "output=FILE\n",
                   option.c_str());
      return false;
    }
  }
  return true;
}

void JNICALL on_thread_start(jvmtiEnv*, JNIEnv*, jthread) {
  const std::lock_guard lock(threads_mutex);
  threads.insert(gettid());
}

void JNICALL on_thread_end(jvmtiEnv*, JNIEnv*, jthread) {
  const std::lock_guard lock(threads_mutex);
  threads.erase(gettid());
}

void JNICALL on_vm_init(jvmtiEnv*, JNIEnv*, jthread) {
  on_thread_start(nullptr, nullptr, nullptr);
  ASGST_RegisterClassUnloadHandler(&on_class_unload, nullptr);
  struct sigaction action{};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  running.store(true);
  sampler = std::thread(&sample);
}

void JNICALL on_vm_death(jvmtiEnv*, JNIEnv*) {
  if (!running.exchange(false)) return;
  sampler.join();
  ASGST_DeregisterClassUnloadHandler(&on_class_unload, nullptr);
  drain();
  write_graph();
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* text, void*) {
  jvmtiEnv* jvmti = nullptr;
  if (!parse(text) || vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) {
    return JNI_ERR;
  }
  jvmtiEventCallbacks callbacks{};
  callbacks.VMInit = &on_vm_init;
  callbacks.VMDeath = &on_vm_death;
  callbacks.ThreadStart = &on_thread_start;
  callbacks.ThreadEnd = &on_thread_end;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (const jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH,
                                 JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
