#include "harness/victim/victims.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "harness/base/clock.h"
#include "harness/victim/natives.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

// How much of a victim's stack is compared and restored; beyond that a walk has no business and a
// very deep stack would cost milliseconds per halt.
constexpr size_t kStackCopyBytes = size_t{64} << 10;

// Names HotSpot gives its own threads, cut to the kernel's 15 bytes: at the end, from JDK 26 on in the
// middle.
constexpr std::string_view kCompilerThreads[] = {"C2 CompilerThre", "C1 CompilerThre", "C2 Comp..",
                                                 "C1 Comp.."};
constexpr std::string_view kGcThreads[] = {"GC Thread#", "ParGC Thread#",   "ZWorker",
                                           "XWorker",    "Shenandoah GC T", "Shenand..eads#"};
constexpr std::string_view kVmThreads[] = {"VM Thread"};

std::string thread_name(const std::filesystem::path& task) {
  std::ifstream file(task / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

template <size_t N>
int find_thread(const std::string_view (&names)[N]) {
  for (const std::string_view wanted : names) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (thread_name(task.path()).starts_with(wanted)) {
        return std::atoi(task.path().filename().c_str());
      }
    }
  }
  return 0;
}

bool thread_exists(int tid) {
  return std::filesystem::exists("/proc/self/task/" + std::to_string(tid));
}

int64_t now_ms() { return static_cast<int64_t>(monotonic_ns() / 1'000'000); }

}  // namespace

uint32_t Victim::thread_state(const ThreadLayout& layout) const {
  return is_java_thread ? read_at<uint32_t>(java_thread, layout.state) : 0;
}

bool Victim::is_exiting(const ThreadLayout& layout) const {
  return is_java_thread &&
         read_at<int32_t>(java_thread, layout.terminated) != layout.not_terminated;
}

uintptr_t Victim::last_java_sp(const ThreadLayout& layout) const {
  return is_java_thread ? read_at<uintptr_t>(java_thread, layout.last_java_sp) : 0;
}

bool Victim::is_anchor_without_pc(const ThreadLayout& layout) const {
  return last_java_sp(layout) != 0 && read_at<uintptr_t>(java_thread, layout.last_java_pc) == 0;
}

uintptr_t Victim::last_java_pc(const ThreadLayout& layout) const {
  if (!is_java_thread) return 0;
  const auto last_sp = last_java_sp(layout);
  const auto last_pc = read_at<uintptr_t>(java_thread, layout.last_java_pc);
  const uintptr_t pushed = last_sp - sizeof(uintptr_t);
  if (last_pc != 0 || pushed < sp || pushed >= stack_base || pushed % sizeof(uintptr_t) != 0) {
    return last_pc;
  }
  return *reinterpret_cast<const uintptr_t*>(pushed);
}

// A callee has pushed call_stub's fp. From there (runtime/javaCalls.hpp):
//
//   fp + call_wrapper ──> JavaCallWrapper, in the frame of the C++ that calls: its thread, ..., the anchor
uintptr_t Victim::saved_anchor(const ThreadLayout& layout) const {
  if (!is_java_thread || layout.call_wrapper == 0) return 0;
  // As it was before mutations; 0 where no copy is.
  const auto word = [&](uintptr_t place) -> uintptr_t {
    const uintptr_t offset = place - stack_copy_begin;
    return place % sizeof(uintptr_t) != 0 || place < stack_copy_begin ||
                   offset + sizeof(uintptr_t) > stack_copy.size()
               ? 0
               : read_at<uintptr_t>(stack_copy.data(), offset);
  };
  const uintptr_t end = stack_copy_begin + stack_copy.size();
  for (uintptr_t place = sp; place < end; place += sizeof(uintptr_t)) {
    const uintptr_t link = word(place);
    if (link <= place || link >= end) continue;
    const uintptr_t wrapper = word(link + static_cast<uintptr_t>(layout.call_wrapper));
    if (wrapper > link && word(wrapper) == reinterpret_cast<uintptr_t>(java_thread)) {
      return wrapper + layout.saved_anchor;
    }
  }
  return 0;
}

