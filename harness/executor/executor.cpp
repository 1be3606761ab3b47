#include "harness/executor/executor.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "harness/executor/further_walker.h"
#include "harness/guard/sampler_thread.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

// Depth that profilers use.
constexpr int32_t kNormalDepth = 2048;

// Results that a walker may keep in a thread that is halted: JFR has room for 20 at first, and loses
// what comes then.
constexpr int kMostKept = 16;

// Bytes of a victim's stack around sp that are compared after every walk.
constexpr size_t kStackWindow = 1024;

constexpr Needs kOffered = {Need::halted_world, Need::further_walks,  Need::ground_truth,
                            Need::incidents,    Need::guarded_frames, Need::unsafe_calls,
                            Need::trace,        Need::standing_code};

// Whom the call names; null: nobody. The victim, where no other one has a JNIEnv.
const Victim* asked_by(const Input& input, const Victim* victim,
                       const std::vector<Victim*>& halted) {
  if (input.call.env == EnvArg::null) return nullptr;
  const Victim* asked = victim;
  if (input.call.env == EnvArg::other_victim) {
    for (const Victim* other : halted) {
      if (other != victim && other->jni_env != nullptr) asked = other;
    }
  }
  return asked;
}

}  // namespace

Executor::Executor(Jvm& jvm, Victims& victims)
    : jvm_(jvm),
      victims_(victims),
      addresses_(jvm),
      write_watching_(jvm, addresses_),
      coverage_(jvm),
      oracles_(had_here(kOffered)),
      prepared_(std::make_unique<Prepared>()),
      further_(std::make_unique<FurtherWalker>(this)) {}

Executor::~Executor() = default;

void Executor::add_walker(std::unique_ptr<Walker> walker) {
  Walkable& place = walkers_[static_cast<size_t>(walker->id())];
  if (place.walker != nullptr) return;
  const auto end = walker->contains_faults() ? FrameBuffer::End::canary : FrameBuffer::End::fault;
  const size_t stride = walker->layout().stride;
  place.frames = std::make_unique<FrameBuffer>(stride, kMaxDepth, end);
  place.further_frames = std::make_unique<FrameBuffer>(stride, kMaxDepth, end);
  place.walker = std::move(walker);
}

void Executor::replace_walker(std::unique_ptr<Walker> walker) {
  walkers_[static_cast<size_t>(walker->id())].walker.reset();
  add_walker(std::move(walker));
}

bool Executor::is_unmutated(const Input& input) {
  return input.mutations.empty() && input.call.context == ContextArg::victim &&
         input.call.env == EnvArg::victim && input.call.accepted_kinds == 0 &&
         input.call.accepted_states == 0;
}

int32_t Executor::depth_of(const Input& input, const Victim& victim) {
  switch (input.call.depth) {
    case DepthKind::zero:
      return 0;
    case DepthKind::one:
      return 1;
    case DepthKind::exact:
      return victim.exact_depth;
    case DepthKind::exact_minus_1:
      return std::max(victim.exact_depth - 1, 0);
    case DepthKind::exact_plus_1:
      return victim.exact_depth + 1;
    case DepthKind::huge:
      return kMaxDepth;
    case DepthKind::raw:
      return std::min(input.call.raw_depth, kMaxDepth);
    case DepthKind::normal:
    case DepthKind::count:
      break;
  }
  return kNormalDepth;
}

bool Executor::has_walker_for(const Input& input) const {
  const Walker* const walker = this->walker(input.walker);
  return walker != nullptr && !walker->traits().needs_running_vm &&
         walker->traits().walks_in(input.mode);
}

void Executor::measure_exact_depth(Victim* victim, WalkerId id) {
  const Coverage::Aside aside(coverage_);
  Input plain;
  plain.scenario = victim->scenario;
  plain.walker = id;
  plain.mode = walker(id)->traits().same_thread ? Mode::same_thread : Mode::separate_thread;
  plain.call.depth = DepthKind::raw;
  plain.call.raw_depth = kMaxDepth - 1;
  Prepared prepared;
  prepare(plain, victim, &prepared);
  walk(&prepared);
  victim->exact_depth = std::max(static_cast<int32_t>(prepared.record.frame_count()), 1);
}

