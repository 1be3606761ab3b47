#include "stress/agent/judge.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ranges>

#include "harness/base/clock.h"
#include "harness/guard/unsafe_calls.h"
#include "harness/jvm/agent.h"

namespace framestorm::stress {
namespace {

constexpr uint64_t kStatsPeriod = kSecond;
constexpr timespec kNap = {0, 1'000'000};
// The JVM tells of methods it compiled or threw away when its service thread comes to it, not
// before the safepoint is over.
constexpr uint64_t kEventPatience = kSecond / 5;
constexpr int kErrnoMarker = 0x5a5a;  // walk_slot.cpp

// What a trace alone can break. The others look at a slot's records; where a sample has none, its
// handler has seen that nothing was wrong with them.
constexpr std::string_view kCheapOracles[] = {"contract", "kinds", "calls"};
constexpr std::string_view kRecordOracles[] = {"fault", "sanitizer", "memory", "signal-safety"};
// Looks at guarded frames, which a walk that was made for a costly oracle does not have.
constexpr std::string_view kMemoryOracle = "memory";
// The frames of a scenario: a program that is none has no such table.
constexpr std::string_view kScenarioOracle = "truth";

bool is_any_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// As WalkView has it. `slot`: null when the stack was not kept.
uintptr_t last_java_pc(const Sample& sample, const WalkSlot* slot) {
  uintptr_t pc = sample.last_java_pc;
  if (pc != 0 || sample.last_java_sp == 0 || slot == nullptr) return pc;
  const std::span<const std::byte> stack = slot->stack();
  const uintptr_t pushed = sample.last_java_sp - sizeof(pc);
  if (pushed < sample.sp() || pushed - sample.sp() + sizeof(pc) > stack.size()) return 0;
  std::memcpy(&pc, &stack[pushed - sample.sp()], sizeof(pc));
  return pc;
}

// Whether a walker looks behind an ID before it gives it, so that one was good when it did.
bool checks_ids(WalkerId walker) { return walker != WalkerId::asgct && walker != WalkerId::plugin; }

// A walker may say more than there was slot for.
size_t frames_there(const WalkView& view) {
  return std::min(view.frame_count(), static_cast<size_t>(view.depth));
}

const MethodInfo* method_of(const WalkView& view, const Frame& frame) {
  return frame.method == nullptr ? nullptr : view.methods->find(frame.method);
}

}  // namespace

Judge::Judge(const Options& options, Jvm& jvm, Sampler& sampler)
    : options_(options),
      jvm_(jvm),
      sampler_(sampler),
      stats_(options_),
      findings_(options_, jvm),
      reference_(jvm),
      obsolete_(jvm.jvmti()) {
  for (std::unique_ptr<Oracle>& oracle : make_oracles()) {
    if (oracle->name() == kScenarioOracle) continue;
    if (oracle->name() == "signal-safety" && !interposer::is_active()) continue;
    const bool cheap = is_any_of(oracle->name(), kCheapOracles);
    const bool by_records = is_any_of(oracle->name(), kRecordOracles);
    (cheap ? cheap_ : close_).push_back({std::move(oracle), by_records});
  }
  for (size_t i = 0; i < walkers_.size(); ++i) {
    const auto id = static_cast<WalkerId>(i);
    if (const Walker* const adapter = sampler.walker(id)) {
      walkers_[i] = std::make_unique<RecordedWalker>(*adapter);
    }
  }
  victim_.scenario = ScenarioId::count;
  victim_.is_java_thread = true;
}

void Judge::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Judge::run() {
  pthread_setname_np(pthread_self(), "fs-judge");
  go_ahead();
  // What it looks at may be unreadable; the guard has the handlers.
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  sigaddset(&faults, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  tid_.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_release);
  try {
    work();
  } catch (const std::exception& error) {
    // A run whose results cannot be kept must not look like one.
    std::fprintf(stderr, "framestorm: %s\n", error.what());
    std::_Exit(2);
  }
  closed_.store(true, std::memory_order_release);
  closed_.notify_all();
}

void Judge::work() {
  JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("framestorm"), nullptr};
  if (jvm_.vm()->AttachCurrentThreadAsDaemon(reinterpret_cast<void**>(&env_), &arguments) !=
      JNI_OK) {
    throw SetupError("the agent's own thread cannot be attached to the JVM");
  }
  obsolete_.learn(env_);
  uint64_t last = monotonic_ns();
  while (ended_.load(std::memory_order_acquire) == nullptr) {
    absorb();
    while (judge_next()) {
      if (monotonic_ns() - last >= kStatsPeriod) break;
    }
    if (const uint64_t now = monotonic_ns(); now - last >= kStatsPeriod) {
      last = now;
      jvm_.code_map().absorb();
      write_stats(nullptr);
      if (sampler_.duration_over()) {
        sampler_.stop();
        close("duration");
        return;
      }
    }
    nanosleep(&kNap, nullptr);
  }
  close(ended_.load(std::memory_order_acquire));
}

