#include "harness/oracles/thread_subject.h"

namespace framestorm {

ThreadSubject::ThreadSubject(Jvm& jvm, Mode mode) {
  input_.scenario = victim_.scenario = ScenarioId::count;
  input_.mode = mode;
  input_.call.depth = DepthKind::raw;
  victim_.is_java_thread = true;
  subject_ = {.input = &input_,
              .victim = &victim_,
              .jvm = &jvm,
              .methods = &jvm.methods(),
              .undo = &no_mutations_,
              .unmutated = true};
}

void ThreadSubject::set(const Thread& thread) {
  victim_.tid = thread.tid;
  victim_.java_thread = thread.java_thread;
  victim_.jni_env = thread.jni_env;
  victim_.pc = thread.pc;
  victim_.sp = thread.sp;
  victim_.fp = thread.fp;
  victim_.stack_base = victim_.frames_top = thread.stack_base;
  victim_.stack_end = thread.stack_end;
}

const Subject& ThreadSubject::of(const Walker& walker, int32_t depth, uint32_t options) {
  input_.walker = walker.id();
  input_.call.raw_depth = depth;
  input_.call.options = options;
  subject_.walker = &walker;
  return subject_;
}

}  // namespace framestorm
