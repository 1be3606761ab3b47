// The calls of a sequence (queue_sequence.h) that are about frame marks.
#include "harness/base/fixed_text.h"
#include "harness/input/canonical.h"
#include "harness/walkers/complaint.h"
#include "harness/walkers/iterator_model.h"
#include "harness/walkers/queue_sequence.h"

namespace framestorm {
namespace {

void* word(uintptr_t value) { return reinterpret_cast<void*>(value); }
ASGST_FrameMark* mark_of(const void* ticket) {
  return static_cast<ASGST_FrameMark*>(const_cast<void*>(ticket));
}

// Numbers of marks count up, so this one is never given.
constexpr uintptr_t kNeverAMark = ~uintptr_t{0xffff};
// Where no stack is.
constexpr uintptr_t kNowhere = 16;
// A return polls with its sp at the return address, or a word below; the word that has it poll is less.
constexpr uintptr_t kPollsBelow = 2 * sizeof(void*);

}  // namespace

void QueueSequence::step_of_marks(const QueueCall& call) {
  const auto number = static_cast<size_t>(argument_of(call));
  switch (call.kind) {
    case QueueCallKind::register_mark:
      register_mark();
      return;
    case QueueCallKind::remove_mark:
      api_.remove_mark(mark_of(chosen_mark_));
      if (MarkModel::Mark* const mark = marks_.find(chosen_mark_)) mark->live = false;
      return;
    case QueueCallKind::move_mark:
      move_mark(number);
      return;
    case QueueCallKind::select_mark: {
      const size_t choice = number % (marks_.count() + 2);
      chosen_mark_ = choice < marks_.count()    ? marks_.at(choice).ticket
                     : choice == marks_.count() ? word(kNeverAMark)
                                                : nullptr;
      return;
    }
    case QueueCallKind::walk_to_mark:
      walk_to_mark();
      return;
    default:
      // Where frames are left no handler runs.
      if (!in_handler_) leave_frames(call.kind, number);
  }
}

// What the chosen mark is, and whether polls are where frames are marked. False: the model and the VM
// do not mean the same any more.
bool QueueSequence::check_marks() {
  const MarkModel::Mark* const mark = marks_.find(chosen_mark_);
  const uintptr_t wanted = mark == nullptr ? 0 : mark->marked();
  const auto got = reinterpret_cast<uintptr_t>(api_.stack_pointer(mark_of(chosen_mark_)));
  if (got == wanted) return true;
  complain("mark-pointer", ComplaintScope::same_frames, "sp", static_cast<int64_t>(got),
           static_cast<int64_t>(wanted));
  return false;
}

void QueueSequence::register_mark() {
  if (marks_.count() == MarkModel::kMostMarks) return;
  Slot* const slot = &slots_[marks_.count()];
  const bool wanted = marks_.may_register() && !model_.exits();
  const int options = options_ & ASGST_END_AT_CONTINUATION;
  ASGST_FrameMark* const got = api_.register_mark(nullptr, &on_left, options, slot);
  if ((got != nullptr) != wanted) {
    complain("mark-register", ComplaintScope::always, "gave a mark:", got != nullptr ? 1 : 0,
             wanted ? 1 : 0);
    give_up();
    return;
  }
  if (got == nullptr) return;
  for (size_t i = 0; i < marks_.count(); ++i) {
    if (marks_.at(i).ticket != got) continue;
    complain("mark-given-again", ComplaintScope::always, "the mark is that of number",
             static_cast<int64_t>(i), -1);
  }
  marks_.add(got);
  chosen_mark_ = got;
}

void QueueSequence::move_mark(size_t frame) {
  const Walked& stack = java_frames();
  const uintptr_t sp = frame == 0             ? 0
                       : frame <= stack.count ? MarkModel::sp_of(stack.frames[frame - 1])
                                              : kNowhere;
  api_.move_mark(mark_of(chosen_mark_), word(sp));
  MarkModel::Mark* const mark = marks_.find(chosen_mark_);
  if (mark == nullptr) return;
  const bool is_marked = api_.stack_pointer(mark_of(chosen_mark_)) != nullptr;
  const bool can_be =
      !model_.exits() && marks_.can_be_marked(stack.list(), stack.end, sp).value_or(is_marked);
  MarkModel::move(mark, can_be ? sp : 0);
}

void QueueSequence::walk_to_mark() {
  if (model_.exits()) return;
  constexpr int kNotWalked = ASGST_END_ON_FIRST_JAVA_FRAME;
  if (!whole_->made) record(whole_.get(), context_, options_ & ~kNotWalked, api_.run);
  record(to_mark_.get(), context_, (options_ & ~kNotWalked) | ASGST_END_AT_FRAME_MARK, api_.run);
  const auto scope = ComplaintScope::same_frames;
  size_t count = whole_->count;
  int end = whole_->end;
  const void* ticket = nullptr;
  const MarkModel::Mark* const newest = marks_.newest();
  const auto is_marked = [newest](const ASGST_Frame& frame) {
    return newest != nullptr && MarkModel::sp_of(frame) == newest->sp;
  };
  const auto whole = whole_->list();
  const auto last = std::ranges::find_if(whole.rbegin(), whole.rend(), is_marked);
  if (last != whole.rend()) {
    count = static_cast<size_t>(whole.rend() - last);
    // What comes behind the frames that are looked at may be inlined, too.
    if (count == whole_->count && whole_->end == 1) return;
    end = ASGST_AT_FRAME_MARK;
    ticket = newest->ticket;
  }
  if (to_mark_->result != whole_->result) {
    complain("mark-walk", scope, "returned", to_mark_->result, whole_->result);
    return;
  }
  if (whole_->result <= 0) return;
  if (to_mark_->count != count) {
    complain("mark-walk", scope, "frames", static_cast<int64_t>(to_mark_->count),
             static_cast<int64_t>(count));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    complain_of_frame("mark-walk", scope, to_mark_->frames[i], whole[i], i);
  }
  if (to_mark_->end != end) complain("mark-walk", scope, "after the frames", to_mark_->end, end);
  if (to_mark_->mark != ticket) {
    complain("mark-walk", scope, "mark", reinterpret_cast<intptr_t>(to_mark_->mark),
             reinterpret_cast<intptr_t>(ticket));
  }
}

void QueueSequence::leave_frames(QueueCallKind how, size_t frame) {
  const Walked& stack = java_frames();
  const auto frames = stack.list();
  uintptr_t stay = MarkModel::kAll;
  if (how == QueueCallKind::throw_frozen) {
    api_.throw_to_frozen();
    marks_.throw_to_frozen(frames);
    return;
  }
  if (how == QueueCallKind::freeze) {
    // What a mutated context leads to may be no part of the continuation.
    stay = reinterpret_cast<uintptr_t>(api_.continuation());
    const size_t entry = MarkModel::first_from(frames, stay);
    if (stay == 0 || entry == frames.size() || MarkModel::sp_of(frames[entry]) != stay ||
        !MarkModel::enters_continuation(frames[entry])) {
      return;
    }
    leave_to(stay, [this] { api_.freeze(); });
    return;
  }
  if (frame > frames.size()) return;
  const uintptr_t sp = MarkModel::sp_of(frames[frame - 1]);
  // The first frame may be half built: no thread polls or throws there.
  if (sp == MarkModel::sp_of(frames[0])) return;
  if (how == QueueCallKind::unwind) {
    leave_to(sp, [=, this] { api_.unwind(word(sp)); });
    return;
  }
  const size_t caller = MarkModel::first_from(frames, sp + 1);
  stay = caller == frames.size() ? sp + 1 : MarkModel::sp_of(frames[caller]);
  leave_to(stay, [=, this] { api_.return_frame(word(sp)); });
}

template <typename Leave>
void QueueSequence::leave_to(uintptr_t stay, Leave leave) {
  const size_t call = at_;
  marks_.begin_leave(stay);
  leave();
  const size_t left = lost_ ? MarkModel::kNone : marks_.next_told();
  if (left != MarkModel::kNone) {
    at_ = call;
    complain("mark-not-told", ComplaintScope::same_frames, "handler of mark", -1,
             static_cast<int64_t>(left));
    give_up();
  }
  marks_.end_leave();
  check_iterator_left();
}

// Before the thread ends: it has no frames any more.
void QueueSequence::leave_java() {
  leave_to(MarkModel::kAll, [this] { api_.leave_java(); });
}

void QueueSequence::check_poll_word() {
  if (lost_ || model_.exits()) return;
  const uintptr_t got = api_.poll_word();
  const MarkModel::Mark* const newest = marks_.newest();
  uintptr_t least = MarkModel::kAll;
  uintptr_t most = MarkModel::kAll;
  if (newest != nullptr) {
    const auto frames = java_frames().list();
    const size_t caller = MarkModel::first_from(frames, newest->sp + 1);
    least = newest->sp - kPollsBelow;
    most = MarkModel::kAll - 1;
    if (caller != frames.size()) {
      // A method handle's linker may have popped a word of an interpreted caller.
      const bool may_have_popped = frames[caller].comp_level == 0;
      most = MarkModel::sp_of(frames[caller]) - (may_have_popped ? 0 : sizeof(void*)) - kPollsBelow;
    }
  }
  if (got < least || got > most) {
    complain("mark-poll-word", ComplaintScope::same_frames, "word", static_cast<int64_t>(got),
             static_cast<int64_t>(least));
  }
}

void QueueSequence::on_left(ASGST_FrameMark* mark, ASGST_Iterator* iterator, void* slot) {
  const Slot& of = *static_cast<const Slot*>(slot);
  QueueSequence& self = *of.sequence;
  if (self.lost_) return;
  const bool may_be_called = !self.in_handler_ && self.marks_.leaves();
  const size_t wanted = may_be_called ? self.marks_.next_told() : MarkModel::kNone;
  if (wanted != of.index) {
    self.complain(may_be_called ? "mark-order" : "mark-handler-uncalled-for",
                  ComplaintScope::same_frames, "handler of mark", static_cast<int64_t>(of.index),
                  static_cast<int64_t>(wanted));
    self.give_up();
    return;
  }
  if (mark != self.marks_.at(of.index).ticket) {
    self.complain("mark-order", ComplaintScope::always, "another mark", 1, 0);
  }
  self.in_mark_handler_ = true;
  self.in_handler_ = true;
  self.compare_staying(iterator);
  self.execute();
  self.in_handler_ = false;
  self.in_mark_handler_ = false;
  self.last_iterator_ = iterator;
}

void QueueSequence::compare_staying(ASGST_Iterator* iterator) {
  const Walked& stack = java_frames();
  const auto scope = ComplaintScope::same_frames;
  size_t next = MarkModel::first_from(stack.list(), marks_.stay());
  const int state = api_.state(iterator);
  ASGST_Frame frame;
  if (next == stack.count) {
    // Unless there are more than are looked at, or the walk says why it did not come there.
    const bool is_whole = stack.end == ASGST_NO_FRAME || stack.end == ASGST_FRAMES_FROZEN;
    if (state != ASGST_NO_TOP_JAVA_FRAME && (is_whole || marks_.stay() == MarkModel::kAll)) {
      complain("mark-told-state", scope, "state", state, ASGST_NO_TOP_JAVA_FRAME);
    }
    return;
  }
  if (state != 1) {
    complain("mark-told-state", scope, "state", state, 1);
    return;
  }
  const bool ends_at_continuation = (options_ & ASGST_END_AT_CONTINUATION) != 0;
  bool left_out_frozen = false;
  for (; next < stack.count; ++next) {
    const ASGST_Frame& wanted = stack.frames[next];
    const int got = api_.next(iterator, &frame);
    if (got != 1) {
      complain("mark-told-end", scope, "at a frame", got, 1);
      return;
    }
    if (!complain_of_frame("mark-told-frame", scope, frame, wanted, next)) return;
    left_out_frozen = left_out_frozen || wanted.type == ASGST_FRAME_CONTINUATION_FROZEN;
    if (ends_at_continuation && MarkModel::enters_continuation(wanted)) return;
  }
  if (stack.end == 1) return;
  const int end = api_.next(iterator, &frame);
  // What was left out before the first frame that stays is not missing.
  const bool may_be_whole = stack.end == ASGST_FRAMES_FROZEN && !left_out_frozen;
  if (end != stack.end && !(may_be_whole && end == ASGST_NO_FRAME)) {
    complain("mark-told-end", scope, "after the frames", end, stack.end);
  }
}

// True when the frames are the same.
bool QueueSequence::complain_of_frame(std::string_view clause, ComplaintScope scope,
                                      const ASGST_Frame& frame, const ASGST_Frame& wanted,
                                      size_t index) {
  const std::string_view differs = frame_difference(frame, wanted, /*same_walk=*/true);
  if (differs.empty()) return true;
  std::array<char, 32> what{};
  FixedText(what).text("another ").text(differs).text(" at frame");
  complain(clause, scope, what.data(), static_cast<int64_t>(index), -1);
  return false;
}

// Where marks are set and frames are left: the frames of Java alone.
const QueueSequence::Walked& QueueSequence::java_frames() {
  if (!java_->made) {
    record(java_.get(), context_, options_ & ASGST_WALK_DURING_UNSAFE_STATES, api_.run);
  }
  return *java_;
}

}  // namespace framestorm
