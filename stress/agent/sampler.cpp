#include "stress/agent/sampler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include "harness/base/clock.h"
#include "harness/victim/context.h"
#include "stress/agent/delivery.h"

namespace framestorm::stress {
namespace {

constexpr uint64_t kScan = 10'000'000;         // between two looks at the threads
constexpr uint64_t kRandomTurn = 100'000'000;  // for how long the same random threads are sampled
// HotSpot's guard pages and room for a handler and a walk above them.
constexpr uintptr_t kStackReserve = uintptr_t{48} << 10;
// A thread that takes this share of a scan is running; while it is armed it counts as idle after so
// many scans of which it was waiting for the most part.
constexpr double kRunningShare = 0.2;
constexpr uint32_t kQuietScans = 3;

// Running threads sampled at once, per core. Sampling takes up to nine tenths of a thread's time at
// short intervals: with thousands of them sampled, nothing else on the machine would go on.
constexpr size_t kArmedPerCore = 32;

Sampler* active = nullptr;

int timer_signal() { return SIGRTMAX - 7; }

// The calling thread's own samples wait. A thread that ends its timer is not put off any more by
// what its handler costs: with a short interval it would never come to do it. And what it does with
// the registry's lock others wait for.
class TimerBlocked {
 public:
  TimerBlocked() {
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, timer_signal());
    pthread_sigmask(SIG_BLOCK, &timer, &before_);
  }
  ~TimerBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  TimerBlocked(const TimerBlocked&) = delete;
  TimerBlocked& operator=(const TimerBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Sampler::Sampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : options_(options),
      jvm_(jvm),
      setup_(std::move(setup)),
      walking_(options.out / "walking.bin", kSlots),
      ring_(kRingCells, static_cast<size_t>(options.depth) * 32 + kStackWindow),
      random_(options.seed) {
  for (size_t i = 0; i < kSlots; ++i) {
    slots_.push_back(std::make_unique<WalkSlot>(setup_, walking_.record(i)));
  }
  active = this;
  delivery_ns_ = measure_delivery(timer_signal());
  if (options_.mode != SamplingMode::same_thread) {
    install_halting();
    return;
  }
  struct sigaction action = {};
  action.sa_sigaction = &Sampler::handle_timer;
  // Not on a signal stack: the walk is made where a profiler's would be.
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(timer_signal(), &action, nullptr) != 0) {
    throw std::system_error(errno, std::generic_category(), "installing the sampling handler");
  }
}

void Sampler::enter_thread(JNIEnv* env, jthread object, int tid, void* java_thread) {
  // Nothing would make its record free again.
  if (stopped() || duration_over()) return;
  const ThreadLayout& layout = jvm_.layout();
  const auto base = read_at<uintptr_t>(java_thread, layout.stack_base);
  const auto size = read_at<size_t>(java_thread, layout.stack_size);
  const jweak weak = env->NewWeakGlobalRef(object);
  jweak former = nullptr;
  const TimerBlocked not_now;
  SampledThread* const thread =
      registry_.enter(tid, weak, java_thread, static_cast<std::byte*>(java_thread) + layout.jni_env,
                      base, base - size, [&](SampledThread& retired) { former = retire(retired); });
  if (former != nullptr) env->DeleteWeakGlobalRef(former);
  if (thread == nullptr) env->DeleteWeakGlobalRef(weak);
  if (thread == nullptr || options_.threads == ThreadChoice::random) return;
  // A thread that starts is running; if it is not, the next scans will tell.
  if (sampling_.load(std::memory_order_acquire)) {
    registry_.with_lock([&] { arm(*thread); });
  }
}

void Sampler::leave_thread(JNIEnv* env, int tid) {
  const TimerBlocked not_now;
  jweak former = nullptr;
  registry_.leave(tid, [&](SampledThread& thread) { former = retire(thread); });
  if (former != nullptr) env->DeleteWeakGlobalRef(former);
}

jweak Sampler::retire(SampledThread& thread) {
  disarm(thread);
  if (thread.has_timer) timer_delete(thread.timer);
  thread.has_timer = false;
  return std::exchange(thread.thread, nullptr);
}

Sampler::Arm Sampler::arm(SampledThread& thread) {
  static const size_t room = kArmedPerCore * std::max(1U, std::thread::hardware_concurrency());
  if (thread.armed) return Arm::done;
  if (stopping_.load(std::memory_order_relaxed)) return Arm::over;
  if (options_.threads == ThreadChoice::running && armed_.size() >= room) return Arm::enough;
  const int tid = thread.tid.load(std::memory_order_relaxed);
  const bool by_timer = options_.mode == SamplingMode::same_thread;
  if (by_timer && !thread.has_timer) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event.sigev_value.sival_ptr = &thread;
    event._sigev_un._tid = tid;
    if (timer_create(CLOCK_MONOTONIC, &event, &thread.timer) != 0) {
      if (is_gone(tid)) return Arm::over;
      timers_ran_out_.store(true, std::memory_order_relaxed);
      return Arm::no_timer;
    }
    thread.has_timer = true;
  }
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  // Threads that are armed together are not interrupted together.
  const uint64_t first = 1 + random_() % interval;
  const itimerspec when = {as_timespec(interval), as_timespec(first)};
  thread.armed_since_cpu = thread_cpu_ns(tid);
  thread.armed_since_wall = monotonic_ns();
  // What it did while it was not sampled is neither waiting nor running.
  thread.waiting.forget();
  thread.waiting_cpu = 0;
  thread.waited_seen = 0;
  thread.quiet_scans = 0;
  const uint64_t number = thread.armings.fetch_add(1) + 1;
  thread.armed.store(true);
  armed_.insert(&thread);
  if (!by_timer) newly_armed_.push_back({&thread, number});
  most_armed_.store(std::max(armed_.size(), most_armed()), std::memory_order_relaxed);
  if (by_timer) timer_settime(thread.timer, 0, &when, nullptr);
  return Arm::done;
}

void Sampler::miss(SampledThread& thread, uint64_t ns, Arm why) const {
  if (why == Arm::done || why == Arm::over) return;
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  thread.missed_ns += ns;
  const uint64_t missed = thread.missed_ns / interval;
  thread.missed_ns %= interval;
  thread.ticks.fetch_add(missed, std::memory_order_relaxed);
  thread.lose(why == Arm::no_timer ? LostCause::no_timer : LostCause::throttled, missed);
}

void Sampler::disarm(SampledThread& thread) {
  if (!thread.armed.exchange(false)) return;
  armed_.erase(&thread);
  const itimerspec never = {};
  if (thread.has_timer) timer_settime(thread.timer, 0, &never, nullptr);
  const uint64_t cpu = thread_cpu_ns(thread.tid.load(std::memory_order_relaxed));
  thread.cpu_ns += cpu > thread.armed_since_cpu ? cpu - thread.armed_since_cpu : 0;
  thread.wall_ns += monotonic_ns() - thread.armed_since_wall;
  thread.cpu_seen = cpu;
}

void Sampler::handle_timer(int, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Sampler& sampler = *active;
  sampler.in_handlers_.fetch_add(1);
  // Anybody may send a signal; only a timer's has the address of a record.
  if (info->si_code == SI_TIMER && !sampler.stopped()) {
    auto& thread = *static_cast<SampledThread*>(info->si_value.sival_ptr);
    const auto overrun = static_cast<uint64_t>(std::max(info->si_overrun, 0));
    sampler.count_ticks(thread, overrun);
    const uint64_t entered = monotonic_ns();
    const auto& interrupted = *static_cast<const ucontext_t*>(context);
    const InterruptedCall call = interrupted_call(interrupted);
    const uint64_t entered_cpu = call.waiting ? own_cpu_ns() : 0;
    sampler.sample_here(thread, interrupted, call.waiting);
    sampler.put_off(thread, sampler.rest_after(thread, call, entered));
    if (call.waiting) {
      sampler.note_idle_time(thread, entered_cpu);
    } else {
      thread.waiting_cpu = 0;
    }
  }
  sampler.in_handlers_.fetch_sub(1);
  errno = saved_errno;
}

void Sampler::count_ticks(SampledThread& thread, uint64_t overrun) const {
  thread.ticks.fetch_add(1 + overrun, std::memory_order_relaxed);
  const uint64_t forwarded = Guard::forwarded_ns();
  const uint64_t since = forwarded - thread.forwarded_seen;
  thread.forwarded_seen = forwarded;
  const uint64_t blocked =
      std::min(overrun, since / static_cast<uint64_t>(options_.interval.count()));
  if (blocked > 0) thread.lose(LostCause::signals_blocked, blocked);
  if (overrun > blocked) thread.lose(LostCause::timer_overrun, overrun - blocked);
}

Sampler::Rest Sampler::rest_after(SampledThread& thread, const InterruptedCall& call,
                                  uint64_t begin_ns) {
  const auto interval = static_cast<uint64_t>(options_.interval.count());
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

void Sampler::note_idle_time(SampledThread& thread, uint64_t entered_cpu) {
  // What it took to get here is the signal's.
  const uint64_t since = thread.waiting_cpu != 0
                             ? thread.waiting_cpu
                             : entered_cpu - std::min(entered_cpu, delivery_ns_);
  thread.waiting_cpu = own_cpu_ns();
  idle_cpu_ns_.fetch_add(thread.waiting_cpu - since, std::memory_order_relaxed);
}

void Sampler::put_off(SampledThread& thread, const Rest& rest) {
  if (rest.ns == 0 || !thread.armed.load()) return;
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  const itimerspec when = {as_timespec(interval), as_timespec(std::max(rest.ns, interval))};
  timer_settime(thread.timer, 0, &when, nullptr);
  // It may have been disarmed meanwhile.
  if (!thread.armed.load()) {
    const itimerspec never = {};
    timer_settime(thread.timer, 0, &never, nullptr);
  }
  const uint64_t missed = rest.ns / interval;
  thread.ticks.fetch_add(missed, std::memory_order_relaxed);
  thread.lose(rest.cause, missed);
}

WalkSlot* Sampler::take_slot(size_t hint, int32_t* index) {
  for (size_t i = 0; i < kSlots; ++i) {
    const size_t at = (hint + i) % kSlots;
    if (!slots_[at]->try_take()) continue;
    *index = static_cast<int32_t>(at);
    return slots_[at].get();
  }
  return nullptr;
}

void Sampler::sample_here(SampledThread& thread, const ucontext_t& context, bool waiting) {
  if (thread.phase.load(std::memory_order_acquire) != SampledThread::Phase::live) {
    thread.lose(LostCause::thread_exiting);
    return;
  }
  if (jvm_.identity().current() != thread.java_thread) {
    thread.lose(LostCause::not_java);
    return;
  }
  const auto sp = get_register(context, Register::sp);
  if (sp < thread.stack_end + kStackReserve || sp >= thread.stack_base) {
    thread.lose(LostCause::stack_too_small);
    return;
  }
  int32_t index = 0;
  WalkSlot* const slot = take_slot(thread.index, &index);
  if (slot == nullptr) {
    thread.lose(LostCause::buffer_full);
    return;
  }
  {
    const SignalStack::Lent lent(slot->signal_stack());
    slot->walk(request_for(thread, context));
  }
  count_sample(thread, waiting);
  slot->copy_window();
  hand_over(*slot, index, thread);
}

WalkRequest Sampler::request_for(const SampledThread& thread, const ucontext_t& context) {
  WalkRequest request;
  request.number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  request.walker = setup_.walkers[request.number % setup_.walkers.size()];
  request.costly = options_.costly != 0 && request.number % options_.costly == 0;
  request.thread = thread.index;
  request.target.java_thread = thread.java_thread;
  request.target.jni_env = thread.jni_env;
  request.target.tid = request.target.asked_tid = thread.tid.load(std::memory_order_relaxed);
  request.target.same_thread = true;
  request.target.stack_base = thread.stack_base;
  request.target.stack_end = thread.stack_end;
  request.context = &context;
  return request;
}

void Sampler::count_sample(SampledThread& thread, bool waiting) {
  thread.samples.fetch_add(1, std::memory_order_relaxed);
  if (waiting) idle_samples_.fetch_add(1, std::memory_order_relaxed);
}

void Sampler::handle_halt(siginfo_t* info, void* context) {
  const int saved_errno = errno;
  active->answer_halt(*info, *static_cast<const ucontext_t*>(context));
  errno = saved_errno;
}

void Sampler::hand_over(WalkSlot& slot, int32_t index, SampledThread& thread) {
  Sample& sample = slot.sample();
  const bool keep = sample.suspicious || sample.costly;
  sample.slot = keep ? index : -1;
  if (!ring_.push(sample, slot.frames(), slot.window())) {
    thread.lose(LostCause::unjudged);
    slot.release();
    return;
  }
  if (!keep) slot.release();
}

void Sampler::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "fs-threads");
    go_ahead();
    watch_threads();
  });
  if (options_.mode != SamplingMode::same_thread) {
    halter_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "fs-sampler");
      go_ahead();
      run_halting();
    });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Sampler::stop() {
  const TimerBlocked not_now;
  if (!stopping_.exchange(true)) {
    for (std::thread* own : {&watcher_, &halter_}) {
      if (own->joinable()) own->join();
    }
  }
  registry_.for_each([this](SampledThread& thread) { disarm(thread); });
  while (in_handlers_.load() != 0) usleep(100);
  registry_.for_each([](SampledThread& thread) {
    if (thread.has_timer) timer_delete(thread.timer);
    thread.has_timer = false;
  });
}

