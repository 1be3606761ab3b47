// What a sample's walk was a walk of, in the words that oracles have.
#pragma once

#include "harness/oracles/thread_subject.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"

namespace framestorm::stress {

class SampleSubject {
 public:
  SampleSubject(Jvm& jvm, SamplingMode mode) : subject_(jvm, input_mode(mode)) {}

  // Until it is called again. `walker`: the adapter of the sample's walk. Async-signal-safe.
  const Subject& of(const Sample& sample, const Walker& walker);

 private:
  ThreadSubject subject_;
};

}  // namespace framestorm::stress
