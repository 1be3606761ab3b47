#include "harness/walkers/iterator_sequence.h"

#include <cstring>

#include "harness/base/fixed_text.h"
#include "harness/guard/signal_table.h"
#include "harness/walkers/complaint.h"

namespace framestorm {
namespace {

// Who kept an iterator may be anywhere on the stack by the time it is used: also further down than
// it was.
template <typename Call>
[[gnu::noinline]] int from_further_down(Call call) {
  std::array<volatile char, 3072> room;
  room[0] = 0;
  const int result = call();
  room[1] = 0;
  return result;
}

[[gnu::always_inline]] inline uintptr_t this_frame() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

constexpr uint8_t kUntouched = 0xff;  // each byte of a frame that nothing was put into

// `ahead`: the Java frame that the iterator ends before, whose registers it gives; null: it gives none.
bool is_end(const ASGST_Frame& frame, const ASGST_Frame* ahead) {
  if (ahead == nullptr) return frame.type == kUntouched;
  return frame.type == ASGST_FRAME_JAVA && frame.method == nullptr && frame.pc == ahead->pc &&
         frame.sp == ahead->sp && frame.fp == ahead->fp;
}

}  // namespace

IteratorApi::IteratorApi(const Exports& exports)
    : run(exports.require("ASGST_RunWithIterator")),
      run_from_frame(exports.require("ASGST_RunWithIteratorFromFrame")),
      next(exports.require("ASGST_NextFrame")),
      rewind(exports.require("ASGST_RewindIterator")),
      state(exports.require("ASGST_State")),
      thread_state(exports.require("ASGST_ThreadState")),
      method_id(exports.require("ASGST_MethodToJMethodID")),
      places{.code_cache_begin = exports.code_cache.first,
             .code_cache_end = exports.code_cache.second,
             .handlers_return_to = signals::handlers_return_to()} {}

// One call of RunWithIterator, on the stack of who makes it.
struct IteratorSequence::Handler {
  IteratorSequence* sequence = nullptr;
  IteratorStart start;
  IteratorModel::Part part;  // its frames
  bool nested_frame = false;
  arch::RecoveryPoint outside;
  int result = 0;
  int entered = 0;
  size_t iterator = IteratorModel::kNone;
};

void IteratorSequence::begin(const IteratorStart& start, WalkFacts* facts) {
  model_.reset();
  model_.forget_last();
  start_ = start;
  facts_ = facts;
  calls_ = {};
  at_ = 0;
  depth_ = 0;
  chosen_ = nullptr;
}

void IteratorSequence::run(std::span<const IteratorCall> calls, int result) {
  calls_ = calls;
  result_ = result;
  thread_state_ = api_.thread_state();
  open(start_, {}, /*nested_frame=*/false);
  execute();  // what is left when a jump or a leave has left the outermost handler
}

void IteratorSequence::complain(std::string_view clause, ComplaintScope scope,
                                std::string_view what, int64_t got, int64_t wanted) {
  const bool in_call = at_ > 0 && at_ <= calls_.size();
  const std::string_view call = in_call ? name_of(calls_[at_ - 1].kind) : std::string_view();
  framestorm::complain(facts_, {clause, scope, at_, call}, what, got, wanted);
}

void IteratorSequence::expect(std::string_view clause, ComplaintScope scope, int got,
                              const IteratorModel::Expected& wanted) {
  if (wanted.result && !wanted.is(got)) complain(clause, scope, "returned", got, *wanted.result);
}

// Until the sequence ends or leaves the handler.
void IteratorSequence::execute() {
  while (at_ < calls_.size()) {
    const IteratorCall& call = calls_[at_++];
    if (call.kind == IteratorCallKind::leave && depth_ > 0) return;
    step(call);
  }
}

void IteratorSequence::step(const IteratorCall& call) {
  switch (call.kind) {
    case IteratorCallKind::next:
      for (int i = 0; i <= call.argument; ++i) next(true);
      return;
    case IteratorCallKind::drain:
      for (size_t i = 0; i <= IteratorModel::kMostFrames && next(true) == 1; ++i) {
      }
      return;
    case IteratorCallKind::next_null:
      next(false);
      return;
    case IteratorCallKind::rewind:
      api_.rewind(selected());
      model_.rewind(chosen_);
      return;
    case IteratorCallKind::state:
      state();
      return;
    case IteratorCallKind::thread_state:
      expect("iterator-thread-state", ComplaintScope::always, api_.thread_state(), {thread_state_});
      return;
    case IteratorCallKind::open:
      open(start_, {}, /*nested_frame=*/false);
      return;
    case IteratorCallKind::open_to_java: {
      IteratorStart to_java = start_;
      to_java.options |= ASGST_END_ON_FIRST_JAVA_FRAME;
      open(to_java, {}, /*nested_frame=*/false);
      return;
    }
    case IteratorCallKind::open_frame:
      if (const ASGST_Frame* frame = model_.last_frame()) {
        const IteratorStart from = {.from_frame = true,
                                    .sp = frame->sp,
                                    .fp = frame->fp,
                                    .pc = frame->pc,
                                    .options = start_.options};
        open(from, model_.part_from_last(start_.options), /*nested_frame=*/true);
      }
      return;
    case IteratorCallKind::open_null:
      open_null();
      return;
    case IteratorCallKind::jump:
      if (depth_ > 0) jump(size_t{call.argument} + 1);
      return;
    case IteratorCallKind::select: {
      // Null is the last choice.
      const size_t choice = call.argument % (model_.opened() + 1);
      chosen_ = model_.handle_of(choice);
      return;
    }
    case IteratorCallKind::leave:
    case IteratorCallKind::count:
      return;
  }
}

ASGST_Iterator* IteratorSequence::selected() const {
  return const_cast<ASGST_Iterator*>(static_cast<const ASGST_Iterator*>(chosen_));
}

void IteratorSequence::state() {
  const auto call_it = [&] { return api_.state(selected()); };
  const int got = is_from_further_down() ? from_further_down(call_it) : call_it();
  const uintptr_t caller = is_from_further_down() ? 0 : this_frame();
  expect("iterator-state", scope(), got, model_.state(chosen_, caller));
}

ComplaintScope IteratorSequence::scope() const {
  if (model_.is_from_frame(chosen_)) return ComplaintScope::real_context;
  return model_.is_open(chosen_) ? ComplaintScope::same_frames : ComplaintScope::always;
}

void IteratorSequence::complain_of_frame(std::string_view field, const ASGST_Frame& frame) {
  const ASGST_Frame& wanted = *model_.last_frame();
  const auto number = [](const void* pointer) { return reinterpret_cast<intptr_t>(pointer); };
  std::array<char, 32> what{};
  FixedText(what).text("another ").text(field);
  const bool is_pc = field == "pc";
  const bool is_sp = field == "sp";
  const bool is_fp = field == "fp";
  complain("iterator-frame", scope(), what.data(),
           is_pc   ? number(frame.pc)
           : is_sp ? number(frame.sp)
           : is_fp ? number(frame.fp)
                   : frame.bci,
           is_pc   ? number(wanted.pc)
           : is_sp ? number(wanted.sp)
           : is_fp ? number(wanted.fp)
                   : wanted.bci);
}

int IteratorSequence::next(bool with_frame) {
  ASGST_Frame frame;
  std::memset(&frame, kUntouched, sizeof frame);
  const auto call_it = [&] { return api_.next(selected(), with_frame ? &frame : nullptr); };
  const int got = is_from_further_down() ? from_further_down(call_it) : call_it();
  const bool open = model_.is_open(chosen_);
  if (!with_frame) {
    // Which of two wrong arguments is told is not said.
    expect("iterator-null-frame", ComplaintScope::always, got,
           {ASGST_INVALID_ARGUMENT, /*or_invalid=*/!open});
    return got;
  }
  const auto wanted = model_.next(chosen_, is_from_further_down() ? 0 : this_frame());
  expect(open ? "iterator-next" : "iterator-invalid-accepted", scope(), got, wanted);
  const auto is_cleared = [&] {
    return frame.type == 0 && frame.comp_level == 0 && frame.bci == 0 && frame.method == nullptr &&
           frame.pc == nullptr && frame.sp == nullptr && frame.fp == nullptr;
  };
  if (got < 0 && !is_cleared()) {
    complain("iterator-frame-not-cleared", scope(), "left a frame, with the error", got, got);
  }
  const ASGST_Frame* const ahead = model_.java_frame_ahead(chosen_);
  if (got == ASGST_NO_FRAME && wanted.result == got && !is_end(frame, ahead)) {
    complain("iterator-frame-at-end", scope(), "gave with the end a frame of type", frame.type,
             ahead != nullptr ? ASGST_FRAME_JAVA : kUntouched);
  }
  if (got != 1 || wanted.result != 1) return got;
  model_.advance(chosen_);
  const std::string_view differs =
      frame_difference(frame, *model_.last_frame(), !model_.is_from_frame(chosen_));
  if (!differs.empty()) complain_of_frame(differs, frame);
  return got;
}

void IteratorSequence::enter(ASGST_Iterator* iterator, void* handler_pointer) {
  auto* const handler = static_cast<Handler*>(handler_pointer);
  IteratorSequence& self = *handler->sequence;
  if (handler->entered++ > 0) return;
  handler->iterator = self.model_.open(
      iterator, handler->part, handler->nested_frame, reinterpret_cast<uintptr_t>(handler),
      (handler->start.options & ASGST_END_ON_FIRST_JAVA_FRAME) != 0);
  if (handler->iterator == IteratorModel::kNone) return;
  self.chosen_ = iterator;
  self.execute();
}

void IteratorSequence::open(const IteratorStart& start, IteratorModel::Part part,
                            bool nested_frame) {
  if (depth_ == kMostHandlers) return;
  Handler handler;
  handler.sequence = this;
  handler.start = start;
  handler.part = part;
  handler.nested_frame = nested_frame;
  const void* const chosen_outside = chosen_;
  const size_t depth_outside = depth_;
  handlers_[depth_++] = &handler;
  const int jumped = arch::framestorm_run_recoverable(
      &handler.outside,
      [](void* argument) {
        auto* const self = static_cast<Handler*>(argument);
        self->result = self->start.run(self->sequence->api_, &IteratorSequence::enter, self);
      },
      &handler);
  depth_ = depth_outside;
  chosen_ = chosen_outside;
  if (handler.iterator != IteratorModel::kNone) {
    model_.close_from(handler.iterator, /*by_jump=*/jumped != 0);
  }
  if (jumped == 0) {
    // One that does not say who it is (it has just started, or is not of the VM) may be known by
    // its stack, or not.
    if (!nested_frame || result_ != ASGST_CPP_TRACE) {
      expect(nested_frame ? "iterator-from-frame" : "iterator-open",
             nested_frame ? ComplaintScope::real_context : ComplaintScope::same_frames,
             handler.result, {result_});
    }
    const int entered = handler.result > 0 ? 1 : 0;
    if (handler.entered != entered) {
      complain("iterator-handler-calls", ComplaintScope::always, "the handler was called",
               handler.entered, entered);
    }
  }
}

void IteratorSequence::open_null() {
  const int got = start_.run(api_, nullptr, nullptr);
  expect("iterator-null-handler", ComplaintScope::always, got, {ASGST_INVALID_ARGUMENT});
}

// Does not return.
void IteratorSequence::jump(size_t handlers) {
  const size_t target = handlers < depth_ ? depth_ - handlers : 0;
  arch::framestorm_resume(&handlers_[target]->outside, 1);
}

}  // namespace framestorm
