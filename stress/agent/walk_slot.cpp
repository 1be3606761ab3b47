#include "stress/agent/walk_slot.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "harness/guard/signal_table.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

bool refuses_for_vm(const Walker& walker, int32_t result) {
  if (result > 0) return false;
  const std::string_view name = walker.error_name(result);
  return name == "GC_active" || name == "unsafe_state";
}

}  // namespace

Needs offered_needs() {
  return had_here({Need::further_walks, Need::incidents, Need::guarded_frames, Need::unsafe_calls,
                   Need::trace});
}

Needs further_needs(const OracleSet& oracles) {
  return oracles.offered().without({Need::guarded_frames});
}

std::string_view name_of(LostCause cause) {
  constexpr std::string_view kNames[kLostCauses] = {
      "timer-overrun",   "signals-blocked", "thread-exiting", "late-handler", "halt-timeout",
      "buffer-full",     "unjudged",        "not-java",       "throttled",    "waiting",
      "creating-thread", "stack-too-small", "no-timer"};
  return kNames[static_cast<size_t>(cause)];
}

WalkSlot::WalkSlot(const WalkSetup& setup, WalkingRecord* walking)
    : setup_(setup), walking_(walking), subject_(*setup.jvm, setup.mode) {
  std::vector<WalkerId> all = setup.comparable;
  all.insert(all.end(), setup.walkers.begin(), setup.walkers.end());
  size_t largest = 0;
  for (const WalkerId id : all) {
    const auto index = static_cast<size_t>(id);
    if (walkers_[index] != nullptr) continue;
    // Adapters keep what their last walk said: one of each for every slot.
    const bool in_file = traits_of(id).origin == WalkerOrigin::shared_object;
    owned_.push_back(in_file ? setup.plugin->make_walker() : make_walker(id, *setup.jvm));
    walkers_[index] = owned_.back().get();
    recovers_from_faults_ = recovers_from_faults_ || walkers_[index]->contains_faults();
    const size_t stride = walkers_[index]->layout().stride;
    buffers_[index] = std::make_unique<FrameBuffer>(
        stride, setup.depth,
        walkers_[index]->contains_faults() ? FrameBuffer::End::canary : FrameBuffer::End::fault);
    largest = std::max(largest, stride);
  }
  // One more than frames, so that a trace that is too short shows.
  if (setup.truth) shadow_.resize(static_cast<size_t>(setup.depth) + 2);
  rewalk_memory_.resize(kMaxRewalks * static_cast<size_t>(setup.depth) * largest);
  void* const stack = mmap(nullptr, kMaxStackCopy, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping a slot's stack copy");
  }
  stack_ = static_cast<std::byte*>(stack);
}

WalkSlot::~WalkSlot() { munmap(stack_, kMaxStackCopy); }

void WalkSlot::run(const WalkRequest& request, const FurtherWalk& walk, std::byte* frames,
                   WalkRecord* record, Incidents* incidents) {
  copy_context(expected_, &context_);
  WalkTarget target = request.target;
  target.options = walk.options;
  run_walk({.walker = walkers_[static_cast<size_t>(walk.walker)],
            .target = &target,
            .frames = frames,
            .depth = walk.depth,
            .context = &context_,
            .identity = &setup_.jvm->identity(),
            .collections = &setup_.jvm->collections(),
            .residue = setup_.residue,
            .contained = !setup_.strict,
            .mask = &mask_,
            .timed = true},
           record, incidents);
}

void WalkSlot::note_thread(const WalkRequest& request) {
  const ThreadLayout& layout = setup_.jvm->layout();
  const void* const thread = request.target.java_thread;
  sample_.number = request.number;
  sample_.thread = request.thread;
  sample_.tid = request.target.tid;
  sample_.costly = request.costly;
  sample_.java_thread = request.target.java_thread;
  sample_.jni_env = request.target.jni_env;
  sample_.stack_base = request.target.stack_base;
  sample_.stack_end = request.target.stack_end;
  sample_.last_java_sp = read_at<uintptr_t>(thread, layout.last_java_sp);
  sample_.last_java_pc = read_at<uintptr_t>(thread, layout.last_java_pc);
  sample_.last_java_fp = read_at<uintptr_t>(thread, layout.last_java_fp);
  std::memcpy(sample_.registers, request.context->uc_mcontext.gregs, sizeof sample_.registers);
  sample_.at_safepoint = sample_.sandwiched = false;
  sample_.shadow_state = request.shadow_state;
  sample_.shadow_owner = request.shadow == nullptr ? ShadowStack::kNobody : request.shadow->owner;
  sample_.shadow_depth = request.shadow == nullptr ? 0 : request.shadow->copy(shadow_);
  sample_.shadow_count =
      static_cast<uint32_t>(std::min<size_t>(sample_.shadow_depth, shadow_.size()));
  WalkRecord& walk = sample_.walk;
  walk.walker = request.walker;
  walk.depth = setup_.depth;
  walk.options = 0;
  walk.thread_state = read_at<uint32_t>(thread, layout.state);
}

