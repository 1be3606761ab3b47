// Has the oracles look at samples, counts them, and keeps what is wrong. One thread of its own,
// which is attached to the JVM and takes samples from the ring as they come.
#pragma once

#include <atomic>
#include <thread>

#include "harness/oracles/oracle_set.h"
#include "stress/agent/findings.h"
#include "stress/agent/obsolete_methods.h"
#include "stress/agent/reference_check.h"
#include "stress/agent/sampler.h"
#include "stress/agent/stats.h"
#include "stress/agent/time_share.h"
#include "stress/agent/truth_check.h"

namespace framestorm::stress {

class Judge {
 public:
  // Throws SetupError, std::system_error.
  Judge(const Options& options, Jvm& jvm, OracleSet& oracles, Sampler& sampler);

  // VM running. The thread is a daemon of the JVM's and none that is sampled.
  void start();
  // Has everything judged that was sampled, writes the last figures and returns when that is done.
  // `ended`: why. Only the first call of it counts.
  void finish(const char* ended);

  // The judge's own thread.
  int tid() const { return tid_.load(std::memory_order_acquire); }

 private:
  void run();
  void work();
  // True when there was a sample.
  bool judge_next();
  void judge(const SampleRing::Entry& entry);
  // Of a walk at a safepoint, with GetStackTrace beside it.
  void judge_check(const SampleRing::Entry& entry, WalkSlot& slot);
  void keep_found(const SampleRing::Entry& entry, const WalkSlot* slot, const WalkView& view);
  // No event says that a class was redefined. What JVMTI says now of the methods of a trace whose
  // bytecodes were shorter when it was asked last.
  void ask_for_replaced(const WalkView& view);
  // What JVMTI says of those that no event has told of.
  void ask_for_obsolete(const WalkView& view);
  // A replaced method gets its ID when JVMTI first speaks of it, for an event that has yet to come.
  void wait_for_unknown(const WalkView& view);
  // What a walk that was made for oracles did wrong by itself. True when it did.
  bool judge_rewalk(const SampleRing::Entry& entry, const WalkView& first, const WalkSlot& slot);
  void write_stats(const char* ended);
  void write_compiled();
  void close(const char* ended);

  const Options options_;
  Jvm& jvm_;
  OracleSet& oracles_;
  Sampler& sampler_;
  Stats stats_;
  Findings findings_;
  ReferenceCheck reference_;
  TruthCheck truth_;
  JNIEnv* env_ = nullptr;  // of the judge's thread
  ObsoleteMethods obsolete_;
  TimeShare waiting_for_unknown_;
  SampleSubject subject_;
  uint64_t traces_only_ = 0;  // samples without a slot
  Violations violations_;
  uint64_t contained_ = 0;
  std::thread thread_;
  std::atomic<int> tid_{0};
  std::atomic<const char*> ended_{nullptr};
  std::atomic<bool> closed_{false};
};

}  // namespace framestorm::stress
