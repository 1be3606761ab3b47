#include "harness/executor/executor.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "harness/guard/guard.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

// errno before each walk: a value no call sets.
constexpr int kErrnoMarker = 0x5a5a;

// Depth that profilers use.
constexpr int32_t kNormalDepth = 2048;

// Bytes of a victim's stack around sp that are compared after every walk.
constexpr size_t kStackWindow = 1024;

uintptr_t anchor_address(const Victim& victim, const ThreadLayout& layout, StackAnchor anchor) {
  switch (anchor) {
    case StackAnchor::fp:
      return victim.fp;
    case StackAnchor::stack_base:
      // Above the first frame stand thread-local variables, which are not to be written.
      return victim.frames_top;
    case StackAnchor::last_java_sp:
      return victim.thread_copy.empty()
                 ? 0
                 : read_at<uintptr_t>(victim.thread_copy.data(), layout.last_java_sp);
    case StackAnchor::sp:
    case StackAnchor::count:
      break;
  }
  return victim.sp;
}

}  // namespace

struct Executor::Prepared {
  const Input* input = nullptr;
  Victim* victim = nullptr;
  Walker* walker = nullptr;
  const ThreadIdentity* identity = nullptr;
  WalkTarget target;
  // One byte of room so that a context can be given at an odd address.
  alignas(ucontext_t) std::byte context_memory[sizeof(ucontext_t) + 8];
  ucontext_t expected_context;
  ucontext_t* context = nullptr;
  int32_t depth = 0;
  std::byte* frames = nullptr;
  WalkEnd end = WalkEnd::returned;
  int32_t result = 0;
  FaultRecord fault;
  UnsafeCalls unsafe;
  SanitizerReports reports;
  int errno_after = 0;
  bool check_mask = false;
  bool mask_changed = false;
  size_t unresolved = 0;
  size_t applied = 0;
  bool rewalk_abandoned = false;  // a walk that an oracle made did not return
  uint32_t thread_state = 0;

  // Ready for another walk; what apply() and the walk set anew stays as it is.
  void reset() {
    end = WalkEnd::returned;
    result = 0;
    unresolved = 0;
    applied = 0;
    rewalk_abandoned = false;
    mask_changed = false;
  }

  // HotSpot's fatal path notes that it is dying (vmError.cpp, _first_error_tid): a later real error
  // would wait for it for ever. So would whoever wants a lock that an abandoned walk holds. A
  // failed check of ASan's does neither by itself. A walk that had called what a walk must not call
  // was in the midst of something else, often by a wild jump: what it did is not known.
  bool ends_reuse() const {
    if (end == WalkEnd::returned) return false;
    const bool dying = end == WalkEnd::terminal_call &&
                       std::string_view(fault.function) != sanitizer::kTerminalCall;
    return dying || fault.locks_held > 0 || unsafe.count > 0;
  }

  // On the host's stack. Signal context in same-thread mode.
  static void walk(void* self);
  // Inside the guard.
  static void invoke(void* self);
};

void Executor::Prepared::invoke(void* self) {
  auto* p = static_cast<Prepared*>(self);
  p->result = p->walker->walk(p->target, p->frames, p->depth, p->context);
}

void Executor::Prepared::walk(void* self) {
  auto* p = static_cast<Prepared*>(self);
  sigset_t before;
  if (p->check_mask) pthread_sigmask(SIG_BLOCK, nullptr, &before);
  errno = kErrnoMarker;
  if (p->target.same_thread || !p->walker->borrows_identity()) {
    p->end = Guard::call(&Prepared::invoke, p, &p->fault, &p->unsafe, &p->reports);
  } else {
    const ThreadIdentity::Scoped as_victim(*p->identity, p->victim->java_thread);
    p->end = Guard::call(&Prepared::invoke, p, &p->fault, &p->unsafe, &p->reports);
  }
  p->errno_after = errno;
  if (p->check_mask) {
    sigset_t after;
    pthread_sigmask(SIG_BLOCK, nullptr, &after);
    p->mask_changed = std::memcmp(&before, &after, 8) != 0;
  }
}

// Walks the prepared victim again, with the same mutations, and has these walks judged.
class Executor::Rewalker final : public Rewalk {
 public:
  // `view`: of the first walk. What is found wrong goes to `out`.
  Rewalker(Executor* executor, Prepared* prepared, const WalkView& view, std::vector<Finding>* out)
      : executor_(*executor), prepared_(*prepared), view_(view), out_(*out) {}