void WalkSlot::note_walking(uint32_t rewalks) {
  WalkingRecord& record = *walking_;
  record.tid = static_cast<uint32_t>(sample_.tid);
  record.walker = static_cast<uint32_t>(sample_.walk.walker);
  record.mode = static_cast<uint32_t>(setup_.mode);
  record.depth = sample_.walk.depth;
  record.rewalks = rewalks;
  record.thread_state = sample_.walk.thread_state;
  record.stack_base = sample_.stack_base;
  record.stack_end = sample_.stack_end;
  record.last_java_sp = sample_.last_java_sp;
  record.last_java_pc = sample_.last_java_pc;
  record.last_java_fp = sample_.last_java_fp;
  record.java_thread = reinterpret_cast<uint64_t>(sample_.java_thread);
  std::memcpy(record.registers, sample_.registers, sizeof record.registers);
  std::atomic_ref(record.number).store(sample_.number, std::memory_order_release);
}

size_t WalkSlot::copy_stack(std::byte* to, size_t most) const {
  const uintptr_t sp = sample_.sp();
  if (sp < sample_.stack_end || sp >= sample_.stack_base) return 0;
  const size_t size = std::min<size_t>(sample_.stack_base - sp, most);
  std::memcpy(to, reinterpret_cast<const void*>(sp), size);
  return size;
}

void WalkSlot::copy_window() {
  sample_.stack_bytes = static_cast<uint32_t>(copy_stack(window_.data(), kStackWindow));
}

void WalkSlot::walk(const WalkRequest& request) {
  note_thread(request);
  WalkRecord& record = sample_.walk;
  const Walker& walker = *walkers_[static_cast<size_t>(request.walker)];
  FrameBuffer& buffer = *buffers_[static_cast<size_t>(request.walker)];
  const WalkView view = {record, subject_.of(sample_, walker)};
  record.last_java_pc = view.subject.victim->last_java_pc(setup_.jvm->layout());
  record.buffer = &buffer;
  record.expected_context = &expected_;
  copy_context(*request.context, &expected_);
  asked_ = {};
  rewalk_count_ = rewalk_used_ = 0;
  rewalk_went_wrong_ = vm_went_on_ = false;
  stack_size_ = 0;

  mask_ = signals::mask();
  note_walking(0);
  watch_.take();
  run(request, FurtherWalk::again(view), buffer.place(setup_.depth), &record, &incidents_);
  sample_.suspicious =
      record.result > record.depth || setup_.oracles->suspect(view, setup_.oracles->offered());
  sample_.frame_bytes = static_cast<uint32_t>(record.frame_count() * walker.layout().stride);
  const bool odd =
      request.again && !request.costly && !sample_.suspicious && !is_alike_again(request, view);
  sample_.costly = request.costly || odd;
  if (sample_.costly && !sample_.suspicious && !rewalk_went_wrong_) rewalk_all(request, view);
  std::atomic_ref(walking_->number).store(0, std::memory_order_release);
  if (sample_.costly || sample_.suspicious) stack_size_ = copy_stack(stack_, kMaxStackCopy);
  watch_.give_back();
}

void WalkSlot::resolve_methods() {
  const auto resolve = [this](const WalkRecord& record) {
    // The buffers are the slot's own.
    walkers_[static_cast<size_t>(record.walker)]->resolve_methods(
        const_cast<std::byte*>(record.frames), record.frame_count());
  };
  resolve(sample_.walk);
  for (const Rewalk& made : rewalks()) resolve(made.record);
}

