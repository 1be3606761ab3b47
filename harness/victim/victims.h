// All victims of a process: started once, halted and released with the world (world.h), described
// while they are halted.
#pragma once

#include <jni.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/input/input.h"
#include "harness/jvm/jvm.h"
#include "harness/victim/context.h"
#include "harness/victim/world.h"

namespace framestorm {

inline constexpr size_t kScenarios = static_cast<size_t>(ScenarioId::count);

// A victim as it stands halted. Valid from Victims::observe_halted until the world is released, or the victim is
// stepped on: Victims::observe_again.
struct Victim {
  ScenarioId scenario = ScenarioId::count;
  int tid = 0;
  jobject thread = nullptr;     // java.lang.Thread, global reference; null when there is none
  int64_t java_id = 0;          // its id, which is a virtual thread's only one; 0: none
  ThreadSlot* slot = nullptr;   // null: not halted now
  void* java_thread = nullptr;  // HotSpot's Thread*; null for a thread the JVM does not know
  bool is_java_thread = false;  // a JavaThread: has state, anchor, JNIEnv
  bool suspended = false;       // through JVMTI
  void* jni_env = nullptr;
  uintptr_t pc = 0, sp = 0, fp = 0;
  uintptr_t stack_base = 0, stack_end = 0;  // highest and lowest address, as HotSpot has them
  uintptr_t frames_top = 0;  // end of what may be written: see ThreadSlot::frames_top

  // Copies taken at the halt, to compare with and to restore from.
  std::vector<std::byte> stack_copy;  // from stack_copy_begin
  uintptr_t stack_copy_begin = 0;
  std::vector<std::byte> thread_copy;  // the JavaThread
  ucontext_t context_copy;
  // A debug VM's counts of the thread's NoHandleMarks and ResourceMarks, in the thread's HandleArea
  // and ResourceArea (runtime/handles.hpp, memory/resourceArea.hpp); null in other VMs.
  std::array<int*, 2> mark_counts = {};
  std::array<int, 2> mark_counts_copy = {};

  // Frames of an unmutated walk at this halt; 0 when there was none. Kept by the executor.
  int32_t exact_depth = 0;
  // Results in thread_copy that a walker keeps there. Kept by the executor.
  int kept = 0;

  bool has_on_stack(uintptr_t address) const {
    return address >= stack_end && address < stack_base;
  }
  bool has_word_at(uintptr_t address) const {
    return has_on_stack(address) && address % sizeof(uintptr_t) == 0;
  }

  uint32_t thread_state(const ThreadLayout& layout) const;
  // JavaThread::is_exiting(). The layout says where that is known.
  bool is_exiting(const ThreadLayout& layout) const;
  // Of its frame anchor; 0: it has none. Set last, and taken away first (JavaFrameAnchor::copy).
  uintptr_t last_java_sp(const ThreadLayout& layout) const;
  // Whether its frame anchor has no pc, as those of the interpreter have none until the VM walks the stack or
  // stops there (JavaFrameAnchor::make_walkable).
  bool is_anchor_without_pc(const ThreadLayout& layout) const;
  // Of its frame anchor; where a stub sets none, the return address that its call left. 0: none.
  uintptr_t last_java_pc(const ThreadLayout& layout) const;
  // Where on the stack the innermost call of C++ into Java keeps its thread's anchor; 0: nowhere.
  uintptr_t saved_anchor(const ThreadLayout& layout) const;
};

class Victims {
 public:
  // Registers the natives of framestorm.Harness. Control thread, VM running.
  explicit Victims(Jvm& jvm);
  ~Victims();
  Victims(const Victims&) = delete;
  Victims& operator=(const Victims&) = delete;

  // Starts the victim of a scenario and returns once it is in place. False with a reason when this
  // JDK cannot have it. Control thread, VM running, on the control thread's own stack.
  bool start(ScenarioId scenario, std::string* reason);

  // For thread-starting and thread-exiting, whose victims live only as long as a halt: lets one
  // such thread come into being and parks it after `steps` instructions of its start or end. False
  // when it was over before. Control thread, VM running.
  static bool is_transient(ScenarioId scenario);
  bool catch_transient(ScenarioId scenario, uint64_t steps);

  // A paused victim uses no CPU and holds up no safepoint; busy victims are paused except around
  // the halts they are wanted for, because a core has room for one. No effect on victims that do
  // not run by themselves. Control thread, VM running, on the control thread's own stack.
  void pause(ScenarioId scenario);
  void resume(ScenarioId scenario);

  // After World::halt_all: fills in every victim that is parked.
  void observe_halted();
  // In the same halt, after one of them was stepped on. What walkers keep in its thread is still there.
  void observe_again(Victim& victim);
  // How often halts were observed; not 0 while anybody is halted.
  uint64_t observed() const { return observed_; }
  // Whether stack, context and thread of a halted victim are as they were at the halt; names the
  // first difference. Restores them when `repair`.
  bool verify(Victim& victim, bool repair, std::string* difference);

  // The victim of a scenario; its slot is null when it is not halted or does not exist.
  Victim& of(ScenarioId scenario) { return victims_[static_cast<size_t>(scenario)]; }
  // All victims that are parked now.
  const std::vector<Victim*>& halted() const { return halted_; }

  // Waits until the code map has heard of all code that was compiled for the victims: HotSpot's service
  // thread tells some time later. Control thread, VM running. Throws SetupError.
  void await_told_code();

  // Lets native victims end; the JVM's victims die with the process.
  void stop();
  // Lets all victims end, and waits for them; others may be started then. Control thread, VM running.
  void stop_all();

 private:
  bool start_java(ScenarioId scenario, std::string* reason);
  bool start_native(ScenarioId scenario, bool attach, std::string* reason);
  bool find_vm_internal(ScenarioId scenario, std::string* reason);
  void observe(Victim& victim, ThreadSlot* slot);

  Jvm& jvm_;
  void (*find_mark_counts_)(void* thread, int* counts[2]) = nullptr;
  jclass victims_class_ = nullptr;
  jmethodID start_method_ = nullptr, compile_last_method_ = nullptr, stop_method_ = nullptr;
  std::array<Victim, kScenarios> victims_;
  std::vector<Victim*> halted_;
  uint64_t observed_ = 0;
  std::array<bool, kScenarios> paused_ = {};
};

}  // namespace framestorm
