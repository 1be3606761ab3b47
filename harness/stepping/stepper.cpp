#include "harness/stepping/stepper.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "harness/victim/context.h"
#include "harness/victim/natives.h"
#include "harness/walk/run_walk.h"

namespace framestorm::stepping {
namespace {

Stepper* active = nullptr;
// The thread is in take().
constinit thread_local bool in_handler = false;

// Calls that run at full speed, by where their return address stands. The process's: a virtual thread
// may have gone on elsewhere, and ended, before one of its carrier's calls returns.
struct Excursion {
  std::atomic<uintptr_t> slot{0};
  uintptr_t return_to = 0;
};
std::array<Excursion, 256> excursions;

// Of the call whose return address stood there; 0 when it is none of ours.
uintptr_t take_return(uintptr_t slot) {
  const auto found = std::ranges::find_if(excursions, [&](const Excursion& one) {
    return one.slot.load(std::memory_order_acquire) == slot;
  });
  if (found == excursions.end()) return 0;
  const uintptr_t return_to = found->return_to;
  found->slot.store(0, std::memory_order_release);
  return return_to;
}

constexpr Needs kOffered = {Need::incidents, Need::guarded_frames, Need::unsafe_calls, Need::trace,
                            Need::standing_code};

const std::map<uint32_t, Instruction> kNone;

}  // namespace

Stepper::Stepper(Jvm& jvm, std::vector<Walker*> walkers, const StepLimits& limits)
    : jvm_(jvm),
      walkers_(std::move(walkers)),
      limits_(limits),
      catalog_(jvm),
      versions_(jvm),
      truth_(jvm, catalog_, versions_),
      oracles_(had_here(kOffered)),
      subjects_{{{jvm, Mode::same_thread}, {jvm, Mode::separate_thread}}},
      outside_walks_(jvm),
      events_(jvm, limits.events) {
  for (const Walker* walker : walkers_) {
    if (walker == nullptr) throw std::invalid_argument("a walker that this JDK does not have");
    buffers_.push_back(std::make_unique<FrameBuffer>(
        walker->layout().stride, limits.depth,
        walker->contains_faults() ? FrameBuffer::End::canary : FrameBuffer::End::fault));
    nested_frames_.resize(std::max(nested_frames_.size(),
                                   walker->layout().stride * static_cast<size_t>(limits.depth)));
  }
  thread_copies_.resize(2 * jvm.layout().java_thread_size);
  frames_.reserve(static_cast<size_t>(limits.depth));
  active = this;
  natives::set_stepping([](JNIEnv* env) { active->begin(env); }, [] { active->end(); });
}

Stepper::~Stepper() { natives::set_stepping(nullptr, nullptr); }

void Stepper::arm(ScenarioId scenario, const HaltPoint& only) {
  reset(scenario, only);
  armed_.store(true, std::memory_order_release);
}

void Stepper::reset(ScenarioId scenario, const HaltPoint& only) {
  scenario_ = scenario;
  only_ = only;
  arrivals_ = 0;
  events_.begin(scenario);
  most_steps_ = limits_.most_steps == 0 ? UINT64_MAX : counts_.steps + limits_.most_steps;
  given_up_.store(false);
}

const std::map<uint32_t, Instruction>& Stepper::instructions(const Blob& blob) const {
  const auto found = instructions_.find(&blob);
  return found == instructions_.end() ? kNone : found->second;
}

void Stepper::begin(JNIEnv* env) {
  bool armed = true;
  if (!armed_.compare_exchange_strong(armed, false)) return;
  if (!know(nullptr, static_cast<std::byte*>(jvm_.identity().current()), env, gettid())) {
    return;
  }
  jthread own = nullptr;
  jvm_.jvmti()->GetCurrentThread(&own);
  events_.set_thread(env, own, jvm_.identity().current());
  env->DeleteLocalRef(own);
  stepping_.store(true, std::memory_order_release);
  World::get().step_self({.observe = &Stepper::on_trap});
}

bool Stepper::know(jthread thread, std::byte* java_thread, JNIEnv* env, int tid) {
  std::array<jvmtiFrameInfo, 4096> frames;
  jint count = 0;
  if (jvm_.jvmti()->GetStackTrace(thread, 0, frames.size(), frames.data(), &count) !=
          JVMTI_ERROR_NONE ||
      count == 0) {
    return false;
  }
  std::vector<DebugInfo::JavaFrame> base;
  for (const jvmtiFrameInfo& frame : std::span(frames).first(static_cast<size_t>(count))) {
    base.push_back({frame.method, static_cast<int32_t>(frame.location)});
    versions_.know_frame(thread == nullptr ? env : jvm_.env(), frame.method);
  }
  jvm_.code_map().absorb();
  jvm_.methods().absorb();
  const ThreadLayout& layout = jvm_.layout();
  target_ = {.java_thread = java_thread,
             .jni_env = env,
             .tid = tid,
             .same_thread = true,
             .stack_base = read_at<uintptr_t>(java_thread, layout.stack_base)};
  target_.stack_end = target_.stack_base - read_at<size_t>(java_thread, layout.stack_size);
  target_.asked_tid = target_.tid;
  truth_.begin(base, target_.stack_base, read_at<uintptr_t>(java_thread, layout.last_java_sp));
  native_steps_ = 0;
  native_before_ = call_before_ = false;
  last_known_.store(counts_.steps);
  last_new_.store(counts_.steps);
  return true;
}

void Stepper::end() {
  if (!stepping_.load(std::memory_order_acquire)) return;
  World::get().end_step(gettid());
  stepping_.store(false, std::memory_order_release);
}

bool Stepper::begin_on(jthread thread, jthread carrier) {
  JNIEnv* const env = jvm_.env();
  jvmtiEnv* const jvmti = jvm_.jvmti();
  if (jvmti->SuspendThread(thread) != JVMTI_ERROR_NONE) return false;
  auto* const java_thread = static_cast<std::byte*>(jvm_.java_thread_of(env, carrier));
  bool begun = false;
  if (java_thread != nullptr) {
    const int tid = jvm_.tid_of(java_thread);
    auto* const its_env = reinterpret_cast<JNIEnv*>(java_thread + jvm_.layout().jni_env);
    reset(ScenarioId::count, {});
    if (know(thread, java_thread, its_env, tid) && World::get().halt(tid)) {
      stepping_.store(true, std::memory_order_release);
      World::get().release_stepping(World::get().find(tid), {.observe = &Stepper::on_trap});
      begun = true;
    }
  }
  jvmti->ResumeThread(thread);
  return begun;
}

bool Stepper::thread_is_gone() const { return syscall(SYS_tgkill, getpid(), target_.tid, 0) != 0; }

void Stepper::end_on() {
  World& world = World::get();
  if (!stepping_.load(std::memory_order_acquire)) return;
  world.end_step(target_.tid);
  if (world.halt(target_.tid)) {
    ThreadSlot* const slot = world.find(target_.tid);
    set_single_step(slot->context, false);
    world.release(slot);
  }
  stepping_.store(false, std::memory_order_release);
}

// Signal context.
StepAnswer Stepper::on_trap(ucontext_t* context, bool single_step) {
  if (in_handler) return active->take_in_walk(context, single_step);
  in_handler = true;
  const StepAnswer answer = active->take(context, single_step);
  in_handler = false;
  return answer;
}

// Of a walk that is to be interrupted.
StepAnswer Stepper::take_in_walk(ucontext_t* context, bool single_step) {
  if (!single_step) return StepAnswer::not_mine;
  if (nested_ == nullptr || !nested_->waits()) return StepAnswer::pause;
  nested_->on_trap(context, nested_frames_.data());
  return nested_->waits() ? StepAnswer::go_on : StepAnswer::pause;
}

StepAnswer Stepper::take(ucontext_t* context, bool single_step) {
  events_.step();
  Registers now = registers_of(*context);
  // Of a thread that is not stepped any more: a carrier that its virtual thread has left.
  const bool over = !stepping_.load(std::memory_order_acquire) || target_.tid != gettid();
  if (!single_step) {
    if (!is_trampoline_trap(now.pc)) return StepAnswer::not_mine;
    now.pc = take_return(now.sp - sizeof(uintptr_t));
    if (now.pc == 0) return StepAnswer::not_mine;
    set_register(context, Register::pc, now.pc);
    if (over) return StepAnswer::end;
    truth_.advance_past_call(now);
  } else if (over) {
    return StepAnswer::end;
  } else {
    truth_.advance(now);
  }
  passed_[counts_.steps % passed_.size()] = {truth_.blob(), now, truth_.activations()};
  ++counts_.steps;
  steps_now_.store(counts_.steps, std::memory_order_relaxed);
  if (counts_.steps >= most_steps_) give_up();
  // HotSpot finds frames by the return addresses of code that JVMTI has not told of yet, too.
  const bool native = truth_.blob() == nullptr && !catalog_.in_code_cache(now.pc);
  const bool entered = single_step && native && native_before_ && call_before_;
  native_steps_ = native ? native_steps_ + 1 : 0;
  native_before_ = native;
  call_before_ = truth_.flow() == Flow::call;
  if (!native && given_up_.load(std::memory_order_acquire)) {
    end();
    return StepAnswer::end;
  }
  if (native_steps_ > limits_.native_steps || given_up_.load(std::memory_order_relaxed)) {
    ++counts_.passed;
    if (entered && run_past(now)) return StepAnswer::pause;
    return StepAnswer::go_on;
  }
  walk_all(*context);
  return StepAnswer::go_on;
}

// False when there are too many of them: then it is stepped.
bool Stepper::run_past(const Registers& now) {
  uintptr_t* const slot = return_slot(now);
  const auto unused =
      std::ranges::find_if(excursions, [](const Excursion& one) { return one.slot.load() == 0; });
  if (unused == excursions.end()) return false;
  unused->return_to = *slot;
  unused->slot.store(now.sp, std::memory_order_release);
  *slot = trampoline();
  ++counts_.excursions;
  return true;
}

bool Stepper::is_wanted(const ucontext_t& context) const {
  if (only_.any) return true;
  const auto at = jvm_.code_map().describe(get_register(context, Register::pc));
  return at && at->ref == only_.code && at->delta == only_.delta &&
         (!only_.has_frame_offset ||
          is_as_deep(target_.stack_base - get_register(context, Register::sp), only_.frame_offset));
}

void Stepper::walk_all(const ucontext_t& context) {
  const Knowledge knowledge = truth_.knowledge();
  if (knowledge == Knowledge::waiting) return;
  const bool wanted = is_wanted(context);
  if (!wanted && events_.in_force() == StepEvent::none && !is_on_the_way()) return;
  Instruction* instruction = nullptr;
  if (const Blob* const blob = truth_.blob()) {
    const auto offset =
        static_cast<uint32_t>(get_register(context, Register::pc) - blob->entry.begin);
    instruction = &instructions_[blob][offset];
    if (++instruction->steps == 1) last_new_.store(counts_.steps, std::memory_order_relaxed);
  }
  if (knowledge == Knowledge::known) last_known_.store(counts_.steps, std::memory_order_relaxed);
  if (!is_in(limits_.inside, instruction)) {
    ++counts_.seen_enough;
    return;
  }
  if (wanted) ++arrivals_;
  ++counts_.walked;
  if (knowledge == Knowledge::known) ++counts_.judged;
  if (knowledge == Knowledge::outside) ++counts_.outside;
  if (knowledge == Knowledge::lost) ++counts_.lost[std::string(truth_.lost_why())];
  copy_context(context, &expected_);
  for (ThreadSubject& subject : subjects_) {
    subject.set({.tid = target_.tid,
                 .java_thread = target_.java_thread,
                 .jni_env = target_.jni_env,
                 .pc = get_register(context, Register::pc),
                 .sp = get_register(context, Register::sp),
                 .fp = get_register(context, Register::fp),
                 .stack_base = target_.stack_base,
                 .stack_end = target_.stack_end});
  }
  section_ = truth_.section();
  watch_.take();
  walk_round(context, instruction);
  if (knowledge == Knowledge::known) inject(context, instruction);
  watch_.give_back();
}

void Stepper::walk_round(const ucontext_t& context, Instruction* instruction) {
  if (limits_.same_thread) walk_in(Mode::same_thread, context, instruction);
  if (is_in(limits_.outside, instruction)) {
    ++counts_.from_outside;
    walk_in(Mode::separate_thread, context, instruction);
  }
}

bool Stepper::is_in(const Sample& sample, const Instruction* instruction) {
  if (instruction != nullptr && instruction->steps <= sample.first) return true;
  return sample.one_in != 0 && random_() % sample.one_in == 0;
}

void Stepper::walk_in(Mode mode, const ucontext_t& context, Instruction* instruction) {
  mode_ = mode;
  target_.same_thread = mode == Mode::same_thread;
  for (size_t i = 0; i < walkers_.size(); ++i) {
    if (walkers_[i]->traits().walks_in(mode)) walk(i, context, instruction);
  }
}

void Stepper::walk(size_t index, const ucontext_t& context, Instruction* instruction) {
  const Walker& walker = *walkers_[index];
  const uint64_t found = found_now_.load(std::memory_order_relaxed);
  if (mutants_ != nullptr) mutants_->begin();
  const WalkRecord record = make(index, context);
  const Judgement judgement = judge_trace(walker, record, record.frames);
  count(walker, judgement, record, instruction);
  if (judgement.verdict != Verdict::right && judgement.verdict != Verdict::unjudged) {
    Finding finding = finding_of(judgement, record);
    const auto what = std::pair(column_of(walker.id(), mode_), judgement.verdict);
    // A program does not come to the same place again by itself.
    const bool leads_there = instruction != nullptr && scenario_ < ScenarioId::count &&
                             events_.in_force() == StepEvent::none;
    if (leads_there && !instruction->misses.contains(what)) {
      instruction->misses[what] = {input_of(walker), finding.clause, finding.detail};
    }
    if (judgement.verdict != Verdict::failed) {
      keep(walker, judgement.verdict, std::move(finding), is_promised(walker, judgement, record));
    }
  }
  ask_oracles(walker, record);
  if (mutants_ != nullptr && found_now_.load(std::memory_order_relaxed) == found) {
    try_mutants(index, context, record, instruction, judgement.verdict == Verdict::right);
  }
}

WalkRecord Stepper::make(size_t index, const ucontext_t& context) {
  Walker& walker = nested_ == nullptr ? *walkers_[index] : *nested_;
  FrameBuffer& buffer = *buffers_[index];
  copy_context(context, &given_);
  WalkRecord record;
  record.thread_state = read_at<uint32_t>(target_.java_thread, jvm_.layout().state);
  record.last_java_pc = subject().victim().last_java_pc(jvm_.layout());
  record.buffer = &buffer;
  record.expected_context = &expected_;
  const WalkCall call = {.walker = &walker,
                         .target = &target_,
                         .frames = buffer.place(limits_.depth),
                         .depth = limits_.depth,
                         .context = &given_,
                         .identity = &jvm_.identity(),
                         .collections = &jvm_.collections()};
  if (mode_ == Mode::same_thread) {
    run_walk(call, &record, &incidents_);
  } else {
    outside_walks_.run(call, &record, &incidents_);
  }
  result_ = record.result;
  return record;
}

}  // namespace framestorm::stepping