void Sampler::watch_threads() {
  const uint64_t begin = monotonic_ns();
  uint64_t last_look = 0;
  uint64_t last_scan = 0;
  uint64_t next_scan = 0;
  uint64_t last_turn = 0;
  bool warned = false;
  const int own_tid = static_cast<int>(syscall(SYS_gettid));
  while (!stopped()) {
    const uint64_t now = monotonic_ns();
    const uint64_t cpu_before = thread_cpu_ns(own_tid);
    const bool is_scan = now >= next_scan;
    if (is_scan) registry_.reap();
    const double elapsed = static_cast<double>(now - begin) / static_cast<double>(kSecond);
    if (elapsed >= options_.warmup) {
      if (options_.duration && elapsed >= options_.warmup + *options_.duration) {
        duration_over_.store(true, std::memory_order_release);
        return;
      }
      sampling_.store(true, std::memory_order_release);
      if (options_.threads == ThreadChoice::running) disarm_quiet(now - last_look);
      last_look = now;
      if (is_scan) {
        const uint64_t scan_ns = last_scan == 0 ? 0 : now - last_scan;
        if (options_.threads == ThreadChoice::all) {
          choose_all(scan_ns);
        } else if (options_.threads == ThreadChoice::running) {
          choose_running(scan_ns);
        } else if (now - last_turn >= kRandomTurn) {
          choose_random(last_turn == 0 ? 0 : now - last_turn);
          last_turn = now;
        }
        last_scan = now;
        if (timers_ran_out_.load(std::memory_order_relaxed) && !warned) {
          warned = true;
          std::fprintf(stderr,
                       "framestorm: the system has no timer for some of the threads: they "
                       "are not sampled ('no-timer' of stats.jsonl). Allow this user more "
                       "pending signals (ulimit -i), or take mode=separate-thread\n");
        }
      }
    }
    // With thousands of threads a look at all of them takes its time: not more than a tenth of it.
    // By the clock it is no measure: a sampled thread may have the registry's lock.
    if (is_scan) next_scan = now + 10 * (thread_cpu_ns(own_tid) - cpu_before);
    const timespec nap = as_timespec(kScan);
    nanosleep(&nap, nullptr);
  }
}

