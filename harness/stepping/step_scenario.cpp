#include "harness/stepping/step_scenario.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace framestorm::stepping {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A victim may come by a place again before it ends.
constexpr std::chrono::milliseconds kAfterFinding{200};
constexpr std::chrono::milliseconds kGlance{5};
// Of its time, before the victim is to leave its point; it leaves instruction by instruction, too.
constexpr double kStaying = 0.85;
// The same where it is walked at one place only, which may be on its way out.
constexpr double kStayingForOne = 0.5;
// A victim that takes no step for so long stands where it is to stay, in the kernel or in native code.
constexpr std::chrono::seconds kStanding{2};
// For a thread that runs at full speed again to come to the end of its instruction, and of its call.
constexpr std::chrono::seconds kEnding{10};

// Ends the stepping when its time is over, while the control thread waits for the victim to be in
// place.
class TimeLimit {
 public:
  TimeLimit(Stepper& stepper, Seconds limit)
      : thread_([this, &stepper, limit] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, limit, [this] { return done_; })) stepper.give_up();
        }) {}
  ~TimeLimit() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

std::string step_scenario(Victims& victims, Stepper& stepper, ScenarioId scenario, Seconds limit,
                          const HaltPoint& only) {
  const auto begin = Clock::now();
  const uint64_t found = stepper.found_now();
  std::string reason;
  {
    const TimeLimit time_limit(stepper, limit);
    stepper.arm(scenario, only);
    if (victims.start(scenario, &reason)) {
      const Seconds staying = limit * (only.any ? kStaying : kStayingForOne);
      uint64_t steps = stepper.steps_now();
      auto moved = Clock::now();
      const auto goes_on = [&] {
        if (steps != stepper.steps_now()) moved = Clock::now();
        steps = stepper.steps_now();
        return Clock::now() - moved < kStanding && stepper.stepping() && !stepper.given_up() &&
               Clock::now() - begin < staying && (only.any || stepper.found_now() == found);
      };
      while (goes_on()) std::this_thread::sleep_for(kGlance);
      if (!only.any && stepper.found_now() != found) {
        if (stepper.stepping()) std::this_thread::sleep_for(kAfterFinding);
        stepper.give_up();
      }
      victims.stop_all();
    }
  }
  stepper.give_up();
  const auto ending = Clock::now();
  while (stepper.stepping() && Clock::now() - ending < kEnding) {
    std::this_thread::sleep_for(kGlance);
    if (stepper.thread_is_gone()) stepper.end_on();  // an exception has ended it on its way out
  }
  if (stepper.stepping()) {
    throw SetupError("the victim of " + std::string(name_of(scenario)) + " does not end");
  }
  return reason;
}

}  // namespace framestorm::stepping
