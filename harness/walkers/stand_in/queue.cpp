// Safepoint queues of the stand-in: lists, and wrong ones. What is told is what the stack of the test is.
#include <profile2.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/walkers/stand_in/stand_in.h"

extern "C" {
int ASGST_RunWithIterator(void*, int32_t, ASGST_IteratorHandler, void*);
}

namespace framestorm::stand_in {
namespace {

struct OnSafepoint {
  ASGST_OnQueueSafepointHandler handler = nullptr;
  bool offer = false;
  int options = 0;
  void* argument = nullptr;
};

struct Element {
  ASGST_QueueElement shown = {};
  void* context = nullptr;
};

struct Queue {
  uintptr_t number = 0;  // its ticket
  std::vector<Element> elements;
  void* room = nullptr;  // as a VM that has its elements there
  int capacity = 0;
  int asked = 0;
  int attempts = 0;
  int options = 0;
  ASGST_Handler handler = nullptr;
  void* argument = nullptr;
  OnSafepoint start;
  OnSafepoint end;
};

// In the order of their registration; of those that have ended the number is 0.
std::vector<Queue> queues;
uintptr_t numbers = 0;
bool polls = false;
bool exits = false;
void* (*allocate)(size_t) = nullptr;
void (*release)(void*) = nullptr;

Defect defect() { return framestorm_stand_in()->defect; }

Queue* find(const ASGST_Queue* ticket) {
  for (Queue& queue : queues) {
    if (queue.number != 0 && queue.number == reinterpret_cast<uintptr_t>(ticket)) return &queue;
  }
  return nullptr;
}
ASGST_Queue* ticket_of(const Queue& queue) { return reinterpret_cast<ASGST_Queue*>(queue.number); }

// As two blocks, one of which is that for the elements.
void* make_room() {
  if (allocate == nullptr) return nullptr;
  void* const head = allocate(16);
  if (head == nullptr) return nullptr;
  void* const room = allocate(16);
  if (room == nullptr) release(head);
  if (room != nullptr) *static_cast<void**>(room) = head;
  return room;
}
void drop_room(void* room) {
  if (room == nullptr || release == nullptr) return;
  if (defect() != Defect::queue_keeps_memory) release(*static_cast<void**>(room));
  release(room);
}

void end_queue(Queue* queue) {
  queue->number = 0;
  drop_room(std::exchange(queue->room, nullptr));
  queue->elements.clear();
}

int take(void* context) {
  if (exits) return ASGST_THREAD_EXIT;
  const auto nothing = [](ASGST_Iterator*, void*) {};
  return ASGST_RunWithIterator(context, 0, nothing, nullptr);
}

struct Telling {
  ASGST_Handler handler;
  void* queue_argument;
  void* argument;
};
void tell(const Queue& queue, const Element& element) {
  Control& control = *framestorm_stand_in();
  Telling telling = {queue.handler, queue.argument, element.shown.arg};
  const int end_before = control.end;
  const auto stack_before = control.stack;
  if (exits) {
    control.stack = [](void*, Frame*, size_t) { return size_t{0}; };
    control.end = ASGST_THREAD_EXIT;
  }
  ASGST_RunWithIterator(
      element.context, queue.options,
      [](ASGST_Iterator* iterator, void* argument) {
        const auto& it = *static_cast<const Telling*>(argument);
        it.handler(iterator, it.queue_argument, it.argument);
      },
      &telling);
  control.stack = stack_before;
  control.end = end_before;
}

void call(const OnSafepoint& on, ASGST_Queue* ticket, void* context) {
  if (on.handler == nullptr) return;
  if (!on.offer) {
    on.handler(ticket, nullptr, on.argument);
    return;
  }
  struct Calling {
    const OnSafepoint& on;
    ASGST_Queue* ticket;
  } calling = {on, ticket};
  Control& control = *framestorm_stand_in();
  const int end_before = control.end;
  const auto stack_before = control.stack;
  if (exits) {
    control.stack = [](void*, Frame*, size_t) { return size_t{0}; };
    control.end = ASGST_THREAD_EXIT;
  }
  ASGST_RunWithIterator(
      context, on.options,
      [](ASGST_Iterator* iterator, void* argument) {
        const auto& it = *static_cast<const Calling*>(argument);
        it.on.handler(it.ticket, iterator, it.on.argument);
      },
      &calling);
  control.stack = stack_before;
  control.end = end_before;
}

void resize(size_t index) {
  Queue& queue = queues[index];
  const int asked = queue.asked;
  const bool fits = queue.elements.size() <= static_cast<size_t>(asked);
  if (asked == 0) return;
  if (asked == queue.capacity) {
    queue.asked = 0;
    return;
  }
  void* const room = make_room();
  if (room == nullptr) queue.asked = 0;
  if (room == nullptr) return;
  if (!fits && defect() != Defect::queue_shrinks_over_elements) {
    drop_room(room);
    return;
  }
  if (!fits) queue.elements.resize(static_cast<size_t>(asked));
  if (fits && defect() == Defect::queue_loses_one_by_resizing && !queue.elements.empty()) {
    queue.elements.pop_back();
  }
  drop_room(std::exchange(queue.room, room));
  queue.capacity = asked;
  queue.asked = 0;
}

// Queues move when handlers register others, so they are named by their index.
void tell_all(size_t index, void* context) {
  const uintptr_t number = queues[index].number;
  const auto is_open = [&] { return queues[index].number == number; };
  ASGST_Queue* const ticket = ticket_of(queues[index]);
  size_t round = queues[index].elements.size();
  const OnSafepoint start = queues[index].start;
  call(start, ticket, context);
  if (defect() == Defect::queue_calls_start_twice) call(start, ticket, context);
  for (size_t i = 0; i < round && is_open(); ++i) {
    size_t which = defect() == Defect::queue_tells_the_last_first ? round - 1 - i : i;
    if (defect() == Defect::queue_passes_one_over && round == 3 && i == 1) continue;
    const Queue queue = queues[index];  // NOLINT(performance-unnecessary-copy*): handlers change it
    if (which >= queue.elements.size()) break;  // told by a poll in a handler
    tell(queue, queue.elements[which]);
    if (defect() == Defect::queue_tells_what_handlers_enqueue && is_open()) {
      round = queues[index].elements.size();
    }
  }
  if (!is_open()) {
    if (defect() == Defect::queue_ends_after_its_end)
      call(OnSafepoint(queues[index].end), ticket, context);
    return;
  }
  call(OnSafepoint(queues[index].end), ticket, context);
  if (!is_open()) return;
  Queue& queue = queues[index];
  const auto told = static_cast<std::ptrdiff_t>(std::min(round, queue.elements.size()));
  queue.elements.erase(queue.elements.begin(), queue.elements.begin() + told);
  if (defect() != Defect::queue_keeps_attempts) queue.attempts = 0;
}

}  // namespace

bool is_exiting() { return exits; }

}  // namespace framestorm::stand_in

