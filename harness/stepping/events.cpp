#include "harness/stepping/events.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace framestorm::stepping {
namespace {

constexpr uint64_t kInstructionsAfter = 32;
constexpr uint64_t kNeverAfter = UINT64_MAX;
// For the VM, once no thread is stepped any more.
constexpr std::chrono::seconds kEnding{20};

}  // namespace

Events::Events(Jvm& jvm, std::vector<StepEvent> wanted) : jvm_(jvm), wanted_(std::move(wanted)) {
  if (!std::ranges::all_of(wanted_, is_of_a_walk)) {
    thread_ = std::make_unique<EventThread>(jvm);
  }
}

void Events::begin(ScenarioId scenario) {
  const auto begun = std::chrono::steady_clock::now();
  while (thread_ && thread_->under_way() && std::chrono::steady_clock::now() - begun < kEnding) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (thread_ && thread_->under_way()) throw SetupError("the VM does not end an event");
  step();
  in_force_ = StepEvent::none;
  after_ = 0;
  scenario_ = scenario;
}

void Events::set_thread(JNIEnv* env, jthread thread, const void* java_thread) {
  if (thread_) thread_->set_thread(env, thread, java_thread);
}

void Events::step() {
  if (after_ == 0) return;
  for (auto& [id, method] : replaced_) {
    if (id == nullptr || jvm_.methods().method_at(id) == method) continue;
    method = jvm_.methods().method_at(id);
    jvm_.methods().retake_ids();
  }
  if (thread_->under_way()) return;
  if (asked_) end(in_force_, thread_->why_not());
  asked_ = false;
  if (after_ != kNeverAfter) --after_;
}

void Events::ask(StepEvent event, std::span<const jmethodID> methods) {
  in_force_ = event;
  asked_ = true;
  after_ = event == StepEvent::exit ? kNeverAfter : kInstructionsAfter;
  ++counts_[scenario_][event].injected;
  replaced_ = {};
  if (event == StepEvent::redefine) {
    std::ranges::transform(
        methods.first(std::min(methods.size(), replaced_.size())), replaced_.begin(),
        [this](jmethodID id) { return std::pair(id, jvm_.methods().method_at(id)); });
  }
  thread_->ask(event, methods);
}

void Events::begin_in_walk(StepEvent event) {
  before_walk_ = in_force_;
  in_force_ = event;
  ++counts_[scenario_][event].injected;
}

void Events::end_in_walk(bool happened) {
  end(in_force_, happened ? nullptr : "the walk was over before");
  in_force_ = before_walk_;
}

void Events::end(StepEvent event, const char* why_not) {
  EventCounts& counts = counts_[scenario_][event];
  if (why_not == nullptr) {
    ++counts.effective;
  } else {
    ++counts.why_not[why_not];
  }
}

}  // namespace framestorm::stepping
