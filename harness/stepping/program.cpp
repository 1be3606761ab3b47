#include "harness/stepping/program.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "harness/base/clock.h"
#include "harness/victim/context.h"
#include "harness/victim/world.h"

namespace framestorm::stepping {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kFullSpeed{40};  // between windows, at most
constexpr Milliseconds kGlance{1};
// A window is over after so many steps,
constexpr uint64_t kLongest = 20'000;
// so many without an instruction that is new,
constexpr uint64_t kNothingNew = 1'000;
// in one of some windows more, since new ones may stand behind a loop of more (that of SHA-512's
// stub has 2,500),
constexpr uint64_t kNothingNewForLong = 4'000;
constexpr size_t kWaitsForLong = 8;
// so many without a known stack,
constexpr uint64_t kUnknown = 3'000;
// or so long without a step: the thread waits.
constexpr Milliseconds kStanding{50};

// Of the program at full speed: where threads were when they were asked by SIGPROF.
struct Sample {
  std::atomic<uintptr_t> pc{0};
  int tid = 0;
};
constexpr size_t kMostSamples = 1024;
std::array<Sample, kMostSamples> samples;
std::atomic<size_t> sample_count{0};

// Signal context.
void on_sample(int, siginfo_t*, void* raw) {
  const size_t index = sample_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMostSamples) return;
  samples[index].tid = gettid();
  samples[index].pc.store(get_register(*static_cast<const ucontext_t*>(raw), Register::pc),
                          std::memory_order_release);
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
    struct sigaction action = {};
    action.sa_sigaction = &on_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigaction(SIGPROF, &action, nullptr);
    find_mounted_on();
  }

  bool over() const { return env_->GetStaticBooleanField(class_, over_) == JNI_TRUE; }

  // The virtual thread that a carrier runs; null for none.
  jthread mounted_on(jthread carrier) {
    jthread mounted = nullptr;
    if (mounted_on_ == nullptr ||
        mounted_on_(jvm_.jvmti(), carrier, &mounted) != JVMTI_ERROR_NONE) {
      return nullptr;
    }
    return mounted;
  }

 private:
  friend class Threads;

  // An extension of HotSpot's, where there are virtual threads.
  void find_mounted_on() {
    jint count = 0;
    jvmtiExtensionFunctionInfo* functions = nullptr;
    if (jvm_.jvmti()->GetExtensionFunctions(&count, &functions) != JVMTI_ERROR_NONE) return;
    for (const auto& function : std::span(functions, static_cast<size_t>(count))) {
      if (std::string_view(function.id) == "com.sun.hotspot.functions.GetVirtualThread") {
        mounted_on_ = reinterpret_cast<MountedOn>(function.func);
      }
    }
  }

  using MountedOn = jvmtiError (*)(jvmtiEnv*, jthread, jthread*);
  MountedOn mounted_on_ = nullptr;
  Jvm& jvm_;
  JNIEnv* const env_;
  jclass class_ = nullptr;
  jfieldID over_ = nullptr;
  std::map<int, uint64_t> used_;  // CPU time when a thread was chosen last
};

