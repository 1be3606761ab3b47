#include "harness/walkers/queue_sequence.h"

#include "harness/input/canonical.h"
#include "harness/walkers/complaint.h"

namespace framestorm {
namespace {

using EventKind = QueueModel::EventKind;

void* word(uintptr_t value) { return reinterpret_cast<void*>(value); }
ASGST_Queue* queue_of(const void* ticket) {
  return static_cast<ASGST_Queue*>(const_cast<void*>(ticket));
}

// Numbers of queues count up, so this one is never given.
constexpr uintptr_t kNeverAQueue = ~uintptr_t{0xffff};

// Of the sequence that runs: only one thread is walked at a time.
QueueMemory* running = nullptr;

}  // namespace

QueueApi::QueueApi(const Exports& exports)
    : run_with_sample(exports.require(WalkerId::asgst_queue)) {
  run = exports.require("ASGST_RunWithIterator");
  next = exports.require("ASGST_NextFrame");
  state = exports.require("ASGST_State");
  register_queue = exports.require("ASGST_RegisterQueue");
  deregister = exports.require("ASGST_DeregisterQueue");
  enqueue = exports.require("ASGST_Enqueue");
  enqueuable = exports.require("ASGST_GetEnqueuableElement");
  element = exports.require("ASGST_GetQueueElement");
  resize = exports.require("ASGST_ResizeQueue");
  size_info = exports.require("ASGST_GetQueueSizeInfo");
  on_start = exports.require("ASGST_SetOnQueueProcessingStart");
  on_end = exports.require("ASGST_SetOnQueueProcessingEnd");
  register_mark = exports.require("ASGST_RegisterFrameMark");
  move_mark = exports.require("ASGST_MoveFrameMark");
  stack_pointer = exports.require("ASGST_GetFrameMarkStackPointer");
  remove_mark = exports.require("ASGST_RemoveFrameMark");
  mark_of = exports.require("ASGST_GetFrameMark");
  reserve_marks = exports.require("framestorm_queues_reserve_marks");
  begin = exports.require("framestorm_queues_begin");
  poll = exports.require("framestorm_queues_poll");
  poll_word = exports.require("framestorm_queues_poll_word");
  return_frame = exports.require("framestorm_queues_return");
  unwind = exports.require("framestorm_queues_unwind");
  continuation = exports.require("framestorm_queues_continuation");
  freeze = exports.require("framestorm_queues_freeze");
  throw_to_frozen = exports.require("framestorm_queues_throw_to_frozen");
  leave_java = exports.require("framestorm_queues_leave_java");
  exit = exports.require("framestorm_queues_exit");
  end = exports.require("framestorm_queues_end");
}

QueueSequence::QueueSequence(const Exports& exports)
    : api_(exports),
      memory_(std::make_unique<QueueMemory>()),
      walked_(std::make_unique<std::array<Walked, kContexts>>()),
      at_safepoint_(std::make_unique<Walked>()),
      java_(std::make_unique<Walked>()),
      whole_(std::make_unique<Walked>()),
      to_mark_(std::make_unique<Walked>()) {
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i] = {this, i};
  // The VM keeps what it has allocated for queues, and walks must not make it allocate.
  std::array<ASGST_Queue*, QueueModel::kMostQueues> queues;
  for (ASGST_Queue*& each : queues) {
    each = api_.register_queue(nullptr, 1, 0, &on_element, slots_.data());
  }
  for (ASGST_Queue* each : queues) api_.deregister(nullptr, each);
  api_.reserve_marks(MarkModel::kMostMarks);
}

void QueueSequence::run(std::span<const QueueCall> calls, void* context, int options,
                        WalkFacts* facts) {
  calls_ = calls;
  context_ = context;
  // Of what is walked here only walk_to_mark ends at marks.
  options_ = options & ~ASGST_END_AT_FRAME_MARK;
  facts_ = facts;
  at_ = 0;
  chosen_ = chosen_mark_ = nullptr;
  next_argument_ = 1;
  in_handler_ = in_mark_handler_ = lost_ = false;
  last_iterator_ = nullptr;
  memory_->reset();
  for (Walked& each : *walked_) each.made = false;
  at_safepoint_->made = java_->made = whole_->made = false;
  running = memory_.get();
  const int begun = api_.begin([](size_t bytes) { return running->allocate(bytes); },
                               [](void* memory) { running->release(memory); }, context);
  if (begun >= 0) {
    model_.reset(begun == 1);
    marks_.reset(begun == 1);
    execute();
    api_.end();
    check_end();
  }
  running = nullptr;
}