Victims::Victims(Jvm& jvm) : jvm_(jvm) {
  for (size_t i = 0; i < kScenarios; ++i) victims_[i].scenario = static_cast<ScenarioId>(i);
  natives::bind(jvm);
  jvm.set_thread_end_callback([](jvmtiEnv*, JNIEnv*) { natives::on_thread_end(); });
  JNIEnv* env = jvm.env();
  jclass local = env->FindClass("framestorm/Victims");
  jvm.check_exception("loading framestorm.Victims");
  victims_class_ = static_cast<jclass>(env->NewGlobalRef(local));
  start_method_ =
      env->GetStaticMethodID(victims_class_, "start", "(Ljava/lang/String;I)Ljava/lang/Thread;");
  stop_method_ = env->GetStaticMethodID(victims_class_, "stopAll", "()V");
  compile_last_method_ = env->GetStaticMethodID(victims_class_, "compileLast", "()Z");
  jvm.check_exception("framestorm.Victims");
  find_mark_counts_ =
      reinterpret_cast<decltype(find_mark_counts_)>(jvm.symbol("framestorm_mark_counts"));
}

Victims::~Victims() { stop(); }

void Victims::stop() { natives::stop(); }

void Victims::stop_all() {
  for (const Victim& victim : victims_) resume(victim.scenario);
  natives::stop();
  jvm_.env()->CallStaticVoidMethod(victims_class_, stop_method_);
  jvm_.check_exception("stopping the victims");
  natives::go_on();
}

void Victims::await_told_code() {
  constexpr int64_t kPatienceMs = 10'000;
  const bool compiled =
      jvm_.env()->CallStaticBooleanMethod(victims_class_, compile_last_method_) == JNI_TRUE;
  jvm_.check_exception("compiling the last method of the victims' start");
  const CodeRef last = {CodeKind::nmethod, 0, CodeAnchor::entry, "framestorm/Compiler.last"};
  const int64_t deadline = now_ms() + kPatienceMs;
  for (jvm_.code_map().absorb(); compiled && !jvm_.code_map().resolve(last);
       jvm_.code_map().absorb()) {
    if (now_ms() > deadline) throw SetupError("HotSpot does not tell of what it compiles");
    std::this_thread::sleep_for(natives::kGlance);
  }
}

bool Victims::is_transient(ScenarioId scenario) {
  return scenario == ScenarioId::thread_starting || scenario == ScenarioId::thread_exiting;
}

void Victims::pause(ScenarioId scenario) {
  if (scenario_info(scenario).halt != Halt::busy || paused_[static_cast<size_t>(scenario)]) return;
  // Suspension stops Java code at its next poll; C code has to be asked.
  natives::pause(scenario, true);
  if (jobject thread = natives::registration(scenario).thread) {
    of(scenario).suspended = jvm_.jvmti()->SuspendThread(thread) == JVMTI_ERROR_NONE;
  }
  paused_[static_cast<size_t>(scenario)] = true;
}

void Victims::resume(ScenarioId scenario) {
  if (!paused_[static_cast<size_t>(scenario)]) return;
  if (jobject thread = natives::registration(scenario).thread) {
    jvm_.jvmti()->ResumeThread(thread);
  }
  of(scenario).suspended = false;
  natives::pause(scenario, false);
  paused_[static_cast<size_t>(scenario)] = false;
}

bool Victims::start(ScenarioId scenario, std::string* reason) {
  switch (scenario) {
    case ScenarioId::native_attached:
      return start_native(scenario, /*attach=*/true, reason);
    case ScenarioId::native_unattached:
      return start_native(scenario, /*attach=*/false, reason);
    case ScenarioId::compiler_thread:
    case ScenarioId::gc_thread:
    case ScenarioId::vm_thread:
      return find_vm_internal(scenario, reason);
    default:
      return start_java(scenario, reason);
  }
}

