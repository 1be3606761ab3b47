#include "stress/agent/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "harness/base/clock.h"
#include "stress/agent/delivery.h"
#include "stress/agent/truth.h"

namespace framestorm::stress {
namespace {

// For how long a thread is left alone that is in the midst of creating another thread or process:
// clone(2) begins anew with every signal.
constexpr uint64_t kCloneTime = 1'000'000;

}  // namespace

void install_handler(int signo, void (*handler)(int, siginfo_t*, void*),
                     std::optional<int> blocked) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  // Not on a signal stack: a walk is made where a profiler's would be.
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (blocked) sigaddset(&action.sa_mask, *blocked);
  if (sigaction(signo, &action, nullptr) != 0) {
    throw std::system_error(errno, std::generic_category(), "installing the sampling handler");
  }
}

std::unique_ptr<Sampler> make_sampler(const Options& options, Jvm& jvm, WalkSetup setup) {
  constexpr decltype(&make_same_thread_sampler) kMakers[] = {
      make_same_thread_sampler, make_separate_thread_sampler, make_queued_sampler,
      make_unstopped_sampler};
  return kMakers[static_cast<size_t>(options.mode)](options, jvm, std::move(setup));
}

Sampler::Sampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : options_(options),
      jvm_(jvm),
      slots_(options_, std::move(setup)),
      arming_(options_, registry_, *this),
      delivery_ns_(measure_delivery(timer_signal())) {}

void Sampler::enter_thread(JNIEnv* env, jthread object, int tid, void* java_thread) {
  // Nothing would make its record free again.
  if (stopped() || duration_over()) return;
  const ThreadLayout& layout = jvm_.layout();
  const auto base = read_at<uintptr_t>(java_thread, layout.stack_base);
  const auto size = read_at<size_t>(java_thread, layout.stack_size);
  const int64_t number = options_.truth ? Truth::get().number_of(env, object) : 0;
  const jweak weak = env->NewWeakGlobalRef(object);
  jweak former = nullptr;
  const TimerBlocked not_now;
  SampledThread* const thread = registry_.enter(
      tid, weak, java_thread, static_cast<std::byte*>(java_thread) + layout.jni_env, base,
      base - size, number, options_.truth ? Truth::get().stacks().find(number) : nullptr,
      [&](SampledThread& retired) { former = arming_.retire(retired); });
  if (former != nullptr) env->DeleteWeakGlobalRef(former);
  if (thread == nullptr) env->DeleteWeakGlobalRef(weak);
  if (thread != nullptr) arming_.arm_new(*thread);
}

void Sampler::leave_thread(JNIEnv* env, int tid) {
  const TimerBlocked not_now;
  jweak former = nullptr;
  int64_t number = 0;
  registry_.leave(tid, [&](SampledThread& thread) {
    former = arming_.retire(thread);
    number = thread.number;
    thread.shadow.store(nullptr);
  });
  if (options_.truth && number != 0) Truth::get().stacks().release(number);
  if (former != nullptr) env->DeleteWeakGlobalRef(former);
}

Sampler::Rest Sampler::rest_after(SampledThread& thread, const InterruptedCall& call,
                                  uint64_t begin_ns) {
  const uint64_t interval = interval_ns();
  const uint64_t now = monotonic_ns();
  const uint64_t left_alone = thread.progress.note(begin_ns, now, interval, delivery_ns_);
  const uint64_t waits_on = thread.waiting.note(call.waiting, now);
  if (call.creating) return {kCloneTime, LostCause::creating_thread};
  // Who asks for other threads than running ones asks how they wait.
  if (options_.threads == ThreadChoice::running && waits_on > std::max(left_alone, interval)) {
    return {waits_on, LostCause::waiting};
  }
  return {left_alone, LostCause::throttled};
}

void Sampler::count_sample(SampledThread& thread, bool waiting) {
  thread.samples.fetch_add(1, std::memory_order_relaxed);
  if (waiting) idle_samples_.fetch_add(1, std::memory_order_relaxed);
}

void Sampler::check(SampledThread& thread, jvmtiEnv* jvmti) {
  if (stopped() || thread.phase.load() != SampledThread::Phase::live) return;
  // No sample in between: it would be a walk within a walk.
  const AllBlocked not_now;
  ucontext_t context;
  if (getcontext(&context) != 0) return;
  const WalkRequest request = slots_.check_for(thread, context);
  if (request.number == 0) return;
  const Slots::Taken slot = slots_.take(thread);
  if (!slot) return;
  std::vector<jvmtiFrameInfo>& reference = slot->reference();
  reference.resize(kReferenceDepth);
  jint count = 0;
  if (jvmti->GetStackTrace(nullptr, 0, kReferenceDepth, reference.data(), &count) !=
      JVMTI_ERROR_NONE) {
    slot->release();
    return;
  }
  reference.resize(static_cast<size_t>(count));
  {
    const SignalStack::Lent lent(slot->signal_stack());
    slot->walk(request);
  }
  slot->sample().at_safepoint = true;
  slot->copy_window();
  slots_.hand_over(slot, thread);
}

void Sampler::start() {
  const EverySignalBlocked not_for_it;
  arming_.start();
  start_own_thread();
}

void Sampler::stop() {
  const TimerBlocked not_now;
  const bool is_first = arming_.stop();
  if (is_first) join_own_thread();
  arming_.disarm_all();
  while (in_handlers_.load() != 0) usleep(100);
  if (is_first) settle();
  registry_.for_each([this](SampledThread& thread) { forget(thread); });
}

}  // namespace framestorm::stress