void Executor::prepare(const Input& input, Victim* victim, Prepared* p) {
  p->input = &input;
  p->victim = victim;
  p->asked = asked_by(input, victim, victims_.halted());
  p->walker = walker(input.walker);
  copy_context(*victim->slot->context, &p->expected_context);
  p->mutations = apply_mutations(input, *victim, victims_.halted(), addresses_, jvm_.layout(),
                                 &p->expected_context, &undo_);
  p->context.set(p->expected_context,
                 p->walker->traits().called_as_handler ? ContextArg::victim : input.call.context);
  p->target = {.java_thread = victim->java_thread,
               .jni_env = p->asked == nullptr ? nullptr : p->asked->jni_env,
               .thread = victim->thread,
               .tid = victim->tid,
               .same_thread = input.mode == Mode::same_thread,
               .stack_base = victim->stack_base,
               .stack_end = victim->stack_end,
               .asked_tid = p->asked == nullptr ? -1 : p->asked->tid,
               .options = input.call.options,
               .accepted_kinds = input.call.accepted_kinds,
               .accepted_states = input.call.accepted_states,
               .iterator_calls = input.iterator_calls,
               .queue_calls = input.queue_calls};
}

Needs Executor::offered_by(const Walker& walker) const {
  const Needs offered = oracles_.offered();
  return walker.traits().keeps_its_traces ? offered.without({Need::trace}) : offered;
}

// libjvm changes the mask by libc, which the guard hears of: a bare system call takes a wild jump. A
// system call after each of its walks would be a tenth of the fuzz loop.
const uint64_t* Executor::mask_of_host(const Walker& walker) const {
  if (rigour_ == Rigour::bare) return nullptr;
  const bool is_heard =
      walker.traits().is_in_libjvm() && oracles_.offered().has(Need::unsafe_calls);
  return is_heard && !is_costly() ? nullptr : &MigratingLoop::get().host_mask();
}

void Executor::walk(Prepared* p) {
  FrameBuffer& buffer = *walkable(p->input->walker).frames;
  const int32_t depth = depth_of(*p->input, *p->victim);
  MigratingLoop& loop = MigratingLoop::get();
  loop.move_to(p->target.same_thread ? p->victim->slot : nullptr);
  WalkRecord& record = p->record;
  record.thread_state = p->victim->thread_state(jvm_.layout());
  record.last_java_pc = p->victim->last_java_pc(jvm_.layout());
  record.buffer = &buffer;
  record.expected_context = &p->expected_context;
  WriteWatch* const write_watch =
      rigour_ == Rigour::bare
          ? nullptr
          : write_watching_.prepare(*p->walker, *p->victim, victims_.observed());
  HostedWalk hosted = {.call = {.walker = p->walker,
                                .target = &p->target,
                                .frames = buffer.place(depth),
                                .depth = depth,
                                .context = p->context.get(),
                                .identity = &jvm_.identity(),
                                .collections = &jvm_.collections(),
                                .mask = mask_of_host(*p->walker),
                                .write_watch = write_watch,
                                .stale_words = 0},
                       .record = &record,
                       .incidents = &p->incidents};
  loop.call_on_host(&HostedWalk::run, &hosted);
  p->walker->resolve_methods(hosted.call.frames, record.frame_count());
}

void Executor::repair(Victim& victim) {
  if (victim.is_java_thread) {
    std::memcpy(victim.java_thread, victim.thread_copy.data(), victim.thread_copy.size());
  }
  std::string difference;  // what they left is no finding of its own
  victims_.verify(victim, /*repair=*/true, &difference);
}

// After the mutations are undone, of a walker that keeps results in the thread, as JFR does until the
// thread runs on: whether this one stays there. What was made of a context that no thread has would
// be answered outside walks, and JFR samples threads in Java and in native code below it only.
bool Executor::keep_state(const Prepared& p, bool unmutated) {
  Victim& victim = *p.victim;
  if (!victim.is_java_thread) return false;
  const uint32_t state = p.record.thread_state;
  const bool keeps =
      unmutated && p.record.end == WalkEnd::returned && scenario_info(victim.scenario).java &&
      (state == kThreadInJava || state == kThreadInNative) && victim.kept < kMostKept;
  if (keeps) {
    ++victim.kept;
    std::memcpy(victim.thread_copy.data(), victim.java_thread, victim.thread_copy.size());
  } else {
    std::memcpy(victim.java_thread, victim.thread_copy.data(), victim.thread_copy.size());
  }
  return keeps;
}

