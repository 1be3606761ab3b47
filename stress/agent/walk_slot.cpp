#include "stress/agent/walk_slot.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

// errno before each walk: a value no call sets.
constexpr int kErrnoMarker = 0x5a5a;

// A fault of the last walk that the VM dealt with by itself.
bool vm_contained(const Walker& walker, int32_t result, const FaultRecord& fault) {
  const WalkFacts* const facts = walker.facts();
  return result == walker.contained_error() || (facts != nullptr && facts->contained_faults > 0) ||
         fault.end == WalkEnd::fault;
}

bool refuses_for_vm(const Walker& walker, int32_t result) {
  if (result > 0) return false;
  const std::string_view name = walker.error_name(result);
  return name == "GC_active" || name == "unsafe_state";
}

}  // namespace

std::string_view name_of(LostCause cause) {
  constexpr std::string_view kNames[kLostCauses] = {
      "timer-overrun",   "signals-blocked", "thread-exiting", "late-handler", "halt-timeout",
      "buffer-full",     "unjudged",        "not-java",       "throttled",    "waiting",
      "creating-thread", "stack-too-small", "no-timer"};
  return kNames[static_cast<size_t>(cause)];
}

struct WalkSlot::Call {
  Walker* walker;
  const WalkTarget* target;
  std::byte* frames;
  int32_t depth;
  ucontext_t* context;
  int32_t result;
};

WalkSlot::WalkSlot(const WalkSetup& setup, WalkingRecord* walking)
    : setup_(setup), walking_(walking) {
  std::vector<WalkerId> all = setup.comparable;
  all.insert(all.end(), setup.walkers.begin(), setup.walkers.end());
  size_t largest = 0;
  for (const WalkerId id : all) {
    const auto index = static_cast<size_t>(id);
    if (walkers_[index] != nullptr) continue;
    if (id == WalkerId::plugin) {
      walkers_[index] = setup.plugin.get();
    } else {
      // Adapters keep what their last walk said: one of each for every slot.
      owned_.push_back(make_walker(id, *setup.jvm));
      walkers_[index] = owned_.back().get();
    }
    const size_t stride = walkers_[index]->layout().stride;
    buffers_[index] = std::make_unique<FrameBuffer>(stride, setup.depth);
    largest = std::max(largest, stride);
  }
  rewalk_memory_.resize(kMaxRewalks * static_cast<size_t>(setup.depth) * largest);
  void* const stack = mmap(nullptr, kMaxStackCopy, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping a slot's stack copy");
  }
  stack_ = static_cast<std::byte*>(stack);
}

WalkSlot::~WalkSlot() { munmap(stack_, kMaxStackCopy); }

void WalkSlot::invoke(void* arg) {
  auto* call = static_cast<Call*>(arg);
  call->result = call->walker->walk(*call->target, call->frames, call->depth, call->context);
}

WalkEnd WalkSlot::run(Walker* walker, WalkTarget* target, int32_t depth, std::byte* frames,
                      bool borrow_identity, FaultRecord* fault, UnsafeCalls* unsafe,
                      int32_t* result) {
  Call call = {walker, target, frames, depth, &context_, 0};
  SanitizerReports* const reports = fault == &fault_ ? &reports_ : &rewalk_reports_;
  const auto contained = [&] {
    if (setup_.strict) {
      fault->end = WalkEnd::returned;
      unsafe->count = 0;
      reports->count = 0;
      invoke(&call);
      return WalkEnd::returned;
    }
    const auto marks = setup_.residue->read(target->java_thread);
    const WalkEnd end = Guard::call(&WalkSlot::invoke, &call, fault, unsafe, reports);
    if (end != WalkEnd::returned) setup_.residue->restore(target->java_thread, marks);
    return end;
  };
  WalkEnd end = WalkEnd::returned;
  if (borrow_identity && walker->borrows_identity()) {
    const ThreadIdentity::Scoped as_target(setup_.jvm->identity(), target->java_thread);
    end = contained();
  } else {
    end = contained();
  }
  *result = call.result;
  return end;
}

