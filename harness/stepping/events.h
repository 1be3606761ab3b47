// Which event is in force for the stepped thread, and how many were injected.
//
// An event of the VM is in force from when it was asked for until another one is, or the scenario is
// over: code that was thrown away does not come back. Those of a walk (`signal`, `sigsegv`) are in
// force for that walk.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/input/input.h"
#include "harness/stepping/event_thread.h"
#include "harness/stepping/verdict.h"

namespace framestorm::stepping {

// What a walk itself is interrupted by; all others are the VM's.
constexpr bool is_of_a_walk(StepEvent event) {
  return event == StepEvent::signal || event == StepEvent::sigsegv;
}
// After which a thread does not do what its program says; for scenarios alone.
constexpr bool breaks_programs(StepEvent event) {
  return event == StepEvent::pop_frame || event == StepEvent::exit;
}

struct EventCounts {
  uint64_t injected = 0;
  uint64_t effective = 0;                   // that took effect
  std::map<std::string, uint64_t> why_not;  // of the others that are over
};

class Events {
 public:
  // `wanted`: none or more of those that there are. Throws SetupError as EventThread.
  Events(Jvm& jvm, std::vector<StepEvent> wanted);

  const std::vector<StepEvent>& wanted() const { return wanted_; }
  // None is in force any more, and the next ones are injected into a victim of this scenario. Waits
  // for one that is under way. Not in signal context. Throws SetupError when the VM does not end it.
  void begin(ScenarioId scenario);
  // As EventThread's.
  void set_thread(JNIEnv* env, jthread thread, const void* java_thread);

  // On the stepped thread, in signal context ------------------------------------------------------
  StepEvent in_force() const { return in_force_; }
  bool can_inject() const { return !wanted_.empty() && after_ == 0; }
  // Before anything is known of the next instruction.
  void step();
  // Asks the VM for it; of these methods, innermost first.
  void ask(StepEvent event, std::span<const jmethodID> methods);
  // One of a walk, around that.
  void begin_in_walk(StepEvent event);
  void end_in_walk(bool happened);

  // While no thread is stepped.
  const std::map<ScenarioId, std::map<StepEvent, EventCounts>>& counts() const { return counts_; }

 private:
  void end(StepEvent event, const char* why_not);

  Jvm& jvm_;
  const std::vector<StepEvent> wanted_;
  std::unique_ptr<EventThread> thread_;  // null: no event of the VM is wanted
  ScenarioId scenario_ = ScenarioId::count;
  StepEvent in_force_ = StepEvent::none, before_walk_ = StepEvent::none;
  bool asked_ = false;  // and not over
  // IDs of the methods that may be replaced, and what they point at.
  std::array<std::pair<jmethodID, const void*>, EventThread::kMethods> replaced_ = {};
  uint64_t after_ = 0;  // instructions until another one may be asked for
  std::map<ScenarioId, std::map<StepEvent, EventCounts>> counts_;
};

}  // namespace framestorm::stepping
