#include "harness/stepping/stack_truth.h"

#include <algorithm>

namespace framestorm::stepping {
namespace {

bool is_nmethod(const Blob* blob) {
  return blob != nullptr && (blob->role == Role::compiled || blob->role == Role::native_wrapper);
}
bool is_method_entry(const Blob* blob) {
  return is_interpreted(blob) && blob->entry.name.find("method entry point") != std::string::npos;
}
// Where the return address of compiled code is, while its frame stands.
uintptr_t slot_of_compiled(uintptr_t sp, const Blob& blob) {
  return sp + blob.entry.frame_bytes - sizeof(uintptr_t);
}
uintptr_t word_at(uintptr_t address) { return *reinterpret_cast<const uintptr_t*>(address); }

// Whether both are the same activation's code, if the registers fit.
bool same_code(const Blob* a, const Blob* b) {
  return a == b || (is_interpreted(a) && is_interpreted(b));
}

}  // namespace

StackTruth::StackTruth(Jvm& jvm, CodeCatalog& catalog, const MethodVersions& versions)
    : jvm_(jvm),
      catalog_(catalog),
      versions_(versions),
      const_method_(jvm.structs().required_offset("Method", "_constMethod")),
      const_method_size_(jvm.structs().size_of("ConstMethod")),
      code_size_(jvm.structs().required_offset("ConstMethod", "_code_size")) {
  if (!jvm.methods().finds_methods()) {
    throw SetupError(jvm.library_path().string() +
                     " has no symbol table, and from JDK 26 on methods cannot be known without it");
  }
}

// A version that was replaced may have no ID that is known.
jmethodID StackTruth::id_of(const void* method) const {
  const jmethodID id = jvm_.methods().id_of(method);
  return id != nullptr ? id : versions_.first_of_method(method);
}

// One that is not known may have replaced another just now.
jmethodID StackTruth::id_of_entered(const Blob* blob, uintptr_t method) {
  const auto* const address = reinterpret_cast<const void*>(method);
  const jmethodID id = jvm_.methods().id_of(address);
  if (id != nullptr || !is_method_entry(blob)) return id;
  jvm_.methods().retake_ids();
  return id_of(address);
}

void StackTruth::begin(std::span<const DebugInfo::JavaFrame> frames, uintptr_t stack_base,
                       uintptr_t last_java_sp) {
  base_.assign(frames.rbegin(), frames.rend());
  const MethodInfo* const outermost =
      base_.empty() ? nullptr : jvm_.methods().find(base_.front().method);
  on_carrier_ = outermost != nullptr && outermost->name == "jdk/internal/vm/Continuation.enter";
  base_sp_ = last_java_sp;
  due_ = 0;
  stack_base_ = stack_base;
  knowledge_ = Knowledge::waiting;
  before_ = {};
  mounted_ = 0;
  activations_.clear();
  waiting_.clear();
  below_.clear();
}

bool StackTruth::Activation::returns_to(uintptr_t address) const {
  return address == return_to || (caller != nullptr && caller->role == Role::compiled &&
                                  caller->entry.deopt_handler == address);
}

Section StackTruth::section() const {
  return CodeCatalog::section_of(now_.blob, now_.at.pc, frame_stands(now_));
}

void StackTruth::advance(const Registers& now) {
  before_ = now_;
  now_ = {.at = now, .blob = catalog_.at(now.pc, /*runs=*/true), .flow = flow_at(now.pc)};
  if (knowledge_ == Knowledge::waiting) {
    start(now_);
  } else if (mounted_ != 0) {
    follow_continuation();
  } else if (is_out_of_base()) {
    leave_base();
  } else if (enters_frames_of_the_heap()) {
    knowledge_ = Knowledge::outside;
  } else if (before_.flow == Flow::call && now.sp == before_.at.sp - sizeof(uintptr_t) &&
             *return_slot(now) - before_.at.pc <= kLongestInstruction) {
    push(before_, now.sp, *return_slot(now), /*implicit=*/false);
  } else if (before_.flow == Flow::ret) {
    follow_return();
  } else {
    follow_jump();
  }
  if (knowledge_ == Knowledge::known && (is_unknown(now_) || activations_.back().unknown)) {
    lose("code that JVMTI has not told of yet");
    while (activations_[lost_in_].unknown) --lost_in_;
  }
  expect();
}

void StackTruth::advance_past_call(const Registers& now) {
  now_.at.sp = now.sp - sizeof(uintptr_t);
  now_.flow = Flow::ret;
  advance(now);
}

// A frame that is deoptimised is taken down before interpreted ones stand there. Callers in the heap are taken to
// stand deeper than a yield goes; it comes back from a call of the VM before it does.
bool StackTruth::is_out_of_base() const {
  if (activations_.empty()) return false;
  const bool yields = on_carrier_ && before_.flow != Flow::ret && freezes();
  return (now_.at.sp > activations_.front().slot || yields) &&
         (knowledge_ == Knowledge::known || !on_carrier_) && !is_deoptimisation(now_.blob);
}

size_t StackTruth::base_frames_at(const Place& place) const {
  if (place.blob == nullptr || base_.empty() || place.at.sp < base_sp_) return 0;
  if (place.blob->role == Role::compiled) {
    const auto here = place.blob->entry.debug->at(place.at.pc);
    const bool fits =
        here.size() <= base_.size() && std::equal(here.begin(), here.end(), base_.rbegin());
    return fits ? here.size() : 0;
  }
  // The interpreter leaves a native method by a jump, still in that method's codelet.
  if (!is_interpreted(place.blob) || is_method_entry(place.blob) || place.at.fp <= place.at.sp ||
      place.at.fp >= stack_base_) {
    return 0;
  }
  return id_of(interpreted_frame(place.at.fp).method) == base_.back().method ? 1 : 0;
}

void StackTruth::start(const Place& place) {
  while (!base_.empty() && base_.back().bci < 0) base_.pop_back();
  if (due_ != 0 && place.at.pc != due_) {
    if (!is_interpreted(place.blob)) knowledge_ = Knowledge::outside;
    return;
  }
  due_ = 0;
  const size_t count = base_frames_at(place);
  if (count == 0) {
    const bool of_java =
        place.blob != nullptr && (place.blob->role == Role::compiled ||
                                  (is_interpreted(place.blob) && !is_method_entry(place.blob)));
    if (of_java && place.at.sp >= base_sp_) knowledge_ = Knowledge::outside;
    return;
  }
  const jmethodID innermost = base_.back().method;
  base_.resize(base_.size() - count);
  below_.clear();
  if (on_carrier_) below_.push_back({.sort = TrueFrame::Sort::carrier});
  for (const auto& frame : base_) below_.push_back({.method = frame.method, .bci = frame.bci});
  Activation first;
  first.below = below_.size();
  if (is_nmethod(place.blob)) {
    first.slot = slot_of_compiled(place.at.sp, *place.blob);
    first.return_to = word_at(first.slot);
  } else {
    const InterpretedFrame frame = interpreted_frame(place.at.fp);
    first.slot = frame.return_slot;
    first.return_to = frame.return_address;
    first.caller_fp = frame.caller_fp;
    first.has_stood = true;
    first.method = innermost;
  }
  activations_.push_back(std::move(first));
  knowledge_ = Knowledge::known;
}

void StackTruth::push(const Place& caller, uintptr_t slot, uintptr_t return_to, bool implicit) {
  if (knowledge_ == Knowledge::outside) return;
  // An interpreted frame that is being left is gone once something is called from its caller's.
  if (Activation& running = activations_.back();
      activations_.size() > 1 && is_interpreted(caller.blob) && running.has_stood &&
      caller.at.fp == running.caller_fp && is_interpreted(running.caller)) {
    cut(activations_.size() - 1);
  }
  Activation next;
  next.slot = slot;
  next.return_to = return_to;
  next.caller_fp = caller.at.fp;
  next.caller = caller.blob;
  next.below = below_.size();
  next.implicit = implicit;
  next.entered = now_.at.pc;
  next.unknown = is_unknown(caller) || activations_.back().unknown;
  if (!implicit) place_caller(&next);
  const std::vector<TrueFrame> frames = own(caller, return_to);
  below_.insert(below_.end(), frames.rbegin(), frames.rend());
  activations_.push_back(std::move(next));
}

void StackTruth::place_caller(Activation* one) const {
  const Blob* const caller = one->caller;
  if (is_interpreted(caller)) {
    const bool in_codelet = one->entered >= caller->entry.begin && one->entered < caller->entry.end;
    one->in_itself = in_codelet || (is_interpreted(now_.blob) && !is_method_entry(now_.blob));
    if (!leaves_frame(*caller)) one->caller_pc = one->return_to;
  } else if (is_nmethod(caller) && (caller->role == Role::native_wrapper ||
                                    !caller->entry.debug->at(one->return_to).empty())) {
    one->caller_pc = one->return_to;
    one->caller_sp = one->slot + sizeof(uintptr_t);
  }
}

void StackTruth::cut(size_t keep) {
  below_.resize(activations_[keep].below);
  activations_.resize(keep);
}

bool StackTruth::at_deopt_handler() const {
  return now_.blob != nullptr && now_.blob->deopt_handler != 0 &&
         now_.at.pc >= now_.blob->deopt_handler;
}

void StackTruth::end(size_t first, bool deoptimised) {
  std::vector<TrueFrame> frames;
  if (deoptimised) {
    const size_t count = below_.size() - activations_[first].below;
    frames.assign(below_.rbegin(), below_.rbegin() + static_cast<ptrdiff_t>(count));
  }
  cut(first);
  activations_.back().frames = std::move(frames);
}

// All calls of the interpreter return to the same few addresses.
bool StackTruth::is_in_callers_frame(const Activation& ended) const {
  return !is_interpreted(now_.blob) || now_.at.fp == ended.caller_fp;
}

void StackTruth::follow_return() {
  if (knowledge_ == Knowledge::outside) {
    come_back();
    return;
  }
  const uintptr_t slot = before_.at.sp;
  const bool from_barrier = before_.blob != nullptr && before_.blob->role == Role::return_barrier;
  // Mostly the innermost one; others when a stub has taken down more than one frame.
  for (size_t i = activations_.size(); i-- > 1;) {
    const Activation& ended = activations_[i];
    const bool thawed =
        from_barrier && knowledge_ == Knowledge::known && i + 1 == activations_.size();
    const bool expected = ended.return_to == now_.at.pc && (thawed || is_in_callers_frame(ended));
    // To where the caller goes on after a poll, or to what stands for the return address.
    const bool near = ended.implicit && ended.caller == now_.blob;
    const bool deoptimised = slot >= ended.slot && ended.caller == now_.blob && at_deopt_handler();
    const bool to_deoptimisation =
        i + 1 == activations_.size() && is_deoptimisation(now_.blob) && is_nmethod(ended.caller);
    if (!expected && !near && !deoptimised && !to_deoptimisation) continue;
    if (expected && i + 1 != activations_.size() && slot < ended.slot) continue;
    if (expected && from_barrier) move_with_caller(ended);
    end(i, deoptimised || is_deoptimisation(now_.blob));
    // Above what it was lost in not all activations were seen. Of compiled code that was told of meanwhile none
    // is missing where its own frame is that activation's.
    const bool known_again =
        i <= lost_in_ || (i == lost_in_ + 1 && is_nmethod(now_.blob) &&
                          slot_of_compiled(now_.at.sp, *now_.blob) == activations_.back().slot);
    if (knowledge_ == Knowledge::lost && known_again) knowledge_ = Knowledge::known;
    return;
  }
  follow_jump();
}

void StackTruth::follow_jump() {
  if (knowledge_ == Knowledge::lost && follow_handler()) knowledge_ = Knowledge::known;
  if (knowledge_ != Knowledge::known) return;
  Activation& running = activations_.back();
  const Registers& at = now_.at;
  if (follow_interpreter()) return;
  if (is_interpreted(now_.blob) && follow_taken_down()) return;
  const bool elsewhere = !same_code(before_.blob, now_.blob);
  // A frame that is deoptimised keeps its pc, the return address, in a slot that may be its first.
  if (elsewhere && now_.blob != nullptr && !at_deopt_handler() && at.sp != running.slot &&
      running.return_to != 0 && running.returns_to(word_at(at.sp))) {
    running.slot = at.sp;  // an adapter has made room, or has taken it back
  }
  if (elsewhere && now_.blob != nullptr && now_.blob->role == Role::stub && follow_entry_undone()) {
    return;
  }
  if (is_interpreted(now_.blob) && follow_deoptimisation()) return;
  if (is_interpreted(now_.blob) && !running.has_stood && before_.blob != now_.blob) {
    running.method = id_of_entered(now_.blob, at.method);
    running.unnamed = running.method == nullptr && is_method_entry(now_.blob);
  }
  if (is_interpreted(now_.blob) && !running.has_stood && frame_stands(now_)) {
    running.has_stood = true;
    running.method = id_of(interpreted_frame(at.fp).method);
  }
  const Blob* const blob = now_.blob;
  if (!elsewhere || blob == nullptr || follow_handler()) return;
  const Role role = blob->role;
  const bool to_stub = role != Role::compiled && role != Role::native_wrapper &&
                       role != Role::interpreter && role != Role::adapter;
  if (is_nmethod(before_.blob) && to_stub && before_.at.sp < running.slot &&
      before_.flow == Flow::other && frame_stands(before_)) {
    push(before_, at.sp, before_.at.pc, /*implicit=*/true);
  }
}

// An exception's handler in a caller. Where the truth is lost, that is the one which has called what it was lost
// in, and its frame is where it was at the call: of what has happened above it nothing is known. The interpreter
// may have come back to it from an interpreted frame that was not seen.
bool StackTruth::follow_handler() {
  const Registers& at = now_.at;
  const Blob* const blob = now_.blob;
  const bool lost = knowledge_ == Knowledge::lost;
  if (blob == nullptr || (same_code(before_.blob, blob) && !(lost && is_interpreted(blob)))) {
    return false;
  }
  for (size_t i = activations_.size(); i-- > 1;) {
    const Activation& ended = activations_[i];
    if (at.sp <= ended.slot && !ended.implicit) break;
    const bool there =
        same_code(ended.caller, blob) && ended.caller != nullptr && is_in_callers_frame(ended);
    const bool stands = is_interpreted(blob) || at.sp == ended.slot + sizeof(uintptr_t);
    if (!there || (lost && (i != lost_in_ || !stands))) continue;
    // The interpreter returns by a jump, to what stands for the return address as well.
    end(i, at_deopt_handler());
    return true;
  }
  return false;
}

// The interpreter calls by pushing a return address and jumping, and returns by popping and jumping
// (InterpreterMacroAssembler::jump_from_interpreted, TemplateTable::_return).
bool StackTruth::follow_interpreter() {
  const Registers& at = now_.at;
  if (activations_.size() > 1 && at.pc == activations_.back().return_to &&
      is_in_callers_frame(activations_.back())) {
    end(activations_.size() - 1, at_deopt_handler());
    return true;
  }
  const bool enters = now_.blob != nullptr && now_.blob != before_.blob &&
                      (now_.blob->role == Role::adapter || is_method_entry(now_.blob));
  if (!enters || !is_interpreted(before_.blob) || !frame_stands(before_)) return false;
  if (!is_interpreted(catalog_.at(*return_slot(now_.at)))) return false;
  push(before_, at.sp, *return_slot(now_.at), /*implicit=*/false);
  Activation& callee = activations_.back();
  callee.method = id_of_entered(now_.blob, at.method);
  callee.unnamed = callee.method == nullptr && is_method_entry(now_.blob);
  return true;
}

// An exception, or PopFrame, that no return leads out of. Nor does one lead out of what a codelet calls
// in itself, around its call of the VM, if there is one of them after that.
bool StackTruth::follow_taken_down() {
  const Registers& at = now_.at;
  for (size_t i = 1; i < activations_.size(); ++i) {
    const Activation& over = activations_[i];
    if (over.caller_fp != at.fp || !is_interpreted(over.caller)) continue;
    const CodeEntry& caller = over.caller->entry;
    const bool in_itself = over.entered >= caller.begin && over.entered < caller.end;
    const bool goes_on = before_.blob != now_.blob && !is_method_entry(now_.blob);
    if (at.sp <= over.slot && !(in_itself && goes_on)) continue;
    // PopFrame goes on in the codelet that it may have interrupted.
    if (i + 1 == activations_.size() && !in_itself && !(over.has_stood && goes_on)) return false;
    end(i, /*deoptimised=*/false);
    return true;
  }
  return false;
}

// The barrier at the entry of code that was thrown away takes the frame down and goes to a stub, as if it had
// not been entered (BarrierSetNMethod::deoptimize): the return address is on top of the stack again.
bool StackTruth::follow_entry_undone() {
  for (size_t i = activations_.size(); i-- > 1;) {
    Activation& entered = activations_[i - 1];
    if (entered.slot != now_.at.sp || !entered.returns_to(word_at(now_.at.sp))) continue;
    cut(i);
    entered.frames.clear();
    entered.has_stood = false;
    return true;
  }
  return false;
}

// Interpreted frames stand where a compiled one was.
bool StackTruth::follow_deoptimisation() {
  if (!is_deoptimisation(before_.blob)) return false;
  std::vector<TrueFrame> frames = std::move(activations_.back().frames);
  activations_.back().frames.clear();
  if (frames.empty() && activations_.size() > 1) {
    const size_t from = activations_.back().below;
    frames.assign(below_.rbegin(), below_.rbegin() + static_cast<ptrdiff_t>(below_.size() - from));
    cut(activations_.size() - 1);
    activations_.back().frames.clear();  // of the code that has called this blob
  }
  if (frames.empty()) {
    lose("deoptimised frames of code without debug information");
    return true;
  }
  // An exception's way there tells of no place with debug information, and so not what is inlined. All of
  // it returns to where the compiled frame did.
  const bool counted = std::ranges::none_of(
      frames, [](const TrueFrame& frame) { return frame.sort == TrueFrame::Sort::inlined; });
  std::vector<InterpretedFrame> found;
  std::vector<uintptr_t> pointers;
  const auto is_all = [&] {
    return counted ? found.size() == frames.size()
                   : !found.empty() && activations_.back().returns_to(found.back().return_address);
  };
  for (uintptr_t fp = now_.at.fp; !is_all(); fp = found.back().caller_fp) {
    if (fp <= now_.at.sp || fp - now_.at.sp > (size_t{1} << 20)) {
      lose("fewer interpreted frames than there were inlined ones");
      return true;
    }
    pointers.push_back(fp);
    found.push_back(interpreted_frame(fp));
  }
  const auto may_be = [this](const TrueFrame& frame, const InterpretedFrame& stands) {
    const jmethodID method = id_of(stands.method);
    return method == nullptr || frame.method == nullptr || method == frame.method;
  };
  if (counted && !std::ranges::equal(frames, found, may_be)) {
    lose("interpreted frames of other methods than those of the deoptimised frame");
    return true;
  }
  if (!counted) {
    frames.clear();
    for (const InterpretedFrame& frame : found) {
      frames.push_back({.method = id_of(frame.method), .bci = bci_of(frame, frame.bcp)});
    }
  }
  Activation& outermost = activations_.back();
  outermost.slot = found.back().return_slot;
  if (outermost.return_to != found.back().return_address) outermost.caller_pc = 0;
  outermost.return_to = found.back().return_address;
  outermost.caller_fp = found.back().caller_fp;
  outermost.has_stood = true;
  outermost.method = frames.back().method;
  for (size_t i = frames.size(); i-- > 1;) {
    Activation inner;
    inner.slot = found[i - 1].return_slot;
    inner.return_to = found[i - 1].return_address;
    inner.caller_fp = pointers[i];
    inner.caller = now_.blob;
    inner.below = below_.size();
    inner.caller_pc = inner.return_to;
    inner.has_stood = true;
    inner.method = frames[i - 1].method;
    below_.push_back(frames[i]);
    activations_.push_back(std::move(inner));
  }
  return true;
}

void StackTruth::lose(std::string_view why) {
  knowledge_ = Knowledge::lost;
  lost_why_ = why;
  lost_in_ = activations_.size() - 1;
}

bool StackTruth::frame_stands(const Place& place) const {
  if (place.blob == nullptr || activations_.empty()) return false;
  const Activation& running = activations_.back();
  if (is_interpreted(place.blob)) {
    if (place.at.fp == running.caller_fp || place.at.fp < place.at.sp + kInterpretedFrame ||
        place.at.fp >= running.slot) {
      return false;
    }
    return running.has_stood || running.returns_to(interpreted_frame(place.at.fp).return_address);
  }
  const CodeEntry& entry = place.blob->entry;
  return place.at.pc >= entry.frame_complete && place.at.sp < running.slot &&
         flow_at(place.at.pc) != Flow::ret;
}

bool StackTruth::is_unknown(const Place& place) const {
  return place.blob == nullptr && catalog_.in_code_cache(place.at.pc);
}

bool StackTruth::is_in_call_stub(const Place& place) const {
  const Activation& running = activations_.back();
  const uintptr_t stubs = place.blob->entry.stubs;
  return stubs != 0 && place.at.pc >= stubs && place.at.sp == running.slot &&
         running.caller == place.blob && running.entered >= stubs &&
         running.entered < place.blob->entry.end;
}

}  // namespace framestorm::stepping