void WalkSlot::note_thread(const WalkRequest& request) {
  const ThreadLayout& layout = setup_.jvm->layout();
  const void* const thread = request.target.java_thread;
  sample_.number = request.number;
  sample_.thread = request.thread;
  sample_.tid = request.target.tid;
  sample_.walker = request.walker;
  sample_.costly = request.costly;
  sample_.depth = setup_.depth;
  sample_.options = 0;
  sample_.java_thread = request.target.java_thread;
  sample_.jni_env = request.target.jni_env;
  sample_.stack_base = request.target.stack_base;
  sample_.stack_end = request.target.stack_end;
  sample_.thread_state = read_at<uint32_t>(thread, layout.state);
  sample_.last_java_sp = read_at<uintptr_t>(thread, layout.last_java_sp);
  sample_.last_java_pc = read_at<uintptr_t>(thread, layout.last_java_pc);
  sample_.last_java_fp = read_at<uintptr_t>(thread, layout.last_java_fp);
  std::memcpy(sample_.registers, request.context->uc_mcontext.gregs, sizeof sample_.registers);
}

void WalkSlot::note_walking(uint32_t rewalks) {
  WalkingRecord& record = *walking_;
  record.tid = static_cast<uint32_t>(sample_.tid);
  record.walker = static_cast<uint32_t>(sample_.walker);
  record.mode = static_cast<uint32_t>(setup_.mode);
  record.depth = sample_.depth;
  record.rewalks = rewalks;
  record.thread_state = sample_.thread_state;
  record.stack_base = sample_.stack_base;
  record.stack_end = sample_.stack_end;
  record.last_java_sp = sample_.last_java_sp;
  record.last_java_pc = sample_.last_java_pc;
  record.last_java_fp = sample_.last_java_fp;
  record.java_thread = reinterpret_cast<uint64_t>(sample_.java_thread);
  std::memcpy(record.registers, sample_.registers, sizeof record.registers);
  std::atomic_ref(record.number).store(sample_.number, std::memory_order_release);
}

void WalkSlot::copy_stack() {
  const uintptr_t sp = sample_.sp();
  stack_size_ = 0;
  if (sp < sample_.stack_end || sp >= sample_.stack_base) return;
  stack_size_ = std::min<size_t>(sample_.stack_base - sp, kMaxStackCopy);
  std::memcpy(stack_, reinterpret_cast<const void*>(sp), stack_size_);
}

void WalkSlot::copy_window() {
  const uintptr_t sp = sample_.sp();
  sample_.stack_bytes = 0;
  if (sp < sample_.stack_end || sp >= sample_.stack_base) return;
  const size_t size = std::min<size_t>(sample_.stack_base - sp, kStackWindow);
  std::memcpy(window_.data(), reinterpret_cast<const void*>(sp), size);
  sample_.stack_bytes = static_cast<uint32_t>(size);
}

void WalkSlot::walk(const WalkRequest& request) {
  note_thread(request);
  copy_context(*request.context, &expected_);
  copy_context(expected_, &context_);
  Walker* const walker = walkers_[static_cast<size_t>(request.walker)];
  FrameBuffer& buffer = *buffers_[static_cast<size_t>(request.walker)];
  frames_ = buffer.place(setup_.depth);
  rewalk_count_ = rewalk_used_ = 0;
  rewalk_went_wrong_ = vm_went_on_ = false;
  stack_size_ = 0;
  WalkTarget target = request.target;
  target.options = 0;
  sigset_t mask_before;
  if (request.costly) pthread_sigmask(SIG_BLOCK, nullptr, &mask_before);

  note_walking(0);
  watch_.take();
  errno = kErrnoMarker;
  sample_.time_ns = monotonic_ns();
  sample_.end = run(walker, &target, setup_.depth, frames_, request.borrow_identity, &fault_,
                    &unsafe_, &sample_.result);
  sample_.walk_ns = monotonic_ns() - sample_.time_ns;
  sample_.errno_after = errno;

  sample_.mask_changed = false;
  if (request.costly) {
    sigset_t mask_after;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_after);
    sample_.mask_changed = std::memcmp(&mask_before, &mask_after, 8) != 0;
  }
  const WalkFacts* const facts = walker->facts();
  sample_.has_facts = facts != nullptr;
  if (facts != nullptr) sample_.facts = *facts;
  const bool returned = sample_.end == WalkEnd::returned;
  sample_.context_changed = !same_context(context_, expected_);
  sample_.suspicious = !returned || vm_contained(*walker, sample_.result, fault_) ||
                       unsafe_.count > 0 || reports_.count > 0 || sample_.result > sample_.depth ||
                       sample_.errno_after != kErrnoMarker || sample_.context_changed ||
                       sample_.mask_changed || !buffer.canary_intact(frames_);
  const int32_t count = returned ? std::clamp(sample_.result, 0, sample_.depth) : 0;
  sample_.frame_bytes = static_cast<uint32_t>(static_cast<size_t>(count) * walker->layout().stride);
  if (request.costly && returned && !sample_.suspicious) rewalk_all(request);
  std::atomic_ref(walking_->number).store(0, std::memory_order_release);
  if (request.costly || sample_.suspicious) copy_stack();
  watch_.give_back();
}