void QueueSequence::abandoned() {
  if (running != memory_.get()) return;
  api_.end();
  running = nullptr;
}

void QueueSequence::complain(std::string_view clause, ComplaintScope scope, std::string_view what,
                             int64_t got, int64_t wanted) {
  const bool in_call = at_ > 0 && at_ <= calls_.size();
  const std::string_view call = in_call ? name_of(calls_[at_ - 1].kind) : std::string_view();
  framestorm::complain(facts_, {clause, scope, at_, call}, what, got, wanted);
}

// Until the sequence ends or leaves the handler.
void QueueSequence::execute() {
  while (at_ < calls_.size() && !lost_) {
    const QueueCall& call = calls_[at_++];
    if (call.kind == QueueCallKind::leave && in_handler_) return;
    step(call);
    if (lost_) return;
    if (!check_marks()) {
      give_up();
      return;
    }
    const ASGST_QueueSizeInfo info = api_.size_info(queue_of(chosen_));
    const QueueModel::Queue* const queue = model_.find(chosen_);
    if (QueueModel::agrees(queue, info)) continue;
    const QueueModel::Queue none;
    const QueueModel::Queue& wanted = queue == nullptr ? none : *queue;
    const auto size = static_cast<int64_t>(wanted.size);
    const auto always = ComplaintScope::always;
    if (info.size != size) complain("queue-size", always, "size", info.size, size);
    if (info.capacity != wanted.capacity) {
      complain("queue-capacity", always, "capacity", info.capacity, wanted.capacity);
    }
    if (info.attempts != wanted.attempts) {
      complain("queue-attempts", always, "attempts", info.attempts, wanted.attempts);
    }
    give_up();
  }
}

void QueueSequence::step(const QueueCall& call) {
  const int number = argument_of(call);
  switch (call.kind) {
    case QueueCallKind::register_queue:
      register_queue(number);
      return;
    case QueueCallKind::deregister: {
      QueueModel::Queue* const queue = model_.find(chosen_);
      const bool got = api_.deregister(nullptr, queue_of(chosen_));
      if (got != (queue != nullptr)) {
        complain("queue-deregister", ComplaintScope::always, "returned", got ? 1 : 0, got ? 0 : 1);
        give_up();
      }
      if (queue != nullptr) queue->live = false;
      return;
    }
    case QueueCallKind::enqueue:
      enqueue(static_cast<size_t>(number));
      return;
    case QueueCallKind::enqueue_null:
      enqueue(kNoContext);
      return;
    case QueueCallKind::element:
      element(number, /*change=*/false);
      return;
    case QueueCallKind::change:
      element(number, /*change=*/true);
      return;
    case QueueCallKind::resize:
      api_.resize(queue_of(chosen_), number);
      QueueModel::resize(model_.find(chosen_), number);
      return;
    case QueueCallKind::enqueuable:
      enqueuable();
      return;
    case QueueCallKind::on_start:
      set_on_safepoint(/*start=*/true, number);
      return;
    case QueueCallKind::on_end:
      set_on_safepoint(/*start=*/false, number);
      return;
    case QueueCallKind::poll:
      poll(/*exits=*/false);
      return;
    case QueueCallKind::exit:
      if (!in_handler_) poll(/*exits=*/true);
      return;
    case QueueCallKind::select:
      select(static_cast<size_t>(number));
      return;
    case QueueCallKind::no_memory:
      memory_->allocation().fail_after(static_cast<size_t>(number));
      model_.allocation().fail_after(static_cast<size_t>(number));
      return;
    case QueueCallKind::leave:
    case QueueCallKind::count:
      return;
    case QueueCallKind::register_mark:
    case QueueCallKind::remove_mark:
    case QueueCallKind::move_mark:
    case QueueCallKind::select_mark:
    case QueueCallKind::walk_to_mark:
    case QueueCallKind::return_frame:
    case QueueCallKind::unwind:
    case QueueCallKind::freeze:
    case QueueCallKind::throw_frozen:
      step_of_marks(call);
      return;
  }
}

