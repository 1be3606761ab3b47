#include "harness/walkers/profiler.h"

#include <dlfcn.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "harness/base/clock.h"
#include "harness/guard/sampler_thread.h"
#include "harness/input/thread_state.h"
#include "harness/jvm/modules.h"
#include "harness/walkers/java_profiler.h"
#include "harness/walkers/plugin.h"

namespace framestorm {
namespace {

// How long a signal of the profiler's own is waited for, in processor time of this thread: its
// timers may count that. Profilers sample every 10 ms unless told otherwise.
constexpr uint64_t kPatienceNs = 500'000'000;

// By which HotSpot stops a thread that another one is to walk.
constexpr int kStoppingSignal = SIGUSR2;
constexpr uint64_t kStopPatienceNs = 3 * kSecond;

bool is_code_of(void* library, const void* code) {
  Dl_info where = {};
  if (dladdr(code, &where) == 0) return false;
  void* const owner = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (owner != nullptr) dlclose(owner);
  return owner == library;
}

int find_signal(void* library) {
  for (const int signo : sampling_signals()) {
    const struct sigaction action = signals::behind(signo);
    if ((action.sa_flags & SA_SIGINFO) != 0 &&
        is_code_of(library, reinterpret_cast<const void*>(action.sa_sigaction))) {
      return signo;
    }
  }
  return 0;
}

// HotSpot's handling of a fault; on the thread of its sampler a jump back into that.
using HandleSignal = int(int signo, siginfo_t* info, void* context, int abort_if_unrecognized);
HandleSignal* handle_signal = nullptr;

bool is_survived(int signo, siginfo_t* info, void* context) {
  return handle_signal(signo, info, context, /*abort_if_unrecognized=*/0) != 0;
}

}  // namespace

std::vector<int> sampling_signals() {
  std::vector<int> signals = {SIGPROF, SIGVTALRM, SIGALRM, SIGSTKFLT, SIGPWR, SIGUSR1};
  for (int signo = SIGRTMIN; signo <= SIGRTMAX; ++signo) signals.push_back(signo);
  signals.push_back(kStoppingSignal);
  return signals;
}

ProfilerSpec ProfilerSpec::parse(std::string_view text) {
  if (text == kJvm) return {};
  PluginSpec file = PluginSpec::parse(std::string(text));
  return {std::move(file.file), std::move(file.options)};
}

std::vector<std::string> ProfilerSpec::jvm_arguments() const {
  const bool starts_from_java =
      !library.empty() && FunctionTable(library).by_name(JavaProfiler::kExecute) != nullptr;
  if (library.empty() || starts_from_java) return {};
  return {"-agentpath:" + library.string() + (options.empty() ? "" : "=" + options)};
}

void* ProfilerSpec::start_from_java(const Jvm& jvm) const {
  const JavaProfiler started = [&] {
    try {
      return JavaProfiler(library, jvm.vm(), jvm.env());
    } catch (const std::runtime_error& error) {
      throw SetupError(error.what());
    }
  }();
  started.execute(jvm.env(), options);
  jvm.check_exception(library.string() + " with the options " + options);
  return started.library();
}

std::unique_ptr<Profiler> Profiler::find(const Jvm& jvm, const ProfilerSpec& spec) {
  void* library =
      spec.library.empty() ? jvm.library() : dlopen(spec.library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = spec.start_from_java(jvm);
  const int signo = find_signal(library);
  if (signo == 0) {
    throw SetupError((spec.library.empty() ? "the JVM" : spec.library.string()) +
                     " has installed no handler of a signal that profilers sample by: do its "
                     "options start it? Its own messages stand above.");
  }
  return std::unique_ptr<Profiler>(
      new Profiler(jvm, signo, library == jvm.library(), find_sample_store(jvm, library)));
}

Profiler::Profiler(const Jvm& jvm, int signo, bool is_jvms, std::unique_ptr<SampleStore> store)
    : Walker(WalkerId::profiler),
      signo_(signo),
      is_jvms_(is_jvms),
      handler_(signals::behind(signo).sa_sigaction),
      store_(std::move(store)),
      has_own_thread_(signo == kStoppingSignal && hold_thread(jvm)),
      thread_state_(jvm.layout().state) {
  info_.si_signo = signo;
  if (has_own_thread_) {
    // As pthread_kill() sends it.
    info_.si_code = SI_TKILL;
    info_.si_pid = getpid();
    info_.si_uid = getuid();
  } else {
    get_siginfo();
  }
  if (store_ != nullptr) stored_before_ = store_->count();
}

void Profiler::get_siginfo() {
  signals::mute(signo_);
  const uint64_t begin = own_cpu_ns();
  while (!has_own_siginfo_ && own_cpu_ns() - begin < kPatienceNs) {
    has_own_siginfo_ = signals::first_muted(signo_, &info_);
  }
  if (!has_own_siginfo_) info_.si_code = SI_TIMER;
}

// Waits for a sample of its own, which JFR makes of threads that run Java: reading its recordings does.
bool Profiler::hold_thread(const Jvm& jvm) {
  sampler::look_for(signo_);
  const uint64_t begin = monotonic_ns();
  while (!sampler::is_found() && monotonic_ns() - begin < kStopPatienceNs) {
    if (store_ != nullptr) store_->count();
  }
  handle_signal = reinterpret_cast<HandleSignal*>(jvm.symbol("JVM_handle_linux_signal"));
  if (sampler::is_found() && sampler::hold(is_jvms_ ? &is_survived : nullptr)) return true;
  if (!is_jvms_) return false;
  throw SetupError(
      "the JVM's options start no sampler: no thread of it stopped another one within 3 s");
}

std::optional<uint64_t> Profiler::stored(bool at_the_end) {
  if (store_ == nullptr || (store_->counts_slowly() && !at_the_end)) return std::nullopt;
  return store_->count() - stored_before_;
}

// JFR ends the process for a thread state that is none, before it stops the thread: that is a check of
// HotSpot's, which a walk does not get past.
int32_t Profiler::walk_from_its_thread(const WalkTarget& target, siginfo_t* info,
                                       void* ucontext) const noexcept {
  const bool has_state = is_jvms_ && target.java_thread != nullptr;
  if (has_state && !is_legal_thread_state(read_at<uint32_t>(target.java_thread, thread_state_))) {
    return -static_cast<int32_t>(sampler::Answer::passed_over);
  }
  return -static_cast<int32_t>(sampler::walk(handler_, signo_, info, ucontext));
}

int32_t Profiler::walk(const WalkTarget& target, std::byte*, int32_t, void* ucontext) noexcept {
  siginfo_t info = info_;
  if (has_own_thread_) return walk_from_its_thread(target, &info, ucontext);
  handler_(signo_, &info, ucontext);
  return 0;
}

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::profiler>, const Exports&) {
  throw SetupError("no --profiler was given");
}

}  // namespace framestorm
