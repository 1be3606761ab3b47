// One thread that asks the others, one after the other, for their context (hand_over.h) and walks them
// from outside. Nothing is allocated and no lock taken while a victim stands still: it may have the
// allocator's. Which thread is asked next, and when, is the mode's.
#pragma once

#include <signal.h>

#include <thread>

#include "stress/agent/hand_over.h"
#include "stress/agent/sampler.h"

namespace framestorm::stress {

class OutsideSampler : public Sampler {
 public:
  OutsideSampler(const Options& options, Jvm& jvm, WalkSetup setup);

 protected:
  // On the sampler's own thread.
  Rest sample(SampledThread& thread);
  // False when there was no walk, and why is counted.
  bool halt_and_walk(SampledThread& thread, WalkSlot& slot, Rest* rest);

 private:
  // On the sampler's own thread: samples until stopped().
  virtual void run() = 0;
  // Whether a victim stands still while it is walked.
  virtual bool stays() const { return true; }
  virtual bool walk_asked(SampledThread& thread, WalkSlot& slot, Rest* rest) {
    return halt_and_walk(thread, slot, rest);
  }
  // Of the time that the victim loses. Since it answered, which on a full machine is long before the
  // sampler's thread comes to see it, one that stays stands still.
  virtual uint64_t begin_of_walk(const HandOver::Answer& answer) const { return answer.given_ns; }

  void start_own_thread() override;
  void join_own_thread() override;

  static void handle(int signo, siginfo_t* info, void* context);
  void prepare_own_thread();
  bool walk_answer(SampledThread& thread, const HandOver::Answer& answer, bool waiting,
                   WalkSlot& slot);

  HandOver hand_over_;
  std::thread thread_;
};

}  // namespace framestorm::stress
