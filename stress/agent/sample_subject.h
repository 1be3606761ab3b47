// What a sample's walk was a walk of, in the words that oracles have.
#pragma once

#include "harness/oracles/walk_view.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"

namespace framestorm::stress {

class SampleSubject {
 public:
  SampleSubject(Jvm& jvm, SamplingMode mode);
  SampleSubject(const SampleSubject&) = delete;
  SampleSubject& operator=(const SampleSubject&) = delete;

  // Until it is called again. `walker`: the adapter of the sample's walk. Async-signal-safe.
  const Subject& of(const Sample& sample, const Walker& walker);

 private:
  Input input_;
  Victim victim_;
  UndoLog no_mutations_;
  Subject subject_;
};

}  // namespace framestorm::stress
