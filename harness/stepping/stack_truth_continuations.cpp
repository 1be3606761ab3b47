// What a StackTruth knows of threads whose frames go to the heap and come back.
#include "harness/stepping/stack_truth.h"

namespace framestorm::stepping {
namespace {

bool is_named(const Blob* blob, std::string_view name) {
  return blob != nullptr && blob->entry.name == name;
}

}  // namespace

void StackTruth::leave_base() {
  if (!on_carrier_) {
    base_sp_ = activations_.front().slot;
    due_ = activations_.front().return_to;
    activations_.clear();
    below_.clear();
    knowledge_ = base_.empty() ? Knowledge::outside : Knowledge::waiting;
    start(now_);
    return;
  }
  waiting_ = activations_;
  waiting_below_ = below_;
  knowledge_ = Knowledge::outside;
}

// Back from a yield, on a stack that may begin elsewhere. All calls of the interpreter return to the
// same few addresses: there the frame has to be the caller's.
bool StackTruth::come_back() {
  if (waiting_.size() < 2 || waiting_.back().return_to != now_.at.pc) return false;
  const Activation& ended = waiting_.back();
  const uintptr_t moved = before_.at.sp - ended.slot;
  if (waiting_.front().slot + moved >= stack_base_) return false;
  if (now_.blob != nullptr && now_.blob->role == Role::interpreter) {
    if (now_.at.fp != ended.caller_fp + moved || waiting_below_.empty() ||
        id_of(interpreted_frame(now_.at.fp).method) != waiting_below_.back().method) {
      return false;
    }
  }
  activations_ = waiting_;
  below_ = waiting_below_;
  move(moved);
  cut(activations_.size() - 1);
  knowledge_ = Knowledge::known;
  return true;
}

void StackTruth::move(uintptr_t distance) {
  for (Activation& one : activations_) {
    one.slot += distance;
    one.caller_fp += distance;
    if (one.caller_sp != 0) one.caller_sp += distance;
  }
}

// Right above what has entered the continuation, and not where it was when frames that are over stood there.
void StackTruth::move_with_caller(const Activation& ended) {
  move(is_interpreted(now_.blob) ? now_.at.fp - ended.caller_fp
                                 : now_.at.sp - sizeof(uintptr_t) - ended.slot);
}

// A yield: sp is that of what has entered the continuation.
bool StackTruth::freezes() const {
  return now_.at.sp > activations_.back().slot &&
         (is_named(now_.blob, "jdk/internal/vm/Continuation.doYield") ||
          is_named(now_.blob, "cont_preempt"));
}

// The thread is the carrier of a virtual thread that it has entered (Continuation.enterSpecial). Its
// frames are frozen: sp is the entry's again; or they are thawed, and run, which nothing has called
// here.
bool StackTruth::enters_frames_of_the_heap() {
  if (knowledge_ != Knowledge::known || now_.blob == nullptr) return false;
  // The stub goes to the innermost of them: sp rises by more than a word.
  const bool thawed = before_.blob == now_.blob && is_named(now_.blob, "cont_thaw") &&
                      now_.at.sp > before_.at.sp + sizeof(uintptr_t);
  if (!freezes() && !thawed) return false;
  for (size_t i = activations_.size(); i-- > 1;) {
    if (!is_named(activations_[i].caller, "jdk/internal/vm/Continuation.enterSpecial")) continue;
    mounted_ = i;
    return true;
  }
  return false;
}

// Until the entry's frame is back, or what has called it: a yield returns for both.
void StackTruth::follow_continuation() {
  const size_t entered = mounted_;
  const bool over = now_.at.sp > activations_[entered - 1].slot;
  const bool back =
      now_.blob == activations_[entered].caller && now_.at.sp > activations_[entered].slot;
  if (!over && !back) return;
  mounted_ = 0;
  knowledge_ = Knowledge::known;
  cut(entered);
  if (!over) return;
  if (entered == 1) {
    leave_base();
  } else {
    cut(entered - 1);
  }
}

bool StackTruth::returns_to_barrier(const Activation& one) {
  if (one.slot < now_.at.sp) return false;
  const uintptr_t return_to = *reinterpret_cast<const uintptr_t*>(one.slot);
  if (return_to == one.return_to) return false;
  const Blob* const patched = catalog_.at(return_to);
  return patched != nullptr && patched->role == Role::return_barrier;
}

}  // namespace framestorm::stepping