  bool walk(int32_t depth, Place place, Answer* answer) override {
    Input input = *view_.input;
    if (depth != view_.depth) {
      input.call.depth = DepthKind::raw;
      input.call.raw_depth = depth;
    }
    return walk(input, depth, place, answer);
  }

  bool walk_as(const Input& variant, Place place, Answer* answer) override {
    Walker* const walker = executor_.walker(variant.walker);
    if (walker == nullptr || prepared_.rewalk_abandoned) return false;
    Walker* const first_walker = prepared_.walker;
    prepared_.walker = walker;
    executor_.set_call(variant, &prepared_);
    const bool returned =
        walk(variant, executor_.depth_of(variant, *prepared_.victim), place, answer);
    prepared_.walker = first_walker;
    executor_.set_call(*view_.input, &prepared_);
    return returned;
  }

  Walker* walker(WalkerId id) const override { return executor_.walker(id); }

  bool not_reusable() const { return not_reusable_; }

 private:
  // `input`: what describes this walk.
  bool walk(const Input& input, int32_t depth, Place place, Answer* answer) {
    if (prepared_.rewalk_abandoned) return false;
    const Coverage::Aside aside(executor_.coverage_);
    // The first walk's frames stay readable for the oracles: keep them aside meanwhile.
    const auto count = static_cast<size_t>(std::max(prepared_.result, 0));
    saved_.assign(prepared_.frames, prepared_.frames + count * view_.walker->layout().stride);
    const size_t stride = prepared_.walker->layout().stride;
    FrameBuffer& buffer = *executor_.buffers_[static_cast<size_t>(prepared_.walker->id())];
    std::byte* const first_frames = prepared_.frames;
    const int32_t first_result = prepared_.result;
    const int32_t first_depth = prepared_.depth;
    prepared_.depth = depth;
    prepared_.frames = buffer.place(depth);
    if (place == Place::same) {
      MigratingLoop::get().call_on_host(&Prepared::walk, &prepared_);
    } else {
      Prepared::walk(&prepared_);
    }
    const bool returned = prepared_.end == WalkEnd::returned;
    prepared_.rewalk_abandoned = !returned;
    not_reusable_ = not_reusable_ || prepared_.ends_reuse();
    judge(input, buffer);
    answer->result = prepared_.result;
    if (returned) {
      const auto again = static_cast<size_t>(std::clamp(prepared_.result, 0, std::max(depth, 0)));
      answer->frames.assign(prepared_.frames, prepared_.frames + again * stride);
    }
    prepared_.frames = first_frames;
    prepared_.result = first_result;
    prepared_.depth = first_depth;
    prepared_.end = WalkEnd::returned;
    executor_.buffers_[static_cast<size_t>(view_.walker->id())]->place(first_depth);
    std::copy(saved_.begin(), saved_.end(), first_frames);
    return returned;
  }

  // The walk just made, by itself. What the first walk showed too is known already.
  void judge(const Input& input, const FrameBuffer& buffer) {
    WalkView again = view_;
    again.input = &input;
    again.walker = prepared_.walker;
    again.buffer = &buffer;
    again.depth = prepared_.depth;
    again.frames = prepared_.frames;
    again.end = prepared_.end;
    again.result = prepared_.result;
    again.errno_after = prepared_.errno_after;
    again.signal_mask_changed = prepared_.mask_changed;
    Violations wrong;
    for (const auto& oracle : executor_.oracles_) {
      if (oracle->judges_rewalks()) oracle->check(again, *this, &wrong);
    }
    for (Finding& finding : wrong.findings()) {
      if (is_known(finding, executor_.violations_.findings()) || is_known(finding, out_)) continue;
      finding.input = input;
      out_.push_back(std::move(finding));
    }
  }

  static bool is_known(const Finding& finding, const std::vector<Finding>& others) {
    return std::ranges::any_of(others, [&](const Finding& other) {
      return finding.kind == other.kind && finding.clause == other.clause &&
             finding.fault.pc == other.fault.pc;
    });
  }

  Executor& executor_;
  Prepared& prepared_;
  const WalkView& view_;
  std::vector<Finding>& out_;
  std::vector<std::byte> saved_;
  bool not_reusable_ = false;
};

Executor::Executor(Jvm& jvm, Victims& victims)
    : jvm_(jvm),
      victims_(victims),
      addresses_(jvm),
      coverage_(jvm),
      oracles_(make_oracles()),
      prepared_(std::make_unique<Prepared>()) {}

Executor::~Executor() = default;