bool Victims::start_java(ScenarioId scenario, std::string* reason) {
  JNIEnv* env = jvm_.env();
  jstring name = env->NewStringUTF(std::string(name_of(scenario)).c_str());
  env->CallStaticObjectMethod(victims_class_, start_method_, name, 0);
  env->DeleteLocalRef(name);
  try {
    jvm_.check_exception("");
  } catch (const SetupError& error) {
    // ": java.lang.IllegalStateException: <scenario>: <reason>"
    *reason = error.what();
    const std::string prefix = std::string(name_of(scenario)) + ": ";
    if (const size_t at = reason->find(prefix); at != std::string::npos) {
      reason->erase(0, at + prefix.size());
    }
    return false;
  }
  Victim& victim = of(scenario);
  victim.tid = natives::registration(scenario).tid;
  victim.thread = natives::registration(scenario).thread;
  victim.java_id = natives::registration(scenario).java_id;
  return true;
}

bool Victims::start_native(ScenarioId scenario, bool attach, std::string* reason) {
  if (!natives::start_thread(scenario, attach ? jvm_.vm() : nullptr)) {
    *reason = attach ? "AttachCurrentThreadAsDaemon failed" : "pthread_create failed";
    return false;
  }
  of(scenario).tid = natives::registration(scenario).tid;
  return true;
}

bool Victims::find_vm_internal(ScenarioId scenario, std::string* reason) {
  const int tid = scenario == ScenarioId::compiler_thread ? find_thread(kCompilerThreads)
                  : scenario == ScenarioId::gc_thread     ? find_thread(kGcThreads)
                                                          : find_thread(kVmThreads);
  if (tid == 0) {
    *reason = scenario == ScenarioId::gc_thread
                  ? "this collector has no worker thread (Serial has none)"
                  : "this JVM has no such thread (started with -Xint?)";
    return false;
  }
  of(scenario).tid = tid;
  return true;
}

bool Victims::catch_transient(ScenarioId scenario, uint64_t steps) {
  constexpr int64_t kPatienceMs = 2000;
  if (scenario == ScenarioId::thread_starting) {
    // Its first Java frame would be called there (stubGenerator_x86_64.cpp, generate_call_stub).
    const auto call_stub =
        jvm_.code_map().resolve({CodeKind::stub, 0, CodeAnchor::entry, "call_stub"});
    natives::arm_start(steps, call_stub.value_or(0));
  } else {
    natives::arm_end(steps);
  }
  natives::permit(scenario);
  const int64_t deadline = now_ms() + kPatienceMs;
  Victim& victim = of(scenario);
  victim.tid = 0;
  while (now_ms() < deadline) {
    const int tid = natives::armed_tid();
    if (tid == 0) {
      std::this_thread::sleep_for(natives::kGlance);
      continue;
    }
    if (World::get().wait_parked(tid, 20) != nullptr) {
      victim.tid = tid;
      return true;
    }
    if (!thread_exists(tid)) return false;  // it was over before
  }
  natives::disarm();
  // It would park later, with HotSpot's locks, and nobody would let it go on.
  if (const int tid = natives::armed_tid(); tid != 0) World::get().end_step(tid);
  return false;
}

void Victims::observe_halted() {
  ++observed_;
  halted_.clear();
  for (Victim& victim : victims_) {
    victim.slot = nullptr;
    victim.exact_depth = 0;
    victim.kept = 0;
    // Virtual threads enter again when their carrier changes.
    if (const auto registered = natives::registration(victim.scenario);
        registered.tid != 0 && !is_transient(victim.scenario)) {
      victim.tid = registered.tid;
      victim.thread = registered.thread;
      victim.java_id = registered.java_id;
    }
    if (victim.tid == 0) continue;
    ThreadSlot* slot = World::get().find(victim.tid);
    if (slot == nullptr || slot->phase.load(std::memory_order_acquire) != ThreadPhase::parked) {
      continue;
    }
    observe(victim, slot);
    halted_.push_back(&victim);
  }
}

void Victims::observe_again(Victim& victim) {
  victim.exact_depth = 0;
  if (victim.slot->phase.load(std::memory_order_acquire) == ThreadPhase::parked) {
    observe(victim, victim.slot);
  } else {
    victim.slot = nullptr;
    std::erase(halted_, &victim);
  }
}

