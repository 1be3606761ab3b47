// Which frames a StackTruth expects of a walk here.
#include <algorithm>

#include "harness/stepping/stack_truth.h"

namespace framestorm::stepping {
namespace {

// No walk is asked for more.
constexpr size_t kMostExpected = 2048;

void place(std::span<TrueFrame> frames, uintptr_t pc, uintptr_t sp, uintptr_t extended_sp) {
  for (TrueFrame& frame : frames) {
    frame.pc = pc;
    frame.sp = sp;
    frame.extended_sp = extended_sp;
  }
}

// It only jumps on, and has no frame (MethodHandles::generate_method_handle_dispatch).
bool is_method_handles(const Blob& blob) {
  return blob.entry.name.starts_with("java/lang/invoke/MethodHandle.");
}

}  // namespace

bool TrueFrame::stands_at(const Frame& frame) const {
  if (pc == 0 || frame.pc == 0) return true;
  return frame.pc == pc && (sp == 0 || frame.sp == 0 || frame.sp == sp || frame.sp == extended_sp);
}

// Of a call: the register has something else once a method is called, which the frame keeps it for.
int32_t StackTruth::bci_of(const InterpretedFrame& frame, uintptr_t bcp) const {
  if (frame.method == nullptr) return kAnyBci;
  const auto code = read_at<uintptr_t>(frame.method, const_method_) + const_method_size_;
  const auto size =
      read_at<uint16_t>(read_at<const void*>(frame.method, const_method_), code_size_);
  for (const uintptr_t pointer : {bcp, frame.bcp}) {
    if (pointer >= code && pointer - code < size) return static_cast<int32_t>(pointer - code);
  }
  return kAnyBci;
}

std::vector<TrueFrame> StackTruth::interpreted(const Place& place, bool calls) {
  const Activation& running = activations_.back();
  if (frame_stands(place)) {
    const InterpretedFrame frame = interpreted_frame(place.at.fp);
    return {{.method = id_of(frame.method),
             .bci = bci_of(frame, place.at.bcp),
             // What is called may leave the register as it is, or not; the frame has an older one.
             .exact = !calls && !leaves_frame(*place.blob)}};
  }
  // In the frame of the caller: this one is not made yet, or it is taken down.
  if (running.method == nullptr && !running.unnamed) return {};
  return {{.sort = TrueFrame::Sort::optional,
           .method = running.method,
           .bci = running.has_stood ? kAnyBci : 0,
           .exact = true}};
}

std::vector<TrueFrame> StackTruth::own(const Place& place, uintptr_t return_to) {
  const Activation& running = activations_.back();
  if (!running.frames.empty()) return running.frames;
  if (place.blob == nullptr) return {};
  const CodeEntry& entry = place.blob->entry;
  switch (place.blob->role) {
    case Role::interpreter:
      return interpreted(place, /*calls=*/return_to != 0);
    case Role::native_wrapper:
      return {{.sort = is_method_handles(*place.blob) ? TrueFrame::Sort::optional
                                                      : TrueFrame::Sort::frame,
               .method = entry.debug->method(),
               .may_have_no_id = is_method_handles(*place.blob)}};
    case Role::compiled: {
      if (is_in_call_stub(place)) return {};
      std::vector<TrueFrame> frames;
      if (return_to != 0) {
        for (const auto& frame : entry.debug->at(return_to)) {
          frames.push_back({.method = frame.method, .bci = frame.bci});
        }
        if (!frames.empty()) return frames;
      }
      const bool entering = place.at.pc < entry.verified_entry;
      frames.push_back({.sort = TrueFrame::Sort::inlined, .code = entry.debug.get()});
      frames.push_back({.sort = entering ? TrueFrame::Sort::optional : TrueFrame::Sort::frame,
                        .method = entry.debug->method()});
      return frames;
    }
    case Role::adapter: {
      const jmethodID entered = id_of(reinterpret_cast<const void*>(place.at.method));
      if (entered == nullptr) return {};
      return {{.sort = TrueFrame::Sort::optional, .method = entered, .bci = 0, .exact = true}};
    }
    default:
      return {};
  }
}

void StackTruth::expect() {
  expected_.clear();
  has_unnamed_ = false;
  if (knowledge_ != Knowledge::known) return;
  expected_ = own(now_, 0);
  // Other frames come in the place of the innermost, or what runs goes on for the next one, or did.
  bool changes = at_deopt_handler() || !activations_.back().frames.empty() ||
                 is_deoptimisation(now_.blob) ||
                 (is_interpreted(now_.blob) && leaves_frame(*now_.blob));
  // Of a method that is being entered there is nothing yet but the return address.
  if (!changes) place(expected_, now_.at.pc, now_.at.sp, now_.at.sp - sizeof(uintptr_t));
  // The interpreter calls code of its own, too, for the same frame, which is where that has come to.
  uintptr_t comes_to = expected_.empty() && is_interpreted(now_.blob) ? now_.at.pc : 0;
  size_t end = below_.size();
  for (size_t i = activations_.size(); i-- > 0 && expected_.size() < kMostExpected;) {
    const Activation& one = activations_[i];
    if (returns_to_barrier(one)) expected_.push_back({.sort = TrueFrame::Sort::frozen});
    const size_t first = expected_.size();
    expected_.insert(expected_.end(), below_.rbegin() + static_cast<ptrdiff_t>(below_.size() - end),
                     below_.rbegin() + static_cast<ptrdiff_t>(below_.size() - one.below));
    const auto frames = std::span(expected_).subspan(first);
    if (one.caller_pc != 0 && !changes) {
      place(frames, one.in_itself && comes_to != 0 ? comes_to : one.caller_pc, one.caller_sp,
            one.slot + sizeof(uintptr_t));
    }
    if (!frames.empty()) {
      changes = false;
      comes_to = 0;
    } else if (comes_to == 0 && is_interpreted(one.caller)) {
      comes_to = one.return_to;
    }
    end = one.below;
  }
  const size_t room = kMostExpected - std::min(kMostExpected, expected_.size());
  const auto rest = below_.rbegin() + static_cast<ptrdiff_t>(below_.size() - end);
  expected_.insert(expected_.end(), rest, rest + static_cast<ptrdiff_t>(std::min(room, end)));
  has_unnamed_ = std::ranges::any_of(expected_, [](const TrueFrame& frame) {
    return frame.sort <= TrueFrame::Sort::optional && frame.method == nullptr;
  });
  if (has_unnamed_) lost_why_ = "a method that JVMTI has not told of yet";
}

}  // namespace framestorm::stepping