void Executor::add_walker(std::unique_ptr<Walker> walker) {
  const auto index = static_cast<size_t>(walker->id());
  if (walkers_[index] != nullptr) return;
  buffers_[index] = std::make_unique<FrameBuffer>(walker->layout().stride);
  walkers_[index] = std::move(walker);
}

void Executor::replace_walker(std::unique_ptr<Walker> walker) {
  walkers_[static_cast<size_t>(walker->id())].reset();
  add_walker(std::move(walker));
}

bool Executor::is_unmutated(const Input& input) {
  return input.mutations.empty() && input.call.context == ContextArg::victim &&
         input.call.env == EnvArg::victim && input.call.accepted_kinds == 0 &&
         input.call.accepted_states == 0;
}

int32_t Executor::depth_of(const Input& input, const Victim& victim) const {
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

void Executor::settle_exact_depth(Victim* victim, Walker* walker) {
  const Coverage::Aside aside(coverage_);
  Input plain;
  plain.scenario = victim->scenario;
  plain.walker = walker->id();
  plain.mode = traits_of(plain.walker).same_thread ? Mode::same_thread : Mode::separate_thread;
  Prepared prepared;
  prepared.input = &plain;
  prepared.victim = victim;
  prepared.walker = walker;
  apply(plain, &prepared);
  prepared.depth = kMaxDepth - 1;
  prepared.frames = buffers_[static_cast<size_t>(walker->id())]->place(prepared.depth);
  run_walk(&prepared);
  victim->exact_depth = prepared.end == WalkEnd::returned && prepared.result > 0
                            ? std::min(prepared.result, kMaxDepth - 1)
                            : 1;
}

void Executor::apply(const Input& input, Prepared* p) {
  const ThreadLayout& layout = jvm_.layout();
  const Victim& victim = *p->victim;
  ucontext_t* expected = &p->expected_context;
  copy_context(*victim.slot->context, expected);

  for (const Mutation& mutation : input.mutations) {
    uint64_t value = 0;
    switch (mutation.kind) {
      case MutationKind::set_register: {
        const uint64_t own = get_register(victim.context_copy, mutation.reg);
        if (!addresses_.resolve(mutation.value, victim, victims_.halted(), own, &value)) break;
        set_register(expected, mutation.reg, value);
        ++p->applied;
        continue;
      }
      case MutationKind::set_stack_word: {
        const uintptr_t base = anchor_address(victim, layout, mutation.anchor);
        const uintptr_t address =
            base + static_cast<uintptr_t>(static_cast<intptr_t>(mutation.offset) * 8);
        // From the red zone up to the base: below it the handler's own frames live.
        if (address % 8 != 0 || address < victim.sp - kRedZone || address > victim.frames_top - 8) {
          break;
        }
        const auto own = read_at<uint64_t>(reinterpret_cast<const void*>(address));
        if (!addresses_.resolve(mutation.value, victim, victims_.halted(), own, &value)) break;
        if (undo_.write(address, value, 8)) ++p->applied;
        continue;
      }
      case MutationKind::set_thread_field: {
        if (!victim.is_java_thread) break;
        const bool state = mutation.field == ThreadField::state;
        const size_t offset = state                                         ? layout.state
                              : mutation.field == ThreadField::last_java_sp ? layout.last_java_sp
                              : mutation.field == ThreadField::last_java_pc ? layout.last_java_pc
                                                                            : layout.last_java_fp;
        const auto address = reinterpret_cast<uintptr_t>(victim.java_thread) + offset;
        const uint64_t own = state ? read_at<uint32_t>(victim.thread_copy.data(), offset)
                                   : read_at<uint64_t>(victim.thread_copy.data(), offset);
        if (!addresses_.resolve(mutation.value, victim, victims_.halted(), own, &value)) break;
        if (undo_.write(address, value, state ? 4 : 8)) ++p->applied;
        continue;
      }
      case MutationKind::count:
        break;
    }
    ++p->unresolved;
  }

  set_call(input, p);
  p->target.java_thread = victim.java_thread;
  p->target.thread = victim.thread;
  p->target.tid = victim.tid;
  p->target.same_thread = input.mode == Mode::same_thread;
  p->target.stack_base = victim.stack_base;
  p->target.stack_end = victim.stack_end;
  p->thread_state = victim.thread_state(layout);
  p->identity = &jvm_.identity();
}

void Executor::set_call(const Input& input, Prepared* p) const {
  const Victim& victim = *p->victim;
  std::byte* memory = p->context_memory + (input.call.context == ContextArg::misaligned ? 1 : 0);
  p->context = reinterpret_cast<ucontext_t*>(memory);
  copy_context(p->expected_context, p->context);
  if (input.call.context == ContextArg::null) p->context = nullptr;

  p->target.jni_env = victim.jni_env;
  p->target.asked_tid = victim.tid;
  if (input.call.env == EnvArg::null) {
    p->target.jni_env = nullptr;
    p->target.asked_tid = -1;
  }
  if (input.call.env == EnvArg::other_victim) {
    for (const Victim* other : victims_.halted()) {
      if (other == &victim || other->jni_env == nullptr) continue;
      p->target.jni_env = other->jni_env;
      p->target.asked_tid = other->tid;
    }
  }
  p->target.options = input.call.options;
  p->target.accepted_kinds = input.call.accepted_kinds;
  p->target.accepted_states = input.call.accepted_states;
  p->target.iterator_calls = input.iterator_calls;
}

void Executor::run_walk(Prepared* p) {
  MigratingLoop& loop = MigratingLoop::get();
  loop.move_to(p->target.same_thread ? p->victim->slot : nullptr);
  loop.call_on_host(&Prepared::walk, p);
}

bool Executor::repair(Victim& victim, std::string* difference) {
  if (victim.is_java_thread) {
    std::memcpy(victim.java_thread, victim.thread_copy.data(), victim.thread_copy.size());
  }
  return victims_.verify(victim, /*repair=*/true, difference);
}

// After the mutations are undone: what the walk may have left changed in the victim. False when
// that cannot be put right.
bool Executor::check_victim(Prepared* p) {
  Victim& victim = *p->victim;
  if (p->end != WalkEnd::returned || p->rewalk_abandoned) {
    // What it left there is no finding of its own: that it was abandoned is reported.
    std::string difference;
    repair(victim, &difference);
    return true;
  }
  const size_t window = std::min(victim.stack_copy.size(), kStackWindow);
  const bool top_same = std::memcmp(reinterpret_cast<const void*>(victim.stack_copy_begin),
                                    victim.stack_copy.data(), window) == 0;
  const bool thread_same =
      victim.thread_copy.empty() ||
      std::memcmp(victim.java_thread, victim.thread_copy.data(), victim.thread_copy.size()) == 0;
  const bool look_at_all = rigour_ == Rigour::everything || walks_ % kFullVerifyShare == 0;
  if (top_same && thread_same && !look_at_all) return true;
  std::string difference;
  if (victims_.verify(victim, /*repair=*/true, &difference)) return true;
  violations_.add(
      FindingKind::contract, "victim-changed",
      difference + (top_same && thread_same ? " (seen now, done by one of the last " +
                                                  std::to_string(kFullVerifyShare) + " walks)"
                                            : ""));
  // It may have run a live object's destructor: what that freed is not in the victim's copy, and
  // whoever next wants the thread's locks waits for ever.
  return p->unsafe.count == 0;
}

Outcome Executor::execute(const Input& input) {
  Outcome outcome;
  violations_.clear();
  rewalk_findings_.clear();
  outcome.findings = &violations_.findings();
  Victim& victim = victims_.of(input.scenario);
  Walker* walker = this->walker(input.walker);
  if (walker == nullptr || walker->needs_running_vm() ||
      !traits_of(input.walker).walks_in(input.mode)) {
    outcome.status = Outcome::Status::no_walker;
    return outcome;
  }
  if (victim.slot == nullptr) return outcome;
  const DepthKind depth_kind = input.call.depth;
  if (victim.exact_depth == 0 &&
      (depth_kind == DepthKind::exact || depth_kind == DepthKind::exact_minus_1 ||
       depth_kind == DepthKind::exact_plus_1)) {
    settle_exact_depth(&victim, walker);
  }
  ++walks_;
  outcome.status = Outcome::Status::walked;

  Prepared& prepared = *prepared_;
  prepared.reset();
  prepared.input = &input;
  prepared.victim = &victim;
  prepared.walker = walker;
  FrameBuffer& buffer = *buffers_[static_cast<size_t>(input.walker)];
  apply(input, &prepared);
  prepared.depth = depth_of(input, victim);
  prepared.frames = buffer.place(prepared.depth);
  prepared.check_mask = rigour_ == Rigour::everything || walks_ % kCostlyShare == 0;
  coverage_.begin_walk();
  run_walk(&prepared);

  outcome.end = prepared.end;
  outcome.result = prepared.result;
  outcome.unmutated = prepared.applied == 0 && is_unmutated(input);
  outcome.unresolved = prepared.unresolved;
  outcome.not_reusable = prepared.ends_reuse();
  last_memory_ = prepared.frames;
  last_walker_ = walker;
  last_count_ =
      prepared.end == WalkEnd::returned
          ? static_cast<size_t>(std::clamp(prepared.result, 0, std::max(prepared.depth, 0)))
          : 0;

  if (rigour_ != Rigour::bare) {
    WalkView view;
    view.input = &input;
    view.victim = &victim;
    view.walker = walker;
    view.jvm = &jvm_;
    view.methods = &jvm_.methods();
    view.unmutated = outcome.unmutated;
    view.mutated = prepared.applied > 0;
    view.thread_state = prepared.thread_state;
    view.last_java_pc = victim.last_java_pc(jvm_.layout());
    view.depth = prepared.depth;
    view.buffer = &buffer;
    view.frames = prepared.frames;
    view.end = prepared.end;
    view.result = prepared.result;
    if (const WalkFacts* facts = walker->facts()) view.stopped = facts->stopped;
    view.fault = &prepared.fault;
    view.unsafe = &prepared.unsafe;
    view.reports = &prepared.reports;
    view.context = prepared.context;
    view.expected_context = &prepared.expected_context;
    view.errno_before = kErrnoMarker;
    view.errno_after = prepared.errno_after;
    view.undo = &undo_;
    view.signal_mask_checked = prepared.check_mask;
    view.signal_mask_changed = prepared.mask_changed;
    Rewalker rewalker(this, &prepared, view, &rewalk_findings_);
    const bool costly = rigour_ == Rigour::everything || walks_ % kCostlyShare == 1;
    for (const auto& oracle : oracles_) {
      if (!oracle->costly() || costly) oracle->check(view, rewalker, &violations_);
    }
    outcome.not_reusable = outcome.not_reusable || rewalker.not_reusable();
  }
  if (!undo_.revert()) {
    violations_.add(FindingKind::contract, "undo-failed",
                    "a mutated word could not be restored: something else wrote to it");
  }
  if (rigour_ != Rigour::bare || prepared.end != WalkEnd::returned) {
    const bool is_whole = check_victim(&prepared);
    outcome.not_reusable = outcome.not_reusable || !is_whole;
  }
  not_reusable_ = not_reusable_ || outcome.not_reusable;
  for (Finding& finding : violations_.findings()) finding.input = input;
  std::ranges::move(rewalk_findings_, std::back_inserter(violations_.findings()));
  return outcome;
}

bool Executor::prepare_bare(const Input& input, BareWalk* out) {
  Victim& victim = victims_.of(input.scenario);
  Walker* walker = this->walker(input.walker);
  if (walker == nullptr || walker->needs_running_vm() || victim.slot == nullptr ||
      !traits_of(input.walker).walks_in(input.mode)) {
    return false;
  }
  Prepared prepared;
  prepared.input = &input;
  prepared.victim = &victim;
  prepared.walker = walker;
  apply(input, &prepared);
  undo_.revert();
  out->walker = walker;
  out->victim = &victim;
  out->target = prepared.target;
  out->target.iterator_calls = {};  // they are the input's, which may not live as long
  out->depth = depth_of(input, victim);
  out->frames = buffers_[static_cast<size_t>(input.walker)]->place(out->depth);
  out->null_context = prepared.context == nullptr;
  copy_context(prepared.expected_context, &out->context);
  return true;
}

std::vector<Frame> Executor::last_frames() const {
  std::vector<Frame> frames;
  frames.reserve(last_count_);
  for (size_t i = 0; i < last_count_; ++i) {
    frames.push_back(read_frame(last_walker_->layout(), last_memory_, i));
  }
  return frames;
}

std::optional<Frame> Executor::last_frame(size_t index) const {
  if (index >= last_count_) return std::nullopt;
  return read_frame(last_walker_->layout(), last_memory_, index);
}

std::vector<Executor::NamedFrame> Executor::last_trace() const {
  return name_frames(last_frames());
}

std::vector<Executor::NamedFrame> Executor::name_frames(const std::vector<Frame>& frames) const {
  std::vector<NamedFrame> named;
  named.reserve(frames.size());
  for (const Frame& frame : frames) {
    const MethodInfo* info = frame.method == nullptr ? nullptr : jvm_.methods().find(frame.method);
    named.push_back({info != nullptr ? info->name : "?", frame.bci});
  }
  return named;
}

}  // namespace framestorm