void Victims::observe(Victim& victim, ThreadSlot* slot) {
  const ThreadLayout& layout = jvm_.layout();
  victim.slot = slot;
  victim.java_thread = slot->vm_thread;
  victim.pc = get_register(*slot->context, Register::pc);
  victim.sp = get_register(*slot->context, Register::sp);
  victim.fp = get_register(*slot->context, Register::fp);
  copy_context(*slot->context, &victim.context_copy);
  const bool vm_internal =
      victim.scenario == ScenarioId::gc_thread || victim.scenario == ScenarioId::vm_thread;
  victim.is_java_thread = victim.java_thread != nullptr && !vm_internal;
  victim.jni_env = victim.is_java_thread
                       ? static_cast<std::byte*>(victim.java_thread) + layout.jni_env
                       : nullptr;
  victim.stack_base = 0;
  victim.stack_end = 0;
  if (victim.java_thread != nullptr) {
    victim.stack_base = read_at<uintptr_t>(victim.java_thread, layout.stack_base);
    victim.stack_end = victim.stack_base - read_at<size_t>(victim.java_thread, layout.stack_size);
  }
  if (!victim.has_on_stack(victim.sp)) {
    // Not (yet) known to HotSpot, or no HotSpot thread: what it said itself, else one page.
    const auto registered = natives::registration(victim.scenario);
    if (registered.stack_base > victim.sp && registered.stack_end <= victim.sp) {
      victim.stack_base = registered.stack_base;
      victim.stack_end = registered.stack_end;
    } else {
      const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
      victim.stack_end = victim.sp & ~(page - 1);
      victim.stack_base = victim.stack_end + page;
    }
  }
  victim.stack_copy_begin = victim.sp - kRedZone;
  victim.frames_top = slot->frames_top > victim.sp && slot->frames_top <= victim.stack_base
                          ? slot->frames_top
                          : victim.sp;
  const size_t size = std::min(victim.frames_top - victim.stack_copy_begin, kStackCopyBytes);
  const auto* stack = reinterpret_cast<const std::byte*>(victim.stack_copy_begin);
  victim.stack_copy.assign(stack, stack + size);
  if (victim.is_java_thread) {
    const auto* thread = static_cast<const std::byte*>(victim.java_thread);
    victim.thread_copy.assign(thread, thread + layout.java_thread_size);
    if (find_mark_counts_ != nullptr) {
      find_mark_counts_(victim.java_thread, victim.mark_counts.data());
    }
    for (size_t i = 0; i < victim.mark_counts.size(); ++i) {
      if (const int* count = victim.mark_counts[i]) victim.mark_counts_copy[i] = *count;
    }
  } else {
    victim.thread_copy.clear();
    victim.mark_counts = {};
  }
}

bool Victims::verify(Victim& victim, bool repair, std::string* difference) {
  bool same = true;
  const auto check = [&](void* live, const std::vector<std::byte>& copy, const char* what) {
    if (copy.empty() || std::memcmp(live, copy.data(), copy.size()) == 0) return;
    const auto* bytes = static_cast<const std::byte*>(live);
    const auto at = std::mismatch(copy.begin(), copy.end(), bytes).first - copy.begin();
    if (same) {
      *difference = std::string(what) + " differs from its halt at byte " + std::to_string(at);
    }
    same = false;
    if (repair) std::memcpy(live, copy.data(), copy.size());
  };
  check(reinterpret_cast<void*>(victim.stack_copy_begin), victim.stack_copy, "the stack above sp");
  check(victim.java_thread, victim.thread_copy, "the JavaThread");
  for (size_t i = 0; i < victim.mark_counts.size(); ++i) {
    int* const count = victim.mark_counts[i];
    if (count == nullptr || *count == victim.mark_counts_copy[i]) continue;
    if (same) {
      *difference = std::string("the thread's count of ") +
                    (i == 0 ? "NoHandleMarks" : "ResourceMarks") + " differs from its halt";
    }
    same = false;
    if (repair) *count = victim.mark_counts_copy[i];
  }
  if (!same_context(*victim.slot->context, victim.context_copy)) {
    if (same) *difference = "the halt context differs from its halt";
    same = false;
    if (repair) copy_context(victim.context_copy, victim.slot->context);
  }
  return same;
}

}  // namespace framestorm