// Its platform threads of a moment, those that have run since they were chosen last.
class Threads {
 public:
  explicit Threads(Program& program) : program_(program) {
    jint count = 0;
    jthread* threads = nullptr;
    program.env_->PushLocalFrame(4096);
    if (program.jvm_.jvmti()->GetAllThreads(&count, &threads) != JVMTI_ERROR_NONE) count = 0;
    for (const jthread thread : std::span(threads, static_cast<size_t>(count))) {
      const int tid = program.jvm_.tid_of(program.jvm_.java_thread_of(program.env_, thread));
      const uint64_t used = tid == 0 || tid == gettid() ? 0 : thread_cpu_ns(tid);
      const uint64_t since = used - std::min(used, program.used_[tid]);
      if (since > 0) all_.push_back({thread, tid, static_cast<double>(since), used});
    }
    if (threads != nullptr) {
      program.jvm_.jvmti()->Deallocate(reinterpret_cast<unsigned char*>(threads));
    }
  }
  ~Threads() { program_.env_->PopLocalFrame(nullptr); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Asks those where they are that have run since they were asked last.
  void sample() {
    for (One& one : all_) {
      const uint64_t used = thread_cpu_ns(one.tid);
      if (used > one.seen) syscall(SYS_tgkill, getpid(), one.tid, SIGPROF);
      one.seen = used;
    }
  }

  // Has `stepper` begin on the one with this ID; 0: on one by chance, the more the longer it has run.
  bool begin_on(int tid, Stepper& stepper, std::mt19937_64& random) {
    if (all_.empty()) return false;
    std::vector<double> weights;
    weights.reserve(all_.size());
    for (const One& one : all_) weights.push_back(one.weight);
    auto chosen = std::ranges::find(all_, tid, &One::tid);
    if (chosen == all_.end()) {
      chosen = all_.begin() +
               std::discrete_distribution<ptrdiff_t>(weights.begin(), weights.end())(random);
    }
    program_.used_[chosen->tid] = thread_cpu_ns(chosen->tid);
    const jthread mounted = program_.mounted_on(chosen->thread);
    return stepper.begin_on(mounted == nullptr ? chosen->thread : mounted, chosen->thread);
  }

 private:
  struct One {
    jthread thread;
    int tid;
    double weight;
    uint64_t seen;  // CPU time
  };
  Program& program_;
  std::vector<One> all_;
};

std::vector<std::byte> code_at(const Blob& blob, size_t offset) {
  constexpr size_t kMostBytes = 15;  // bytes of an instruction
  const auto from = [&](size_t at) {
    return blob.code.begin() + static_cast<ptrdiff_t>(std::min(at, blob.code.size()));
  };
  return {from(offset), from(offset + kMostBytes)};
}

// At full speed, until a thread is seen at an instruction that was not stepped yet: that thread; 0:
// there was none.
int watch(Threads& threads, Jvm& jvm, Stepper& stepper, ProgramResult* result) {
  const auto begin = Clock::now();
  size_t taken = 0;
  sample_count.store(0);
  int missed = 0;
  while (missed == 0 && Clock::now() - begin < kFullSpeed) {
    std::this_thread::sleep_for(kGlance);
    threads.sample();
    jvm.code_map().absorb();
    for (; taken < std::min(sample_count.load(), kMostSamples); ++taken) {
      const uintptr_t pc = samples[taken].pc.exchange(0, std::memory_order_acquire);
      if (pc == 0) break;  // it is being written
      const Blob* const blob =
          stepper.catalog().in_code_cache(pc) ? stepper.catalog().at(pc) : nullptr;
      if (blob == nullptr) continue;
      const auto offset = static_cast<uint32_t>(pc - blob->entry.begin);
      ++result->sampled[{std::string(name_of(blob->entry.kind)), blob->entry.name, blob->entry.tier,
                         offset, code_at(*blob, offset)}];
      if (!stepper.instructions(*blob).contains(offset)) missed = samples[taken].tid;
    }
  }
  return missed;
}

void wait_for_end(const Stepper& stepper, uint64_t nothing_new) {
  const uint64_t first = stepper.steps_now();
  uint64_t steps = first;
  auto moved = Clock::now();
  while (stepper.stepping()) {
    std::this_thread::sleep_for(kGlance);
    const uint64_t now = stepper.steps_now();
    if (now != steps) moved = Clock::now();
    steps = now;
    if (Clock::now() - moved > kStanding || steps - first > kLongest ||
        steps - std::min(steps, stepper.last_new()) > nothing_new ||
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
  while (Clock::now() - begin < options.warm_up) {
    std::this_thread::sleep_for(kFullSpeed);
    jvm.methods().absorb();
    jvm.methods().id_of(nullptr);  // before they are replaced
  }
  std::mt19937_64 random(1);
  size_t windows = 0;
  while (Clock::now() - begin < options.limit) {
    if (program.over()) {
      result.ended = true;
      break;
    }
    World::get().forget_ended();
    Threads threads(program);
    const int missed = watch(threads, jvm, stepper, &result);
    const uint64_t walked = stepper.counts().walked;
    // Every other window is without events.
    stepper.set_injecting(windows % 2 == 1, windows / 2);
    ++windows;
    if (!threads.begin_on(missed, stepper, random)) continue;
    wait_for_end(stepper, windows % kWaitsForLong == 0 ? kNothingNewForLong : kNothingNew);
    stepper.end_on();
    ++(stepper.counts().walked == walked ? result.vain : result.windows);
    if (options.after_window) options.after_window();
  }
  return result;
}

}  // namespace framestorm::stepping
