// What can be asked of GetStackTrace, which sees a thread only once it has gone on: where its stack
// ends. The outermost frame of a thread stays the same for all its life, so a trace that was not
// cut and ends elsewhere has lost frames. The judge's.
#pragma once

#include <string>
#include <vector>

#include "harness/jvm/jvm.h"
#include "harness/oracles/oracle.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample.h"
#include "stress/agent/time_share.h"

namespace framestorm::stress {

class ReferenceCheck {
 public:
  explicit ReferenceCheck(Jvm& jvm) : jvm_(jvm) {}

  // On a thread attached to the JVM, whose `env` it is. Empty, or what is wrong; counts.
  // Does nothing while such questions have taken more than a tenth of the time.
  std::string check(JNIEnv* env, const WalkView& view, const Sample& sample, Registry& registry);
  uint64_t made() const { return made_; }
  uint64_t broken() const { return broken_; }

 private:
  Jvm& jvm_;
  std::vector<jvmtiFrameInfo> frames_;
  TimeShare share_;  // GetStackTrace waits until the thread comes to a poll
  uint64_t made_ = 0, broken_ = 0;
};

}  // namespace framestorm::stress
