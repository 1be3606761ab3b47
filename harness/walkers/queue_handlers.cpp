// What the handlers of queues are told (queue_sequence.h): in which order, of which element, and with
// which frames. These are compared with walks that no queue is in.
#include "harness/victim/context.h"
#include "harness/walkers/complaint.h"
#include "harness/walkers/queue_sequence.h"

namespace framestorm {
namespace {

using EventKind = QueueModel::EventKind;

}  // namespace

// False when nothing is to be done in the handler.
bool QueueSequence::enter(const Slot& slot, EventKind kind, QueueModel::Event* event) {
  if (lost_) return false;
  if (in_handler_ || !model_.polls()) {
    complain("queue-handler-uncalled-for", ComplaintScope::always, "handlers at once", 1, 0);
    give_up();
    return false;
  }
  *event = model_.next_event();
  if (event->kind == kind && event->queue == slot.index) return true;
  const auto id = [](EventKind which, size_t queue) {
    return static_cast<int64_t>(queue * 10 + static_cast<size_t>(which));
  };
  complain("queue-order", ComplaintScope::always, "handler (queue, kind)", id(kind, slot.index),
           id(event->kind, event->queue));
  give_up();
  return false;
}

void QueueSequence::on_element(ASGST_Iterator* iterator, void* slot, void* argument) {
  const Slot& of = *static_cast<const Slot*>(slot);
  QueueSequence& self = *of.sequence;
  QueueModel::Event event;
  if (!self.enter(of, EventKind::element, &event)) return;
  if (reinterpret_cast<uintptr_t>(argument) != event.element.argument) {
    self.complain("queue-argument", ComplaintScope::always, "told",
                  reinterpret_cast<intptr_t>(argument),
                  static_cast<int64_t>(event.element.argument));
  }
  const size_t origin = event.element.origin;
  // A walk now would give what that of an ending thread does.
  const Walked* const wanted = self.model_.exits() ? nullptr : &self.walked(origin);
  self.handle(iterator, wanted, origin != 0 && origin != kNoContext);
}

void QueueSequence::on_safepoint(ASGST_Queue* queue, ASGST_Iterator* iterator, void* slot,
                                 EventKind kind) {
  if (slot == nullptr) return;
  const Slot& of = *static_cast<const Slot*>(slot);
  QueueSequence& self = *of.sequence;
  QueueModel::Event event;
  if (!self.enter(of, kind, &event)) return;
  const QueueModel::Queue& model = self.model_.at(event.queue);
  if (queue != model.ticket) {
    self.complain("queue-order", ComplaintScope::always, "another queue", 1, 0);
  }
  const bool offered = (kind == EventKind::start ? model.start : model.end) ==
                       QueueModel::OnSafepoint::with_iterator;
  if ((iterator != nullptr) != offered) {
    self.complain("queue-iterator-offered", ComplaintScope::always,
                  "offered:", iterator != nullptr ? 1 : 0, offered ? 1 : 0);
    return;
  }
  const Walked* const wanted = self.model_.exits() ? nullptr : &self.walked_at_safepoint();
  self.handle(iterator, wanted, /*may_be_left=*/false);
}

void QueueSequence::handle(ASGST_Iterator* iterator, const Walked* wanted, bool may_be_left) {
  in_handler_ = true;
  if (iterator != nullptr) compare(iterator, wanted, may_be_left);
  execute();
  in_handler_ = false;
  if (iterator != nullptr) last_iterator_ = iterator;
}

void QueueSequence::compare(ASGST_Iterator* iterator, const Walked* wanted, bool may_be_left) {
  const int state = api_.state(iterator);
  ASGST_Frame frame;
  if (wanted == nullptr) {
    const int next = api_.next(iterator, &frame);
    if (state == ASGST_THREAD_EXIT && next == state) return;
    complain("queue-told-exit", ComplaintScope::always, "state", state, ASGST_THREAD_EXIT);
    return;
  }
  if (state == ASGST_SAMPLE_LEFT) {
    // No thread polls where a mutated context says.
    if (!may_be_left) {
      complain("queue-told-left", ComplaintScope::real_poll, "state", state, wanted->result);
    }
    return;
  }
  const auto scope = ComplaintScope::same_frames;
  const int first = wanted->result <= 0 ? wanted->result : wanted->count > 0 ? 1 : wanted->end;
  if (state != first) {
    complain("queue-told-state", scope, "state", state, first);
    return;
  }
  if (first <= 0) return;
  for (size_t i = 0; i < wanted->count; ++i) {
    const int next = api_.next(iterator, &frame);
    if (next != 1) {
      complain("queue-told-frame", scope, "another end at frame", static_cast<int64_t>(i), -1);
      return;
    }
    if (!complain_of_frame("queue-told-frame", scope, frame, wanted->frames[i], i)) return;
  }
  const int end = wanted->end == 1 ? 1 : api_.next(iterator, &frame);
  if (end != wanted->end) complain("queue-told-end", scope, "after the frames", end, wanted->end);
}

// Null where there is none, or the walk's own is no ucontext.
void* QueueSequence::context_of(size_t origin) {
  if (origin == kNoContext) return nullptr;
  const bool is_whole =
      context_ != nullptr && reinterpret_cast<uintptr_t>(context_) % alignof(ucontext_t) == 0;
  if (origin == 0 || !is_whole || model_.exits()) return context_;
  const Walked& whole = walked(0);
  if (origin > whole.count) return context_;
  const ASGST_Frame& frame = whole.frames[origin - 1];
  copy_context(*static_cast<const ucontext_t*>(context_), &of_frame_);
  set_register(&of_frame_, Register::pc, reinterpret_cast<uintptr_t>(frame.pc));
  set_register(&of_frame_, Register::sp, reinterpret_cast<uintptr_t>(frame.sp));
  set_register(&of_frame_, Register::fp, reinterpret_cast<uintptr_t>(frame.fp));
  return &of_frame_;
}

const QueueSequence::Walked& QueueSequence::walked(size_t origin) {
  Walked& walked = (*walked_)[origin];
  if (!walked.made) record(&walked, context_of(origin), options_, api_.run_with_sample);
  return walked;
}

const QueueSequence::Walked& QueueSequence::walked_at_safepoint() {
  const int options = options_ & ~ASGST_INCLUDE_NON_JAVA_FRAMES;
  if (!at_safepoint_->made) record(at_safepoint_.get(), context_, options, api_.run);
  return *at_safepoint_;
}

void QueueSequence::record(Walked* into, void* context, int options,
                           decltype(&ASGST_RunWithIterator) by) {
  struct Recording {
    const QueueApi& api;
    Walked& walked;
  } recording = {api_, *into};
  into->made = true;
  into->count = 0;
  into->end = ASGST_NO_FRAME;
  into->mark = nullptr;
  into->result = by(
      context, options,
      [](ASGST_Iterator* iterator, void* argument) {
        auto& [api, walked] = *static_cast<Recording*>(argument);
        while (walked.count < kMostFrames) {
          walked.end = api.next(iterator, &walked.frames[walked.count]);
          if (walked.end != 1) break;
          ++walked.count;
        }
        walked.mark = api.mark_of(iterator);
      },
      &recording);
}

}  // namespace framestorm
