#include "stress/agent/reference_check.h"

#include "harness/base/clock.h"
#include "harness/jvm/agent.h"
#include "harness/oracles/reference.h"

namespace framestorm::stress {
namespace {

constexpr jint kMostFrames = 4096;

// The outermost Java frame's method; null when there is none, or it has no name.
jmethodID outermost(const WalkView& view) {
  for (size_t i = view.record.frame_count(); i-- > 0;) {
    const Frame frame = view.frame(i);
    if (frame.unnamed || frame.method != nullptr) return frame.method;
  }
  return nullptr;
}

// What Java starts threads with, the same as long as the thread lives but for Thread.exit. Where a
// thread of C code calls Java, as the launcher's does, it may be another call by now.
bool is_start_of_thread(const std::string& method) { return method.ends_with(".run"); }

}  // namespace

std::string ReferenceCheck::check(JNIEnv* env, const WalkView& view, const Sample& sample,
                                  Registry& registry) {
  const uint64_t begin = monotonic_ns();
  if (!share_.may_begin(begin)) return {};
  if (view.record.end != WalkEnd::returned || view.record.result <= 0 ||
      view.record.result >= view.record.depth)
    return {};
  const WalkerTraits& walker = view.subject.walker->traits();
  if (walker.says_when_cut && view.record.stopped() != nullptr) return {};
  const jmethodID last = outermost(view);
  const MethodInfo* const mine = last == nullptr ? nullptr : view.subject.methods->find(last);
  if (mine == nullptr || is_of_continuation(mine->name)) return {};
  jobject thread = nullptr;
  registry.find(sample.tid, [&](const SampledThread& record) {
    if (record.index == sample.thread) thread = env->NewLocalRef(record.thread);
  });
  if (thread == nullptr) return {};
  frames_.resize(static_cast<size_t>(kMostFrames));
  jint count = 0;
  const jvmtiError error =
      jvm_.jvmti()->GetStackTrace(thread, 0, kMostFrames, frames_.data(), &count);
  env->DeleteLocalRef(thread);
  share_.took(begin, monotonic_ns());
  if (error != JVMTI_ERROR_NONE || count == 0 || count == kMostFrames) return {};
  for (jint i = 0; i < count; ++i) {
    const jmethodID method = frames_[static_cast<size_t>(i)].method;
    if (view.subject.methods->find(method) == nullptr) know_method(env, method);
    const MethodInfo* const info = view.subject.methods->find(method);
    if (walker.stops_at_continuations && info != nullptr && is_of_continuation(info->name))
      return {};
  }
  const jmethodID reference = frames_[static_cast<size_t>(count) - 1].method;
  const MethodInfo* const theirs = view.subject.methods->find(reference);
  if (theirs == nullptr || !is_start_of_thread(theirs->name)) return {};
  ++made_;
  if (reference == last) return {};
  ++broken_;
  return "the trace ends in " + mine->name + ", the thread's stack in " + theirs->name;
}

}  // namespace framestorm::stress
