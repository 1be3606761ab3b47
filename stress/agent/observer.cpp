#include "stress/agent/observer.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

#include "harness/base/clock.h"
#include "harness/guard/signal_table.h"
#include "harness/walkers/profiler.h"
#include "stress/agent/code_place.h"
#include "stress/agent/samples_blocked.h"

namespace framestorm::stress {
namespace {

constexpr timespec kNap = {0, 1'000'000};
constexpr int kClockTries = 20;
// Flags of a profiler's handler that the kernel has to know, not forward().
constexpr int kKernelsFlags = SA_ONSTACK | SA_RESTART | SA_NODEFER;

Observer* active = nullptr;
// Of the thread that reads it; in a handler, too.
thread_local SampledThread* own_record __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

Observer::Observer(Jvm& jvm, std::filesystem::path folder)
    : jvm_(jvm),
      folder_(std::move(folder)),
      ring_(kCells, sizeof(Times) + kEntries * sizeof(ShadowEntry)) {
  std::filesystem::create_directories(folder_);
  out_.exceptions(std::ios::badbit | std::ios::failbit);
  out_.open(folder_ / "shadows.tsv");
  active = this;
}

void Observer::start(JNIEnv* env, Truth& truth) {
  truth_ = &truth;
  truth.begin(env, jvm_.jvmti());
  truth.attach(threads_, [](SampledThread&) {});
  jthread current = nullptr;
  if (jvm_.jvmti()->GetCurrentThread(&current) == JVMTI_ERROR_NONE) enter_thread(env, current);
  take_over_handlers();
  const EverySignalBlocked not_for_it;
  thread_ = std::thread([this] { run(); });
}

void Observer::enter_thread(JNIEnv* env, jthread thread) {
  if (own_record != nullptr) return;  // that of VMInit, which ThreadStart tells of again
  const int64_t number = truth_->number_of(env, thread);
  own_record = threads_.enter(gettid(), nullptr, jvm_.identity().current(), nullptr, 0, 0, number,
                              truth_->stacks().find(number), [](SampledThread&) {});
}

void Observer::leave_thread() {
  SampledThread* const own = std::exchange(own_record, nullptr);
  if (own == nullptr) return;
  threads_.leave(gettid(), [](SampledThread& thread) { thread.shadow.store(nullptr); });
  truth_->stacks().release(own->number);
}

// Async-signal-safe but for the profiler's own handler.
void Observer::handle(int signo, siginfo_t* info, void* context) {
  SampledThread* const own = own_record;
  if (own == nullptr) {
    signals::forward(signo, info, context);
    return;
  }
  Sample sample;
  std::array<ShadowEntry, kEntries> entries;
  sample.tid = own->tid.load(std::memory_order_relaxed);
  sample.shadow_state = own->mounted.load()   ? ShadowState::mounted
                        : own->carries.load() ? ShadowState::of_carrier
                                              : ShadowState::there;
  if (const ShadowStack* const stack = own->shadow.load(std::memory_order_acquire)) {
    sample.shadow_owner = stack->owner;
    sample.shadow_depth = stack->copy(entries);
    sample.shadow_count = std::min(sample.shadow_depth, static_cast<uint32_t>(entries.size()));
  }
  std::ranges::copy(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs, sample.registers);
  Times times = {.begin_ns = monotonic_ns()};
  signals::forward(signo, info, context);
  times.end_ns = monotonic_ns();
  sample.frame_bytes = sizeof(times);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&times);
  if (!active->ring_.push(sample, bytes, nullptr, entries.data())) {
    active->lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Observer::take_over_handlers() {
  // A profiler that sets its handler again takes the signal away.
  signals::reclaim();
  for (const int signo : sampling_signals()) {
    if (std::ranges::find(owned_, signo) != owned_.end()) continue;
    const struct sigaction action = signals::behind(signo);
    const bool is_handler = (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction != nullptr;
    if (!is_handler) continue;
    sigset_t none;
    sigemptyset(&none);
    signals::own(signo, &Observer::handle, action.sa_flags & kKernelsFlags, none);
    owned_.push_back(signo);
  }
}

void Observer::run() {
  pthread_setname_np(pthread_self(), "fs-observer");
  go_ahead();
  try {
    JNIEnv* env = nullptr;
    JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("framestorm"), nullptr};
    if (jvm_.vm()->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env), &arguments) !=
        JNI_OK) {
      throw SetupError("the agent's own thread cannot be attached to the JVM");
    }
    uint64_t last = monotonic_ns();
    while (!ended_.load(std::memory_order_acquire)) {
      take_over_handlers();
      write_new();
      if (const uint64_t now = monotonic_ns(); now - last >= kSecond) {
        last = now;
        threads_.reap();
        write_clocks(env);
      }
      nanosleep(&kNap, nullptr);
    }
    write_clocks(env);
    write_new();
    write_methods();
    out_ << "lost\t" << lost_.load() << '\n';
    out_.close();
  } catch (const std::exception& error) {
    // What is missing must not look like what was right.
    std::fprintf(stderr, "framestorm: %s\n", error.what());
    std::_Exit(2);
  }
  closed_.store(true, std::memory_order_release);
  closed_.notify_all();
}

void Observer::write_new() {
  jvm_.methods().absorb();
  if (jvm_.code_map().has_pending()) jvm_.code_map().absorb();
  for (SampleRing::Entry entry = {}; ring_.front(&entry); ring_.pop()) write(entry);
}

size_t Observer::stack_of(const std::vector<ShadowEntry>& entries) {
  std::vector<int32_t> methods;
  for (const ShadowEntry& entry : entries) methods.push_back(entry.method);
  const auto [found, is_new] = stacks_.try_emplace(std::move(methods), stacks_.size());
  if (is_new) {
    out_ << "stack\t" << found->second << '\t';
    for (const int32_t method : found->first) out_ << method << ' ';
    out_ << '\n';
  }
  return found->second;
}

size_t Observer::name_of(jmethodID method) {
  const auto [found, is_new] = names_.try_emplace(method, names_.size());
  if (is_new) {
    const MethodInfo* const info = jvm_.methods().find(method);
    out_ << "name\t" << found->second << '\t'
         << (info == nullptr ? "?" : info->name + info->descriptor) << '\n';
  }
  return found->second;
}

int64_t Observer::code_at(uintptr_t pc) {
  const CodeEntry* const entry = jvm_.code_map().find(pc);
  if (entry == nullptr || entry->debug == nullptr) return -1;
  const auto [found, is_new] = codes_.try_emplace(entry->debug, std::ssize(codes_));
  if (!is_new) return found->second;
  std::ostringstream line;
  line << "code\t" << found->second << '\t' << name_of(entry->debug->method());
  // Many places have the same frames.
  std::set<std::vector<std::pair<size_t, int32_t>>> written;
  for (const auto place : entry->debug->places()) {
    std::vector<std::pair<size_t, int32_t>> frames;
    for (const auto& [method, bci] : place) frames.emplace_back(name_of(method), bci);
    if (!written.insert(frames).second) continue;
    line << '\t';
    for (const auto& [name, bci] : frames) line << name << '@' << bci << ' ';
  }
  out_ << line.str() << '\n';
  return found->second;
}

void Observer::write(const SampleRing::Entry& entry) {
  const Sample& sample = *entry.sample;
  const std::vector<ShadowEntry> entries = entry.shadow();
  const size_t stack = stack_of(entries);
  Times times;
  std::copy_n(entry.frames, sizeof(times), reinterpret_cast<std::byte*>(&times));
  const auto number_of = [this](jmethodID method) {
    const MethodInfo* const info = jvm_.methods().find(method);
    return info == nullptr ? -1 : truth_->methods().find(info->name, info->descriptor).value_or(-1);
  };
  const bool may_lack = !entries.empty() && may_lack_innermost(jvm_.code_map(), sample.pc(),
                                                               entries.front().method, number_of);
  std::string kind;
  const std::string place = position_of(jvm_.code_map(), sample.pc(), &kind);
  const int64_t code = code_at(sample.pc());
  out_ << "handler\t" << sample.tid << '\t' << sample.shadow_owner << '\t'
       << static_cast<int>(sample.shadow_state) << '\t' << sample.shadow_depth << '\t' << stack
       << '\t' << times.begin_ns << '\t' << times.end_ns << '\t' << may_lack << '\t' << kind << '\t'
       << place << '\t' << code << '\n';
}

// What the JVM's ticks, by which recordings are timed, are on this clock.
void Observer::write_clocks(JNIEnv* env) {
  const jclass jfr = env->FindClass("jdk/jfr/internal/JVM");
  const jmethodID ticks =
      jfr == nullptr ? nullptr : env->GetStaticMethodID(jfr, "counterTime", "()J");
  if (ticks == nullptr) {
    env->ExceptionClear();
    return;
  }
  uint64_t least = UINT64_MAX;
  std::pair<jlong, uint64_t> best;
  for (int i = 0; i < kClockTries; ++i) {
    const uint64_t begin = monotonic_ns();
    const jlong now = env->CallStaticLongMethod(jfr, ticks);
    const uint64_t took = monotonic_ns() - begin;
    if (took < std::exchange(least, std::min(least, took))) best = {now, begin + took / 2};
  }
  out_ << "clock\t" << best.first << '\t' << best.second << '\n';
  env->DeleteLocalRef(jfr);
}

void Observer::write_methods() {
  truth_->methods().for_each([this](int32_t number, const InstrumentedMethod& method) {
    out_ << "method\t" << number << '\t' << method.push << '\t' << method.versions << '\t'
         << method.name << '\t' << method.descriptor << '\t';
    for (const auto& [bci, callee] : method.calls) out_ << bci << ':' << callee << ' ';
    out_ << '\n';
  });
}

void Observer::finish() {
  ended_.store(true, std::memory_order_release);
  closed_.wait(false, std::memory_order_acquire);
  if (thread_.joinable()) thread_.detach();
}

}  // namespace framestorm::stress