void Sampler::disarm_quiet(uint64_t scan_ns) {
  registry_.with_lock([&] {
    std::vector<SampledThread*> quiet;
    for (SampledThread* thread : armed_) {
      const uint64_t waited = thread->waiting.total();
      const bool is_quiet = 2 * (waited - thread->waited_seen) > scan_ns;
      thread->waited_seen = waited;
      thread->quiet_scans = is_quiet ? thread->quiet_scans + 1 : 0;
      if (thread->quiet_scans >= kQuietScans) quiet.push_back(thread);
    }
    for (SampledThread* thread : quiet) disarm(*thread);
  });
}

void Sampler::choose_all(uint64_t scan_ns) {
  registry_.for_each([&](SampledThread& thread) { miss(thread, scan_ns, arm(thread)); });
}

void Sampler::choose_running(uint64_t scan_ns) {
  registry_.for_each([&](SampledThread& thread) {
    if (thread.armed) return;
    const uint64_t cpu = thread_cpu_ns(thread.tid.load(std::memory_order_relaxed));
    const uint64_t used = cpu > thread.cpu_seen ? cpu - thread.cpu_seen : 0;
    thread.cpu_seen = cpu;
    if (scan_ns == 0 || static_cast<double>(used) <= kRunningShare * static_cast<double>(scan_ns)) {
      return;
    }
    miss(thread, used, arm(thread));
  });
}

void Sampler::choose_random(uint64_t turn_ns) {
  std::vector<SampledThread*> live;
  registry_.for_each([&](SampledThread& thread) { live.push_back(&thread); });
  std::ranges::sort(live, {}, &SampledThread::index);
  registry_.with_lock([&] { std::ranges::shuffle(live, random_); });
  live.resize(std::min<size_t>(live.size(), options_.random_threads));
  const std::unordered_set<SampledThread*> chosen(live.begin(), live.end());
  // All of the last turn's go before one comes: never more than asked for are sampled.
  registry_.for_each([&](SampledThread& thread) {
    if (!chosen.contains(&thread)) disarm(thread);
  });
  registry_.for_each([&](SampledThread& thread) {
    if (chosen.contains(&thread)) miss(thread, turn_ns, arm(thread));
  });
}

}  // namespace framestorm::stress
