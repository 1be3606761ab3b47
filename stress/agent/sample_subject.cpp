#include "stress/agent/sample_subject.h"

namespace framestorm::stress {

SampleSubject::SampleSubject(Jvm& jvm, SamplingMode mode) {
  input_.scenario = victim_.scenario = ScenarioId::count;
  input_.mode = input_mode(mode);
  input_.call.depth = DepthKind::raw;
  victim_.is_java_thread = true;
  subject_ = {.input = &input_,
              .victim = &victim_,
              .jvm = &jvm,
              .methods = &jvm.methods(),
              .undo = &no_mutations_,
              .unmutated = true};
}

const Subject& SampleSubject::of(const Sample& sample, const Walker& walker) {
  input_.walker = sample.walk.walker;
  input_.call.raw_depth = sample.walk.depth;
  input_.call.options = sample.walk.options;
  victim_.tid = sample.tid;
  victim_.java_thread = sample.java_thread;
  victim_.jni_env = sample.jni_env;
  victim_.pc = sample.pc();
  victim_.sp = sample.sp();
  victim_.fp = sample.fp();
  victim_.stack_base = victim_.frames_top = sample.stack_base;
  victim_.stack_end = sample.stack_end;
  subject_.walker = &walker;
  return subject_;
}

}  // namespace framestorm::stress
