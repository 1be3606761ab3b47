#include "harness/stepping/program.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "harness/victim/context.h"

namespace framestorm::stepping {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kFullSpeed{40};  // between windows
constexpr Milliseconds kGlance{1};
// A window is over after so many steps,
constexpr uint64_t kLongest = 50'000;
// so many without an instruction that is new,
constexpr uint64_t kNothingNew = 5'000;
// so many without a known stack,
constexpr uint64_t kUnknown = 3'000;
// or so long without a step: the thread waits.
constexpr Milliseconds kStanding{50};

// Of the program at full speed.
constexpr size_t kMostSamples = 1024;
std::array<std::atomic<uintptr_t>, kMostSamples> samples;
std::atomic<size_t> sample_count{0};

// Signal context.
void on_sample(int, siginfo_t*, void* raw) {
  const size_t index = sample_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMostSamples) return;
  samples[index].store(get_register(*static_cast<const ucontext_t*>(raw), Register::pc),
                       std::memory_order_release);
}

// Looks where the process's CPU time goes, each millisecond of it, while it is running.
class Sampling {
 public:
  Sampling() {
    struct sigaction action = {};
    action.sa_sigaction = &on_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigaction(SIGPROF, &action, nullptr);
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGPROF;
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer_) != 0) {
      throw SetupError("timer_create failed: no sampling of where the program is");
    }
  }
  ~Sampling() { timer_delete(timer_); }
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

  void start() { set({{0, 1'000'000}, {0, 1'000'000}}); }
  void stop() { set({}); }
  // Those since it was asked last; stopped.
  std::vector<uintptr_t> take() {
    std::vector<uintptr_t> taken;
    const size_t count = std::min(sample_count.load(), kMostSamples);
    for (size_t i = 0; i < count; ++i) {
      if (const uintptr_t pc = samples[i].exchange(0, std::memory_order_acquire)) {
        taken.push_back(pc);
      }
    }
    sample_count.store(0);
    return taken;
  }

 private:
  void set(const itimerspec& period) { timer_settime(timer_, 0, &period, nullptr); }
  timer_t timer_ = {};
};

// Of a thread, in nanoseconds; 0 when it is gone. As glibc's pthread_getcpuclockid.
uint64_t cpu_time(int tid) {
  timespec used = {};
  const auto clock = static_cast<clockid_t>((~static_cast<uint32_t>(tid) << 3) | 6);
  if (clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

class Program {
 public:
  Program(Jvm& jvm, const ProgramOptions& options) : jvm_(jvm), env_(jvm.env()) {
    class_ = static_cast<jclass>(env_->NewGlobalRef(env_->FindClass("framestorm/Program")));
    jvm_.check_exception("framestorm.Program");
    over_ = env_->GetStaticFieldID(class_, "over", "Z");
    const jmethodID start =
        env_->GetStaticMethodID(class_, "start", "(Ljava/lang/String;[Ljava/lang/String;)V");
    jvm_.check_exception("framestorm.Program");
    env_->PushLocalFrame(static_cast<jint>(options.arguments.size()) + 16);
    const jobjectArray arguments = env_->NewObjectArray(
        static_cast<jsize>(options.arguments.size()), env_->FindClass("java/lang/String"), nullptr);
    for (size_t i = 0; i < options.arguments.size(); ++i) {
      env_->SetObjectArrayElement(arguments, static_cast<jsize>(i),
                                  env_->NewStringUTF(options.arguments[i].c_str()));
    }
    env_->CallStaticVoidMethod(class_, start, env_->NewStringUTF(options.main_class.c_str()),
                               arguments);
    jvm_.check_exception("starting " + options.main_class);
    env_->PopLocalFrame(nullptr);
  }

  bool over() const { return env_->GetStaticBooleanField(class_, over_) == JNI_TRUE; }

  // Has `stepper` begin on one of its platform threads, by chance, the more the longer it has run
  // since it was chosen last.
  bool begin_on_one(Stepper& stepper, std::mt19937_64& random) {
    jint count = 0;
    jthread* threads = nullptr;
    env_->PushLocalFrame(4096);
    if (jvm_.jvmti()->GetAllThreads(&count, &threads) != JVMTI_ERROR_NONE) count = 0;
    std::vector<double> weights;
    std::vector<int> tids;
    for (const jthread thread : std::span(threads, static_cast<size_t>(count))) {
      const int tid = jvm_.tid_of(jvm_.java_thread_of(env_, thread));
      const uint64_t used = tid == 0 || tid == gettid() ? 0 : cpu_time(tid);
      weights.push_back(static_cast<double>(used - std::min(used, used_[tid])));
      tids.push_back(tid);
    }
    const bool has_run = std::ranges::any_of(weights, [](double weight) { return weight > 0; });
    bool begun = false;
    if (has_run) {
      const size_t chosen =
          std::discrete_distribution<size_t>(weights.begin(), weights.end())(random);
      used_[tids[chosen]] = cpu_time(tids[chosen]);
      begun = stepper.begin_on(threads[chosen]);
    }
    if (threads != nullptr) {
      jvm_.jvmti()->Deallocate(reinterpret_cast<unsigned char*>(threads));
    }
    env_->PopLocalFrame(nullptr);
    return begun;
  }

 private:
  Jvm& jvm_;
  JNIEnv* const env_;
  jclass class_ = nullptr;
  jfieldID over_ = nullptr;
  std::map<int, uint64_t> used_;  // CPU time, by thread
};

void wait_for_end(const Stepper& stepper) {
  const uint64_t first = stepper.steps_now();
  uint64_t steps = first;
  auto moved = Clock::now();
  while (stepper.stepping()) {
    std::this_thread::sleep_for(kGlance);
    const uint64_t now = stepper.steps_now();
    if (now != steps) moved = Clock::now();
    steps = now;
    if (Clock::now() - moved > kStanding || steps - first > kLongest ||
        steps - std::min(steps, stepper.last_new()) > kNothingNew ||
        steps - std::min(steps, stepper.last_known()) > kUnknown) {
      return;
    }
  }
}

}  // namespace

ProgramResult step_program(Jvm& jvm, Stepper& stepper, const ProgramOptions& options) {
  ProgramResult result;
  const auto begin = Clock::now();
  Program program(jvm, options);
  std::this_thread::sleep_for(options.warm_up);
  Sampling sampling;
  std::mt19937_64 random(1);
  while (Clock::now() - begin < options.limit) {
    if (program.over()) {
      result.ended = true;
      break;
    }
    sampling.start();
    std::this_thread::sleep_for(kFullSpeed);
    sampling.stop();
    jvm.code_map().absorb();
    for (const uintptr_t pc : sampling.take()) {
      if (!stepper.catalog().in_code_cache(pc)) continue;
      if (const Blob* const blob = stepper.catalog().at(pc)) {
        ++result.sampled[{std::string(name_of(blob->entry.kind)), blob->entry.name,
                          blob->entry.tier, static_cast<uint32_t>(pc - blob->entry.begin)}];
      }
    }
    const uint64_t walked = stepper.counts().walked;
    if (!program.begin_on_one(stepper, random)) continue;
    wait_for_end(stepper);
    stepper.end_on();
    ++(stepper.counts().walked == walked ? result.vain : result.windows);
  }
  return result;
}

}  // namespace framestorm::stepping