// Walks once more and keeps the answer; false when that walk went wrong.
bool WalkSlot::rewalk(const WalkRequest& request, WalkerId id, int32_t depth, uint32_t options) {
  if (rewalk_count_ == kMaxRewalks) return false;
  Walker* const walker = walkers_[static_cast<size_t>(id)];
  Rewalked& again = rewalks_[rewalk_count_];
  note_walking(static_cast<uint32_t>(rewalk_count_) + 1);
  again.walker = id;
  again.depth = depth;
  again.options = options;
  again.frames = rewalk_used_;
  copy_context(expected_, &context_);
  WalkTarget target = request.target;
  target.options = options;
  // Of the slot's own frames the first walk's are kept where they are.
  std::byte* const frames = rewalk_memory_.data() + rewalk_used_;
  again.end = run(walker, &target, depth, frames, request.borrow_identity, &rewalk_fault_,
                  &rewalk_unsafe_, &again.result);
  again.has_facts = walker->facts() != nullptr;
  if (again.has_facts) again.facts = *walker->facts();
  ++rewalk_count_;
  const auto room = static_cast<size_t>(depth) * walker->layout().stride;
  rewalk_used_ += (room + 15) & ~size_t{15};
  rewalk_went_wrong_ = again.end != WalkEnd::returned || rewalk_unsafe_.count > 0 ||
                       rewalk_reports_.count > 0 ||
                       vm_contained(*walker, again.result, rewalk_fault_);
  return !rewalk_went_wrong_;
}

// The walks that determinism, prefix, options and agreement will ask for, see harness/oracles.
void WalkSlot::rewalk_all(const WalkRequest& request) {
  const WalkerId own = request.walker;
  const uint32_t known = traits_of(own).options;
  if (!rewalk(request, own, sample_.depth, 0)) return;
  if (sample_.result >= 2 && !rewalk(request, own, sample_.result / 2, 0)) return;
  if (known != 0) {
    if (!rewalk(request, own, sample_.depth, ~(known | kWalkSameThread))) return;
    if (!rewalk(request, own, sample_.depth, kIncludeCFrames)) return;
  }
  for (const WalkerId other : setup_.comparable) {
    if (other != own && !rewalk(request, other, sample_.depth, 0)) return;
  }
  see_whether_vm_went_on(request);
}

void WalkSlot::see_whether_vm_went_on(const WalkRequest& request) {
  const FrameLayout& layout = walkers_[static_cast<size_t>(request.walker)]->layout();
  struct Seen {
    int32_t result;
    const std::byte* frames;
  };
  const auto again = [&](size_t index) {
    return Seen{rewalks_[index].result, rewalk_frames(rewalks_[index])};
  };
  // By same_frames or its like.
  const auto alike = [&](const Seen& one, const Seen& other, auto compare) {
    const int32_t count = std::clamp(one.result, 0, sample_.depth);
    return one.result == other.result &&
           compare(layout, one.frames, other.frames, static_cast<size_t>(count));
  };
  const auto same = [&](const Seen& one, const Seen& other) {
    return alike(one, other, same_frames);
  };
  // A safepoint may begin and end meanwhile: what walkers say of one is no answer of theirs.
  const Walker& own = *walkers_[static_cast<size_t>(request.walker)];
  const bool refused = refuses_for_vm(own, sample_.result);
  vm_went_on_ = std::ranges::any_of(rewalks(), [&](const Rewalked& made) {
    return made.walker == request.walker && refuses_for_vm(own, made.result) != refused;
  });
  if (vm_went_on_) return;
  const Seen first = {sample_.result, frames_};
  const Seen second = again(0);
  if (!rewalk(request, request.walker, sample_.depth, 0)) return;
  const Seen last = again(rewalk_count_ - 1);
  if (same(first, last)) return;
  // A redefinition goes on from class to class while threads stand at its safepoint.
  vm_went_on_ = is_outside_java(sample_.thread_state) && alike(first, last, lost_methods);
  if (vm_went_on_) return;
  if (!rewalk(request, request.walker, sample_.depth, 0)) return;
  vm_went_on_ = same(last, again(rewalk_count_ - 1)) && (same(second, first) || same(second, last));
}

}  // namespace framestorm::stress