void Judge::close(const char* ended) {
  absorb();
  while (judge_next()) {
  }
  findings_.write_counts();
  stats_.write_flames(jvm_.methods());
  write_stats(ended);
}

void Judge::finish(const char* ended) {
  const char* expected = nullptr;
  ended_.compare_exchange_strong(expected, ended);
  closed_.wait(false, std::memory_order_acquire);
  if (thread_.joinable()) thread_.detach();
}

void Judge::absorb() { jvm_.methods().absorb(); }

void Judge::ask_for_replaced(const WalkView& view) {
  for (size_t i = 0; i < frames_there(view); ++i) {
    const Frame frame = read_frame(view.walker->layout(), view.frames, i);
    const MethodInfo* const info = method_of(view, frame);
    if (info != nullptr && frame.bci > info->last_bci) know_method(env_, frame.method);
  }
}

void Judge::ask_for_obsolete(const WalkView& view) {
  for (size_t i = 0; i < frames_there(view); ++i) {
    const Frame frame = read_frame(view.walker->layout(), view.frames, i);
    if (frame.method == nullptr || method_of(view, frame) != nullptr) continue;
    if (obsolete_.has(frame.method)) {
      know_method(env_, frame.method);
    } else if (checks_ids(view.walker->id()) && ObsoleteMethods::may_have_had(frame.method)) {
      jvm_.methods().add(frame.method, {"(replaced)", INT32_MAX});
    }
  }
}

void Judge::wait_for_unknown(const WalkView& view) {
  const auto is_unknown = [&view](size_t i) {
    const Frame frame = read_frame(view.walker->layout(), view.frames, i);
    return frame.method != nullptr && method_of(view, frame) == nullptr;
  };
  const uint64_t begin = monotonic_ns();
  if (!waiting_for_unknown_.may_begin(begin)) return;
  uint64_t now = begin;
  const auto frames = std::views::iota(size_t{0}, frames_there(view));
  while (std::ranges::any_of(frames, is_unknown) && now - begin < kEventPatience) {
    nanosleep(&kNap, nullptr);
    absorb();
    now = monotonic_ns();
  }
  waiting_for_unknown_.took(begin, now);
}

bool Judge::judge_next() {
  SampleRing::Entry entry = {};
  if (!sampler_.ring().front(&entry)) return false;
  judge(entry);
  if (entry.sample->slot >= 0) sampler_.slot(static_cast<size_t>(entry.sample->slot)).release();
  sampler_.ring().pop();
  return true;
}

void Judge::judge(const SampleRing::Entry& entry) {
  const Sample& sample = *entry.sample;
  RecordedWalker& walker = *walkers_[static_cast<size_t>(sample.walker)];
  WalkSlot* const slot =
      sample.slot < 0 ? nullptr : &sampler_.slot(static_cast<size_t>(sample.slot));
  stats_.count(sample, walker, entry.frames);
  if (sample.end != WalkEnd::returned) ++contained_;

  Input input;
  input.scenario = ScenarioId::count;
  input.mode = input_mode(options_.mode);
  input.walker = sample.walker;
  input.call.depth = DepthKind::raw;
  input.call.raw_depth = sample.depth;
  input.call.options = sample.options;
  victim_.tid = sample.tid;
  victim_.java_thread = sample.java_thread;
  victim_.jni_env = sample.jni_env;
  victim_.pc = sample.pc();
  victim_.sp = sample.sp();
  victim_.fp = sample.fp();
  victim_.stack_base = victim_.frames_top = sample.stack_base;
  victim_.stack_end = sample.stack_end;

  WalkView view;
  view.input = &input;
  view.victim = &victim_;
  view.walker = &walker;
  view.jvm = &jvm_;
  view.methods = &jvm_.methods();
  view.unmutated = true;
  view.thread_state = sample.thread_state;
  view.last_java_pc = last_java_pc(sample, slot);
  view.depth = sample.depth;
  view.end = sample.end;
  view.result = sample.result;
  view.stopped = sample.has_facts ? sample.facts.stopped : nullptr;
  view.errno_before = kErrnoMarker;
  view.errno_after = sample.errno_after;
  view.undo = &no_mutations_;
  view.signal_mask_checked = sample.costly;
  view.signal_mask_changed = sample.mask_changed;
  view.frames = const_cast<std::byte*>(entry.frames);
  view.fault = &no_fault_;
  view.unsafe = &nothing_unsafe_;
  view.reports = &no_reports_;
  if (slot != nullptr) {
    view.buffer = slot->buffer(sample.walker);
    view.frames = const_cast<std::byte*>(slot->frames());
    view.fault = &slot->fault();
    view.unsafe = &slot->unsafe();
    view.reports = &slot->reports();
    view.context = &slot->context();
    view.expected_context = &slot->expected_context();
  }
  walker.set_facts(sample.has_facts ? &sample.facts : nullptr);
  RecordedRewalks rewalks(slot, walkers_, sample.walker);
  violations_.clear();
  if (slot == nullptr) ++traces_only_;
  check(view, rewalks, slot != nullptr, false);
  if (!violations_.empty()) {
    // Something that was loaded or replaced meanwhile may explain it.
    ask_for_replaced(view);
    ask_for_obsolete(view);
    absorb();
    jvm_.code_map().absorb();
    wait_for_unknown(view);
    walker.set_facts(sample.has_facts ? &sample.facts : nullptr);
    violations_.clear();
    check(view, rewalks, slot != nullptr, true);
  }
  const bool rewalk_wrong = slot != nullptr && judge_rewalk(entry, view, rewalks, *slot);
  if (sample.costly && options_.mode != SamplingMode::unstopped && violations_.empty() &&
      !rewalk_wrong) {
    const std::string lost = reference_.check(env_, view, sample, sampler_.registry());
    // AsyncGetCallTrace stops where it does not trust a frame, by design, and a user's walker may:
    // neither can say so. A figure, no finding.
    const bool may_stop = sample.walker == WalkerId::asgct || sample.walker == WalkerId::plugin;
    if (!lost.empty() && !may_stop) {
      violations_.add(FindingKind::contract, "outermost-frame-differs", lost);
    }
    if (violations_.empty()) findings_.keep_seed(entry, *slot);
  }
  for (const Finding& finding : violations_.findings()) {
    // A stack that changes while it is read makes traces that are wrong: figures, no findings.
    if (options_.mode == SamplingMode::unstopped && finding.kind == FindingKind::contract) continue;
    findings_.record(finding, entry, slot, view);
  }
}