// After the mutations are undone: what the walk may have left changed in the victim. False when
// that cannot be put right.
bool Executor::check_victim(const Prepared& p) {
  Victim& victim = *p.victim;
  if (p.record.end != WalkEnd::returned || further_->abandoned() || !sampler::rests()) {
    // What it left there is no finding of its own: that it was abandoned is reported. JFR's thread marks
    // a thread that it samples (_suspend_flags), and has yet to take that back.
    repair(victim);
    return true;
  }
  const size_t window = std::min(victim.stack_copy.size(), kStackWindow);
  const bool top_same = std::memcmp(reinterpret_cast<const void*>(victim.stack_copy_begin),
                                    victim.stack_copy.data(), window) == 0;
  const bool thread_same =
      victim.thread_copy.empty() ||
      std::memcmp(victim.java_thread, victim.thread_copy.data(), victim.thread_copy.size()) == 0;
  // HotSpot completes such an anchor where it is, on whatever stack it has found it (make_walkable).
  const bool leads_far = std::ranges::find(p.input->mutations, StackAnchor::saved_anchor,
                                           &Mutation::anchor) != p.input->mutations.end();
  const bool look_at_each = rigour_ == Rigour::everything || leads_far;
  if (top_same && thread_same && !look_at_each && walks_ % kFullVerifyShare != 0) return true;
  std::string difference;
  if (victims_.verify(victim, /*repair=*/true, &difference)) return true;
  violations_.broken("victim-changed",
                     difference + (top_same && thread_same && !look_at_each
                                       ? " (seen now, done by one of the last " +
                                             std::to_string(kFullVerifyShare) + " walks)"
                                       : ""));
  // It may have run a live object's destructor: what that freed is not in the victim's copy, and
  // whoever next wants the thread's locks waits for ever.
  return p.incidents.unsafe.count == 0;
}

Outcome Executor::execute(const Input& input) {
  Outcome outcome;
  if (!has_walker_for(input)) {
    outcome.status = Outcome::Status::no_walker;
    return outcome;
  }
  Victim& victim = victims_.of(input.scenario);
  if (victim.slot == nullptr) return outcome;
  const DepthKind depth_kind = input.call.depth;
  if (victim.exact_depth == 0 && !traits_of(input.walker).called_as_handler &&
      (depth_kind == DepthKind::exact || depth_kind == DepthKind::exact_minus_1 ||
       depth_kind == DepthKind::exact_plus_1)) {
    measure_exact_depth(&victim, input.walker);
  }
  ++walks_;
  Prepared& prepared = *prepared_;
  const WalkRecord& record = prepared.record;
  prepare(input, &victim, &prepared);
  coverage_.begin_walk();
  walk(&prepared);

  outcome.status = Outcome::Status::walked;
  outcome.end = record.end;
  outcome.result = record.result;
  outcome.stopped = record.stopped();
  outcome.unmutated = prepared.mutations.applied == 0 && is_unmutated(input);
  outcome.unresolved = prepared.mutations.unresolved;
  // A thread that only starts or ends may not be there to answer.
  outcome.has_request = record.end == WalkEnd::returned && record.thread_state == kThreadInJava &&
                        scenario_info(input.scenario).java && prepared.walker->has_request();
  const WalkFacts* const facts = prepared.walker->facts();
  outcome.put_together = record.end == WalkEnd::returned && facts != nullptr && facts->put_together;
  outcome.contained_faults = prepared.incidents.contained.count;
  outcome.not_reusable = ends_reuse(record, *prepared.walker);
  const Subject subject = {.input = &input,
                           .victim = &victim,
                           .asked = prepared.asked,
                           .walker = prepared.walker,
                           .jvm = &jvm_,
                           .methods = &jvm_.methods(),
                           .undo = &undo_,
                           .unmutated = outcome.unmutated,
                           .mutated = prepared.mutations.applied > 0};
  const WalkView view = {record, subject};
  further_->begin(view, outcome.not_reusable);
  if (rigour_ != Rigour::bare) {
    const Needs offered = offered_by(*prepared.walker);
    oracles_.judge(view, *further_, is_costly() ? offered : offered.without({Need::further_walks}),
                   &violations_);
    if (outcome.has_request && outcome.unmutated) {
      outcome.requested = frames_of_request(view);
      outcome.requested_stands = !outcome.requested.empty() && view.frame_stands();
      outcome.requested_bci = prepared.walker->requested_bci();
    }
    outcome.not_reusable = further_->not_reusable();
  }
  if (!undo_.revert()) {
    violations_.broken("undo-failed",
                       "a mutated word could not be restored: something else wrote to it");
  }
  if (prepared.walker->keeps_state_in_thread()) {
    outcome.kept = keep_state(prepared, outcome.unmutated);
  }
  if (rigour_ != Rigour::bare || record.end != WalkEnd::returned) {
    const bool is_whole = check_victim(prepared);
    outcome.not_reusable = outcome.not_reusable || !is_whole;
  }
  not_reusable_ = not_reusable_ || outcome.not_reusable;
  outcome.findings = violations_.take();
  for (Finding& finding : outcome.findings) finding.input = input;
  std::ranges::move(further_->take_findings(), std::back_inserter(outcome.findings));
  return outcome;
}