bool WalkSlot::offers(const FurtherWalk& walk) const {
  return walk.place == FurtherWalk::Place::same && walk.depth <= setup_.depth &&
         walkers_[static_cast<size_t>(walk.walker)] != nullptr;
}

// Walks once more and keeps the answer; false when that walk went wrong.
bool WalkSlot::rewalk(const WalkRequest& request, const WalkView& first, const FurtherWalk& walk) {
  Rewalk& again = rewalks_[rewalk_count_];
  note_walking(static_cast<uint32_t>(rewalk_count_) + 1);
  ++rewalk_count_;
  again.walk = walk;
  again.record = sample_.walk;
  again.record.buffer = nullptr;
  std::byte* const frames = rewalk_memory_.data() + rewalk_used_;
  run(request, walk, frames, &again.record, &rewalk_incidents_);
  const Walker& walker = *walkers_[static_cast<size_t>(walk.walker)];
  rewalk_used_ += (static_cast<size_t>(walk.depth) * walker.layout().stride + 15) & ~size_t{15};
  Subject subject = first.subject;
  subject.walker = &walker;
  rewalk_went_wrong_ =
      again.record.end != WalkEnd::returned ||
      setup_.oracles->suspect({again.record, subject}, further_needs(*setup_.oracles));
  // What is wrong with the last one stays; the next one is made where this one was.
  if (!rewalk_went_wrong_) again.record.keep_only(frames);
  return !rewalk_went_wrong_;
}

// Makes the same walk once more. False when it differs, or went wrong: then it is kept.
bool WalkSlot::is_alike_again(const WalkRequest& request, const WalkView& view) {
  const WalkRecord& first = view.record;
  const bool returned = rewalk(request, view, FurtherWalk::again(view));
  const WalkRecord& second = rewalks_.front().record;
  if (!returned || first.result != second.result ||
      !same_frames(view.subject.walker->layout(), first.frames, second.frames,
                   first.frame_count())) {
    return false;
  }
  rewalk_count_ = rewalk_used_ = 0;
  return true;
}

// The walks that the oracles will ask for, and first of all the same again: whether the VM went on
// is told by it.
void WalkSlot::rewalk_all(const WalkRequest& request, const WalkView& view) {
  const FurtherWalk again = FurtherWalk::again(view);
  asked_.add(again);
  setup_.oracles->ask(view, &asked_);
  for (const FurtherWalk& walk : asked_.all()) {
    const bool is_made = rewalk_count_ != 0 && walk == rewalks_.front().walk;
    if (!is_made && offers(walk) && !rewalk(request, view, walk)) return;
  }
  see_whether_vm_went_on(request, view, again);
}

void WalkSlot::see_whether_vm_went_on(const WalkRequest& request, const WalkView& view,
                                      const FurtherWalk& walk) {
  const WalkRecord& first = view.record;
  const Walker& own = *view.subject.walker;
  // By same_frames or its like.
  const auto alike = [&](const WalkRecord& one, const WalkRecord& other, auto compare) {
    return one.result == other.result &&
           compare(own.layout(), one.frames, other.frames, one.frame_count());
  };
  const auto same = [&](const WalkRecord& one, const WalkRecord& other) {
    return alike(one, other, same_frames);
  };
  // A safepoint may begin and end meanwhile: what walkers say of one is no answer of theirs.
  const bool refused = refuses_for_vm(own, first.result);
  vm_went_on_ = std::ranges::any_of(rewalks(), [&](const Rewalk& made) {
    return made.walk.walker == walk.walker && refuses_for_vm(own, made.record.result) != refused;
  });
  if (vm_went_on_) return;
  const WalkRecord& second = rewalks_.front().record;
  FurtherWalk once_more = walk;
  ++once_more.number;
  if (!rewalk(request, view, once_more)) return;
  const WalkRecord& last = rewalks().back().record;
  if (same(first, last)) return;
  // A safepoint waits for a thread in Java: what changes there is the walker's doing.
  if (!is_outside_java(first.thread_state)) return;
  // A redefinition goes on from class to class while threads stand at its safepoint.
  vm_went_on_ = alike(first, last, lost_methods);
  if (vm_went_on_) return;
  ++once_more.number;
  if (!rewalk(request, view, once_more)) return;
  vm_went_on_ = same(last, rewalks().back().record) && (same(second, first) || same(second, last));
}

}  // namespace framestorm::stress