bool Judge::judge_rewalk(const SampleRing::Entry& entry, const WalkView& first,
                         RecordedRewalks& rewalks, const WalkSlot& slot) {
  if (!slot.rewalk_went_wrong()) return false;
  const Rewalked& made = slot.rewalks().back();
  if (made.end != WalkEnd::returned) ++contained_;
  Sample sample = *entry.sample;
  sample.walker = made.walker;
  sample.depth = made.depth;
  sample.options = made.options;
  SampleRing::Entry again_entry = entry;
  again_entry.sample = &sample;
  Input input = *first.input;
  input.walker = made.walker;
  input.call.raw_depth = made.depth;
  input.call.options = made.options;
  RecordedWalker& walker = *walkers_[static_cast<size_t>(made.walker)];
  walker.set_facts(made.has_facts ? &made.facts : nullptr);
  WalkView again = first;
  again.input = &input;
  again.walker = &walker;
  again.depth = made.depth;
  again.frames = const_cast<std::byte*>(slot.rewalk_frames(made));
  again.end = made.end;
  again.result = made.result;
  again.stopped = made.has_facts ? made.facts.stopped : nullptr;
  again.fault = &slot.rewalk_fault();
  again.unsafe = &slot.rewalk_unsafe();
  again.reports = &slot.rewalk_reports();
  rewalk_violations_.clear();
  for (Judged& judged : close_) {
    if (!judged.oracle->judges_rewalks() || judged.oracle->name() == kMemoryOracle) continue;
    const size_t before = rewalk_violations_.findings().size();
    judged.oracle->check(again, rewalks, &rewalk_violations_);
    if (rewalk_violations_.findings().size() != before) ++judged.broken;
  }
  for (const Finding& finding : rewalk_violations_.findings()) {
    findings_.record(finding, again_entry, &slot, again);
  }
  return true;
}

void Judge::check(const WalkView& view, RecordedRewalks& rewalks, bool closely, bool final) {
  const auto look = [&](Judged& judged) {
    const size_t before = violations_.findings().size();
    judged.oracle->check(view, rewalks, &violations_);
    if (!final) ++judged.made;
    if (final && violations_.findings().size() != before) ++judged.broken;
  };
  for (Judged& judged : cheap_) look(judged);
  if (!closely) return;
  for (Judged& judged : close_) look(judged);
}

void Judge::write_stats(const char* ended) {
  findings_.write_counts();
  for (const auto* oracles : {&cheap_, &close_}) {
    for (const Judged& judged : *oracles) {
      stats_.set_check(judged.oracle->name(), judged.made + (judged.by_records ? traces_only_ : 0),
                       judged.broken);
    }
  }
  stats_.set_check("gst", reference_.made(), reference_.broken());
  stats_.write(sampler_.registry().totals(),
               {findings_.count(), contained_, sampler_.idle_samples(), sampler_.idle_cpu_ns(),
                sampler_.delivery_ns(), sampler_.late_handlers(), sampler_.most_armed()},
               ended);
}

}  // namespace framestorm::stress