extern "C" {

using namespace framestorm::stand_in;

ASGST_Queue* ASGST_RegisterQueue(JNIEnv*, int size, int options, ASGST_Handler fun,
                                 void* argument) {
  if (fun == nullptr || size < 1 || size > 1 << 20) return nullptr;
  void* const room = make_room();
  if (allocate != nullptr && room == nullptr) return nullptr;
  if (exits || framestorm_stand_in()->kind == ASGST_NO_THREAD) {
    drop_room(room);
    return nullptr;
  }
  const bool again = defect() == Defect::queue_given_again && numbers > 0;
  queues.push_back({.number = again ? numbers : ++numbers,
                    .room = room,
                    .capacity = size,
                    .options = options,
                    .handler = fun,
                    .argument = argument});
  return ticket_of(queues.back());
}

bool ASGST_DeregisterQueue(JNIEnv*, ASGST_Queue* ticket) {
  Queue* const queue = find(ticket);
  if (queue == nullptr) return false;
  end_queue(queue);
  return true;
}

int ASGST_Enqueue(ASGST_Queue* ticket, void* ucontext, void* argument) {
  Queue* const queue = find(ticket);
  if (queue == nullptr) return ASGST_ENQUEUE_NO_QUEUE;
  ++queue->attempts;
  const size_t most =
      static_cast<size_t>(queue->capacity) + (defect() == Defect::queue_takes_one_too_many ? 1 : 0);
  if (queue->elements.size() >= most) return ASGST_ENQUEUE_FULL_QUEUE;
  const int kind = take(ucontext);
  if (kind > 0) queue->elements.push_back({{nullptr, nullptr, nullptr, argument}, ucontext});
  return kind;
}

int ASGST_GetEnqueuableElement(void* ucontext, ASGST_QueueElement* element) {
  const int kind = take(ucontext);
  if (kind <= 0 && defect() != Defect::queue_element_of_an_error) return kind;
  struct Top {
    ASGST_QueueElement* element;
  } top = {element};
  element->arg = nullptr;
  ASGST_RunWithIterator(
      ucontext, 0,
      [](ASGST_Iterator* iterator, void* argument) {
        ASGST_Frame frame = {};
        if (ASGST_NextFrame(iterator, &frame) != 1) return;
        ASGST_QueueElement& to = *static_cast<Top*>(argument)->element;
        to = {frame.pc, frame.fp, frame.sp, nullptr};
      },
      &top);
  return kind;
}

ASGST_QueueElement* ASGST_GetQueueElement(ASGST_Queue* ticket, int n) {
  Queue* const queue = find(ticket);
  if (queue == nullptr) return nullptr;
  const int size = static_cast<int>(queue->elements.size());
  if (defect() == Defect::queue_counts_back_from_the_second && n < 0) --n;
  if (n >= size || n < -size) return nullptr;
  return &queue->elements[static_cast<size_t>(n < 0 ? size + n : n)].shown;
}

void ASGST_ResizeQueue(ASGST_Queue* ticket, int size) {
  Queue* const queue = find(ticket);
  if (queue != nullptr && size >= 1 && size <= 1 << 20) queue->asked = size;
}

ASGST_QueueSizeInfo ASGST_GetQueueSizeInfo(ASGST_Queue* ticket) {
  const Queue* const queue = find(ticket);
  if (queue == nullptr) return {0, 0, 0};
  return {static_cast<jint>(queue->elements.size()), queue->capacity, queue->attempts};
}

void ASGST_SetOnQueueProcessingStart(ASGST_Queue* ticket, int options, bool offer,
                                     ASGST_OnQueueSafepointHandler before, void* argument) {
  if (Queue* const queue = find(ticket)) queue->start = {before, offer, options, argument};
}
void ASGST_SetOnQueueProcessingEnd(ASGST_Queue* ticket, int options, bool offer,
                                   ASGST_OnQueueSafepointHandler end, void* argument) {
  if (Queue* const queue = find(ticket)) queue->end = {end, offer, options, argument};
}

int framestorm_queues_begin(void* (*with)(size_t), void (*without)(void*), void*) {
  queues.clear();
  begin_marks();
  allocate = with;
  release = without;
  return framestorm_stand_in()->kind == ASGST_NO_THREAD ? 0 : 1;
}

void framestorm_queues_poll(void* ucontext) {
  if (polls && defect() != Defect::queue_polls_in_handlers) return;
  polls = true;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (queues[i].number != 0 && !queues[i].elements.empty()) tell_all(i, ucontext);
    if (queues[i].number != 0) resize(i);
  }
  polls = false;
}

void framestorm_queues_exit() {
  exits = polls = true;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (queues[i].number != 0 && !queues[i].elements.empty() &&
        defect() != Defect::queue_drops_at_the_end) {
      tell_all(i, nullptr);
    }
    if (queues[i].number != 0) end_queue(&queues[i]);
  }
  exit_with_marks();
  exits = polls = false;
}

void framestorm_queues_end() {
  for (Queue& queue : queues) {
    if (queue.number != 0 && defect() != Defect::queue_goes_on_after_the_end) end_queue(&queue);
  }
  end_marks();
  polls = exits = false;
  allocate = nullptr;
  release = nullptr;
}
}