void QueueSequence::register_queue(int size) {
  if (model_.count() == QueueModel::kMostQueues) return;
  Slot* const slot = &slots_[model_.count()];
  const bool wanted = model_.registers(size);
  ASGST_Queue* const got = api_.register_queue(nullptr, size, options_, &on_element, slot);
  if ((got != nullptr) != wanted) {
    complain("queue-register", ComplaintScope::always, "gave a queue:", got != nullptr ? 1 : 0,
             wanted ? 1 : 0);
    give_up();
    return;
  }
  if (got == nullptr) return;
  for (size_t i = 0; i < model_.count(); ++i) {
    if (model_.at(i).ticket != got) continue;
    complain("queue-given-again", ComplaintScope::always, "the queue is that of number",
             static_cast<int64_t>(i), -1);
  }
  model_.add(got, size);
  chosen_ = got;
}

void QueueSequence::enqueue(size_t origin) {
  QueueModel::Queue* const queue = model_.find(chosen_);
  const int taken = model_.exits() ? int{ASGST_THREAD_EXIT} : walked(origin).result;
  const uintptr_t argument = next_argument_++;
  const int wanted = QueueModel::enqueue(queue, taken);
  const int got = api_.enqueue(queue_of(chosen_), context_of(origin), word(argument));
  const bool is_queues = queue == nullptr || wanted == ASGST_ENQUEUE_FULL_QUEUE;
  if (got != wanted) {
    complain("queue-enqueue", is_queues ? ComplaintScope::always : ComplaintScope::same_frames,
             "returned", got, wanted);
  }
  if (got > 0 && (queue == nullptr || !QueueModel::push(queue, {argument, origin}))) give_up();
}

void QueueSequence::element(int n, bool change) {
  QueueModel::Element* const wanted = QueueModel::element(model_.find(chosen_), n);
  ASGST_QueueElement* const got = api_.element(queue_of(chosen_), n);
  if ((got != nullptr) != (wanted != nullptr)) {
    complain("queue-element", ComplaintScope::always, "there is one:", got != nullptr ? 1 : 0,
             wanted != nullptr ? 1 : 0);
    return;
  }
  if (got == nullptr) return;
  if (got->arg != word(wanted->argument)) {
    complain("queue-element", ComplaintScope::always, "arg", reinterpret_cast<intptr_t>(got->arg),
             static_cast<int64_t>(wanted->argument));
  }
  if (!change) return;
  wanted->argument = next_argument_++;
  // What else is changed has no effect.
  *got = {nullptr, word(16), word(wanted->argument), word(wanted->argument)};
}

void QueueSequence::enqueuable() {
  const ASGST_QueueElement before = {word(1), word(2), word(3), word(4)};
  ASGST_QueueElement element = before;
  const int got = api_.enqueuable(context_, &element);
  int wanted = ASGST_THREAD_EXIT;
  ASGST_Frame top = {};
  if (!model_.exits()) {
    const Walked& whole = walked(0);
    const auto frames = std::span(whole.frames).first(whole.count);
    const auto java = std::ranges::find_if(
        frames, [](const ASGST_Frame& frame) { return frame.type != ASGST_FRAME_NON_JAVA; });
    if (java != frames.end()) top = *java;
    wanted = whole.result;
  }
  // It is asked without options, which let more states through.
  const bool unsafe = (options_ & ASGST_WALK_DURING_UNSAFE_STATES) != 0;
  if (got != wanted && !(unsafe && wanted > 0)) {
    complain("queue-enqueuable", ComplaintScope::same_frames, "returned", got, wanted);
  }
  const ASGST_QueueElement right =
      got > 0 ? ASGST_QueueElement{top.pc, element.fp, top.sp, nullptr} : before;
  if (element.arg != right.arg || element.pc != right.pc || element.sp != right.sp ||
      element.fp != right.fp) {
    complain("queue-enqueuable", ComplaintScope::same_frames, "sp",
             reinterpret_cast<intptr_t>(element.sp), reinterpret_cast<intptr_t>(right.sp));
  }
}