std::vector<JavaFrame> Executor::frames_of_request(const WalkView& view) {
  std::vector<JavaFrame> frames;
  if (walker(kWitness.id) == nullptr || !kWitness.walks_in(view.subject.input->mode)) return frames;
  const WalkRecord* const walk = further_->make(FurtherWalk::by_witness(view));
  if (walk == nullptr || walk->result >= walk->depth) return frames;  // cut: outermost frames lack
  read_java_frames(kWitness, walk->frames, walk->frame_count(), jvm_.code_map(), jvm_.methods(),
                   &frames);
  return frames;
}

bool Executor::prepare_bare(const Input& input, BareWalk* out) {
  Victim& victim = victims_.of(input.scenario);
  if (!has_walker_for(input) || victim.slot == nullptr) return false;
  Prepared prepared;
  prepare(input, &victim, &prepared);
  undo_.revert();
  out->walker = prepared.walker;
  out->victim = &victim;
  out->target = prepared.target;
  out->target.drop_calls();  // they are the input's, which may not live as long
  out->depth = depth_of(input, victim);
  out->frames = walkable(input.walker).frames->place(out->depth);
  out->null_context = prepared.context.get() == nullptr;
  copy_context(prepared.expected_context, &out->context);
  return true;
}

std::vector<OracleSet::NotJudged> Executor::not_judged() const {
  std::vector<OracleSet::NotJudged> all = oracles_.not_judged();
  const WriteWatch::Counts& watched = write_watching_.counts();
  if (watched.not_watched != 0) {
    all.push_back({"writes", std::to_string(watched.not_watched) + " of " +
                                 std::to_string(watched.made) +
                                 " walks to watch did not end in a copy of the process"});
  }
  return all;
}

std::vector<Frame> Executor::last_frames() const {
  std::vector<Frame> frames;
  const size_t count = prepared_->record.frame_count();
  frames.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    frames.push_back(
        read_frame(prepared_->walker->layout(), prepared_->record.frames, i, jvm_.code_map()));
  }
  return frames;
}

std::optional<Frame> Executor::last_frame(size_t index) const {
  const WalkRecord& record = prepared_->record;
  if (index >= record.frame_count()) return std::nullopt;
  return read_frame(prepared_->walker->layout(), record.frames, index);
}

uint64_t Executor::last_answer() const {
  return digest_of_answer(prepared_->record, prepared_->walker->layout());
}

std::vector<NamedFrame> Executor::last_trace() const { return name_frames(last_frames()); }

std::vector<NamedFrame> Executor::name_frames(const std::vector<Frame>& frames) const {
  std::vector<NamedFrame> named;
  named.reserve(frames.size());
  for (const Frame& frame : frames) {
    const std::string text = frame.name == nullptr ? std::string() : text_at(frame.name);
    const bool has_text = !text.empty() && jvm_.methods().find(frame.method) == nullptr;
    named.push_back({has_text ? text : method_name(frame, jvm_.methods()), frame.bci});
  }
  return named;
}

}  // namespace framestorm
