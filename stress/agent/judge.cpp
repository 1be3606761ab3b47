#include "stress/agent/judge.h"

#include <profile2.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <set>
#include <string>

#include "harness/base/clock.h"
#include "harness/executor/run_files.h"
#include "harness/jvm/agent.h"
#include "stress/agent/compiled_code.h"
#include "stress/agent/recorded_walks.h"
#include "stress/agent/samples_blocked.h"
#include "stress/agent/truth.h"

namespace framestorm::stress {
namespace {

constexpr uint64_t kStatsPeriod = kSecond;
constexpr timespec kNap = {0, 1'000'000};
// The JVM tells of methods it compiled or threw away when its service thread comes to it, not
// before the safepoint is over.
constexpr uint64_t kEventPatience = kSecond / 5;

// Null where the VM does not count.
nlohmann::json continuation_counts(const Jvm& jvm) {
  const auto count = reinterpret_cast<decltype(&ASGST_GetContinuationCounts)>(
      jvm.symbol("ASGST_GetContinuationCounts"));
  if (count == nullptr) return nullptr;
  ASGST_ContinuationCounts counts;
  count(&counts);
  return {{"barriers", counts.barriers},
          {"entries", counts.entries},
          {"entries_missing", counts.entries_missing},
          {"speculative", counts.speculative}};
}

}  // namespace

Judge::Judge(const Options& options, Jvm& jvm, OracleSet& oracles, Sampler& sampler)
    : options_(options),
      jvm_(jvm),
      oracles_(oracles),
      sampler_(sampler),
      stats_(options_),
      findings_(options_, jvm),
      reference_(jvm),
      truth_(jvm, Truth::get().methods()),
      obsolete_(jvm),
      subject_(jvm, options_.mode) {}

void Judge::start() {
  const EverySignalBlocked not_for_it;
  thread_ = std::thread([this] { run(); });
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
  tid_.store(gettid(), std::memory_order_release);
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
    jvm_.methods().absorb();
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
  jvm_.methods().absorb();
  while (judge_next()) {
  }
  findings_.write_counts();
  stats_.write_flames(jvm_.methods());
  if (options_.compiled) write_compiled();
  write_stats(ended);
}

void Judge::write_compiled() {
  jvm_.code_map().absorb();
  std::set<std::string> instrumented;  // overloads have one name
  Truth::get().methods().for_each(
      [&](int32_t, const InstrumentedMethod& method) { instrumented.insert(method.name); });
  const nlohmann::json file = {{"methods", compiled_code(jvm_.code_map(), jvm_.methods())},
                               {"instrumented", instrumented}};
  write_file(options_.out / "compiled.json", file.dump());
}

void Judge::finish(const char* ended) {
  const char* expected = nullptr;
  ended_.compare_exchange_strong(expected, ended);
  closed_.wait(false, std::memory_order_acquire);
  if (thread_.joinable()) thread_.detach();
}

void Judge::ask_for_replaced(const WalkView& view) {
  for (size_t i = 0; i < view.record.frame_count(); ++i) {
    const Frame frame = view.frame(i);
    const MethodInfo* const info = view.method_of(frame);
    if (info != nullptr && frame.bci > info->last_bci) know_method(env_, frame.method);
  }
}

void Judge::ask_for_obsolete(const WalkView& view) {
  for (size_t i = 0; i < view.record.frame_count(); ++i) {
    const Frame frame = view.frame(i);
    if (frame.method == nullptr || view.method_of(frame) != nullptr) continue;
    if (obsolete_.has(frame.method)) {
      know_method(env_, frame.method);
    } else if (view.subject.walker->traits().checks_ids && obsolete_.may_have_had(frame.method)) {
      jvm_.methods().add(frame.method, {"(replaced)", INT32_MAX});
    }
  }
}

void Judge::wait_for_unknown(const WalkView& view) {
  const auto is_unknown = [&view](size_t i) {
    const Frame frame = view.frame(i);
    return frame.method != nullptr && view.method_of(frame) == nullptr;
  };
  const uint64_t begin = monotonic_ns();
  if (!waiting_for_unknown_.may_begin(begin)) return;
  uint64_t now = begin;
  const auto frames = std::views::iota(size_t{0}, view.record.frame_count());
  while (std::ranges::any_of(frames, is_unknown) && now - begin < kEventPatience) {
    nanosleep(&kNap, nullptr);
    jvm_.methods().absorb();
    now = monotonic_ns();
  }
  waiting_for_unknown_.took(begin, now);
}

bool Judge::judge_next() {
  SampleRing::Entry entry = {};
  if (!sampler_.ring().front(&entry)) return false;
  if (entry.sample->at_safepoint) {
    judge_check(entry, sampler_.slot(static_cast<size_t>(entry.sample->slot)));
  } else {
    judge(entry);
  }
  if (entry.sample->slot >= 0) sampler_.slot(static_cast<size_t>(entry.sample->slot)).release();
  sampler_.ring().pop();
  return true;
}

void Judge::judge(const SampleRing::Entry& entry) {
  const Sample& sample = *entry.sample;
  const WalkSlot* const slot =
      sample.slot < 0 ? nullptr : &sampler_.slot(static_cast<size_t>(sample.slot));
  const Walker& walker = *sampler_.walker(sample.walk.walker);
  WalkRecord record = sample.walk;
  if (slot == nullptr) {
    record.keep_only(entry.frames);
    ++traces_only_;
  } else {
    sampler_.slot(static_cast<size_t>(sample.slot)).resolve_methods();
  }
  walker.resolve_methods(entry.frames, record.frame_count());
  stats_.count(sample, walker, entry.frames);
  if (record.end != WalkEnd::returned) ++contained_;

  const WalkView view = {record, subject_.of(sample, walker)};
  const Needs offered = offered_needs(oracles_, slot);
  RecordedWalks further(slot, sampler_);
  violations_.clear();
  oracles_.judge(view, further, offered, &violations_, OracleSet::Counts::looks);
  if (!violations_.empty()) {
    // Something that was loaded or replaced meanwhile may explain it.
    ask_for_replaced(view);
    ask_for_obsolete(view);
    jvm_.methods().absorb();
    jvm_.code_map().absorb();
    wait_for_unknown(view);
    violations_.clear();
    oracles_.judge(view, further, offered, &violations_, OracleSet::Counts::finds);
  }
  const bool rewalk_wrong = slot != nullptr && judge_rewalk(entry, view, *slot);
  if (sample.costly && options_.mode != SamplingMode::unstopped && violations_.empty() &&
      !rewalk_wrong) {
    const uint64_t compared = reference_.made();
    const std::string lost = reference_.check(env_, view, sample, sampler_.registry());
    if (reference_.made() != compared) stats_.count_end(walker.id(), !lost.empty());
    // AsyncGetCallTrace stops where it does not trust a frame, by design, and a user's walker may:
    // neither can say so. A figure, no finding.
    const bool may_stop = view.subject.walker->traits().ends_where_it_distrusts_a_frame;
    if (!lost.empty() && !may_stop) {
      violations_.broken("outermost-frame-differs", lost);
    }
    if (violations_.empty()) findings_.keep_seed(entry, *slot);
  }
  truth_.judge(entry, view, &violations_);
  keep_found(entry, slot, view);
}

void Judge::judge_check(const SampleRing::Entry& entry, WalkSlot& slot) {
  slot.resolve_methods();
  const WalkView view = {entry.sample->walk,
                         subject_.of(*entry.sample, *sampler_.walker(entry.sample->walk.walker))};
  violations_.clear();
  truth_.judge_check(entry, view, slot.reference(), &violations_);
  keep_found(entry, &slot, view);
}

void Judge::keep_found(const SampleRing::Entry& entry, const WalkSlot* slot, const WalkView& view) {
  for (const Finding& finding : violations_.findings()) {
    // A stack that changes while it is read makes traces that are wrong: figures, no findings.
    if (options_.mode == SamplingMode::unstopped && finding.kind == FindingKind::contract) continue;
    findings_.record(finding, entry, slot, view,
                     options_.truth ? truth_.side_by_side(entry) : nlohmann::json());
  }
}

bool Judge::judge_rewalk(const SampleRing::Entry& entry, const WalkView& first,
                         const WalkSlot& slot) {
  if (!slot.rewalk_went_wrong()) return false;
  const Rewalk& made = slot.rewalks().back();
  if (made.record.end != WalkEnd::returned) ++contained_;
  Sample sample = *entry.sample;
  sample.walk = made.record;
  SampleRing::Entry again_entry = entry;
  again_entry.sample = &sample;
  const FurtherView again(first, made.walk, made.record, *sampler_.walker(made.walk.walker));
  std::vector<Finding> found;
  oracles_.judge_further(again.view(), further_needs(oracles_), violations_.findings(), &found);
  for (const Finding& finding : found) {
    findings_.record(finding, again_entry, &slot, again.view());
  }
  return true;
}

void Judge::write_stats(const char* ended) {
  findings_.write_counts();
  for (const OracleSet::Figures& figures : oracles_.figures()) {
    // Where a sample has no records, its handler has seen that nothing was wrong with them.
    stats_.set_check(figures.oracle, figures.looks + (figures.spares_clean ? traces_only_ : 0),
                     figures.finds);
  }
  for (const OracleSet::NotJudged& left : oracles_.not_judged()) {
    stats_.set_not_judged(left.oracle, left.why);
  }
  stats_.set_check("gst", reference_.made(), reference_.broken());
  stats_.set_continuations(continuation_counts(jvm_));
  if (options_.truth) stats_.set_truth(truth_.figures(Truth::get().stacks()));
  stats_.write(sampler_.registry().totals(),
               {findings_.count(), contained_, sampler_.idle_samples(), sampler_.idle_cpu_ns(),
                sampler_.delivery_ns(), sampler_.late_handlers(), sampler_.most_armed()},
               ended);
}

}  // namespace framestorm::stress