void QueueSequence::set_on_safepoint(bool start, int how) {
  QueueModel::Queue* const queue = model_.find(chosen_);
  void* const slot =
      queue == nullptr ? nullptr : &slots_[static_cast<size_t>(queue - &model_.at(0))];
  const bool offer = how > 1;
  const int options = options_ & ~ASGST_INCLUDE_NON_JAVA_FRAMES;
  if (start) {
    const ASGST_OnQueueSafepointHandler handler =
        how == 0 ? nullptr : [](ASGST_Queue* ticket, ASGST_Iterator* iterator, void* of) {
          on_safepoint(ticket, iterator, of, EventKind::start);
        };
    api_.on_start(queue_of(chosen_), options, offer, handler, slot);
  } else {
    const ASGST_OnQueueSafepointHandler handler =
        how == 0 ? nullptr : [](ASGST_Queue* ticket, ASGST_Iterator* iterator, void* of) {
          on_safepoint(ticket, iterator, of, EventKind::end);
        };
    api_.on_end(queue_of(chosen_), options, offer, handler, slot);
  }
  if (queue == nullptr) return;
  (start ? queue->start : queue->end) = how == 0 ? QueueModel::OnSafepoint::none
                                        : offer  ? QueueModel::OnSafepoint::with_iterator
                                                 : QueueModel::OnSafepoint::plain;
}

void QueueSequence::poll(bool exits) {
  // No thread polls while it leaves frames.
  if (in_mark_handler_) return;
  if (in_handler_) {
    api_.poll(context_);  // nothing: the elements are being told
    return;
  }
  if (exits) {
    leave_java();
    if (lost_) return;
  }
  const size_t call = at_;
  model_.begin_poll(exits);
  if (exits) {
    api_.exit();
  } else {
    api_.poll(context_);
  }
  if (!lost_) {
    const QueueModel::Event left = model_.next_event();
    if (left.kind != EventKind::none) {
      at_ = call;
      complain("queue-not-told", ComplaintScope::always, "after the poll, handler",
               static_cast<int64_t>(EventKind::none), static_cast<int64_t>(left.kind));
      give_up();
    }
  }
  model_.end_poll();
  if (exits) marks_.end_all();
  check_poll_word();
  check_iterator_left();
}

void QueueSequence::check_iterator_left() {
  ASGST_Frame frame;
  if (last_iterator_ != nullptr && api_.next(last_iterator_, &frame) != ASGST_INVALID_ITERATOR) {
    complain("queue-iterator-goes-on", ComplaintScope::always, "after its handler, state",
             api_.state(last_iterator_), ASGST_INVALID_ITERATOR);
  }
}

void QueueSequence::select(size_t choice) {
  choice %= model_.count() + 2;
  chosen_ = choice < model_.count()    ? model_.at(choice).ticket
            : choice == model_.count() ? word(kNeverAQueue)
                                       : nullptr;
}

void QueueSequence::check_end() {
  at_ = 0;  // of no call
  const auto expect_none = [&](std::string_view clause, size_t count) {
    if (count == 0) return;
    complain(clause, ComplaintScope::always, "blocks of memory", static_cast<int64_t>(count), 0);
  };
  expect_none("queue-memory-kept", memory_->live());
  expect_none("queue-memory-overrun", memory_->overrun());
  expect_none("queue-memory-released-twice", memory_->wrong_release());
  for (size_t i = 0; i < model_.count(); ++i) {
    if (api_.element(queue_of(model_.at(i).ticket), 0) == nullptr) continue;
    complain("queue-ended-accepted", ComplaintScope::always, "an element of queue",
             static_cast<int64_t>(i), -1);
  }
  for (size_t i = 0; i < marks_.count(); ++i) {
    if (api_.stack_pointer(static_cast<ASGST_FrameMark*>(const_cast<void*>(marks_.at(i).ticket))) ==
        nullptr) {
      continue;
    }
    complain("mark-ended-accepted", ComplaintScope::always, "a frame of mark",
             static_cast<int64_t>(i), -1);
  }
}

}  // namespace framestorm
