#include "stress/agent/sample_subject.h"

namespace framestorm::stress {

const Subject& SampleSubject::of(const Sample& sample, const Walker& walker) {
  subject_.set({.tid = sample.tid,
                .java_thread = sample.java_thread,
                .jni_env = sample.jni_env,
                .pc = sample.pc(),
                .sp = sample.sp(),
                .fp = sample.fp(),
                .stack_base = sample.stack_base,
                .stack_end = sample.stack_end});
  return subject_.of(walker, sample.walk.depth, sample.walk.options);
}

}  // namespace framestorm::stress
