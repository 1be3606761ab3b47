/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#include "prims/asyncQueues.hpp"

#include "prims/asyncCrashProtection.hpp"
#include "prims/asyncSample.hpp"
#include "prims/asyncThreads.hpp"
#include "prims/asyncTickets.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "profile2.h"
#include "runtime/atomic.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/os.hpp"
#include "runtime/safepointMechanism.inline.hpp"

volatile int AsyncQueues::_live = 0;
volatile int AsyncQueues::_lock = 0;
bool AsyncQueues::may_read_heap = true;
AsyncQueues::Memory AsyncQueues::memory = {[](size_t bytes) { return os::malloc(bytes, mtThread); },
                                           [](void* block) { os::free(block); }};

namespace {

constexpr int kMaxElements = 1 << 20;

// Room for the elements; those with the numbers n, n + capacity ... have one place.
struct Ring {
  int capacity;
  AsyncSample* samples;

  static Ring* make(int capacity) {
    Ring* const ring = static_cast<Ring*>(AsyncQueues::memory.allocate(sizeof(Ring)));
    if (ring == nullptr) return nullptr;
    ring->capacity = capacity;
    ring->samples =
        static_cast<AsyncSample*>(AsyncQueues::memory.allocate(sizeof(AsyncSample) * capacity));
    if (ring->samples != nullptr) return ring;
    AsyncQueues::memory.release(ring);
    return nullptr;
  }
  static void free(Ring* ring) {
    if (ring == nullptr) return;
    AsyncQueues::memory.release(ring->samples);
    AsyncQueues::memory.release(ring);
  }
  AsyncSample* at(uint64_t number) const { return &samples[number % capacity]; }
};

struct OnSafepoint {
  ASGST_OnQueueSafepointHandler handler;
  void* argument;
  int options;
  bool offer_iterator;
};

// One of a thread's queues. Elements are put in by signal handlers on the thread (or while it is
// stopped), and taken out by the thread itself: so each step of the one is whole to the other, and
// no lock is needed. What a queue is to whom else is behind the registry's lock.
struct Queue {
  volatile uint64_t number;  // 0: ended
  Queue* next;               // of the thread
  JavaThread* volatile thread;
  uint64_t place;
  int options;
  ASGST_Handler handler;
  void* argument;
  OnSafepoint start;
  OnSafepoint end;

  Ring* volatile ring;
  volatile uint64_t head;  // number of the oldest element
  volatile uint64_t tail;  // and of the next to come
  volatile int attempts;
  volatile int asked_size;  // 0: none
  volatile bool resizing;
  volatile bool working;  // handlers of it may be running

  bool has_elements() const { return Atomic::load(&tail) != Atomic::load(&head); }
  bool has_work() const { return number == 0 || asked_size != 0 || has_elements(); }
};

}  // namespace

// All queues: by ticket, and by thread.
class AsyncQueueRegistry : AllStatic {
  typedef AsyncTickets<Queue> Tickets;
  static constexpr int kThreads = 1024;  // a power of two

  static Queue* _of_threads[kThreads];  // the queues of all threads with one hash

  static Queue** of_hash(const Thread* thread) {
    return &_of_threads[(p2u(thread) * UCONST64(0x9e3779b97f4a7c15)) >> 54];
  }

 public:
  // Never held while a handler runs.
  struct Lock : AsyncSpinLock {
    Lock() : AsyncSpinLock(&AsyncQueues::_lock) {}
  };

  // Async-signal-safe. Null for what is no queue, or was one.
  static Queue* resolve(const ASGST_Queue* ticket) { return Tickets::resolve(ticket); }
  static ASGST_Queue* ticket_of(const Queue* queue, uint64_t number) {
    return static_cast<ASGST_Queue*>(Tickets::ticket_of(queue, number));
  }

  // All that follow: with the lock.

  // The thread's first queue, or its first after another one.
  static Queue* first(const Thread* thread) { return next(*of_hash(thread), thread); }
  static Queue* after(const Queue* queue) { return next(queue->next, queue->thread); }
  static Queue* next(Queue* from, const Thread* thread) {
    while (from != nullptr && from->thread != thread) from = from->next;
    return from;
  }
  template <typename Predicate>
  static bool any_of(const Thread* thread, Predicate predicate) {
    Queue* queue = first(thread);
    while (queue != nullptr && !predicate(queue)) queue = after(queue);
    return queue != nullptr;
  }

  // Null when there is no place.
  static Queue* add(JavaThread* thread, Ring* ring) {
    Queue* const queue = Tickets::claim();
    if (queue == nullptr) return nullptr;
    queue->thread = thread;
    queue->ring = ring;
    Queue** link = of_hash(thread);
    while (*link != nullptr) link = &(*link)->next;
    *link = queue;
    Atomic::inc(&AsyncQueues::_live);
    return queue;
  }
  static void open(Queue* queue) { Tickets::open(queue); }
  // Its elements are not told any more.
  static void end(Queue* queue) { Tickets::end(queue); }
  // On its thread, or that of nobody: no signal handler is in it.
  static void remove(Queue* queue) {
    end(queue);
    Queue** link = of_hash(queue->thread);
    while (*link != queue) link = &(*link)->next;
    *link = queue->next;
    Ring* const ring = queue->ring;
    queue->ring = nullptr;
    queue->thread = nullptr;
    Tickets::release(queue);
    Atomic::dec(&AsyncQueues::_live);
    Ring::free(ring);
  }
};

Queue* AsyncQueueRegistry::_of_threads[AsyncQueueRegistry::kThreads];

typedef AsyncQueueRegistry Registry;

namespace {

void call(const OnSafepoint& on_safepoint, ASGST_Queue* ticket, const AsyncWalkedThread& thread,
          const AsyncContext* at, int error) {
  if (on_safepoint.handler == nullptr) return;
  if (!on_safepoint.offer_iterator) {
    on_safepoint.handler(ticket, nullptr, on_safepoint.argument);
    return;
  }
  const bool c_frames = (on_safepoint.options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
  AsyncStackIterator::Source source(
      AsyncStackIterator::walker_of(thread, c_frames, on_safepoint.options));
  if (AsyncQueues::may_read_heap) source.walker.give_frozen_frames();
  source.error = error;
  if (error == 0) {
    const AsyncWalkedThread::Start start = thread.start(&source.walker, at, false);
    if (start != AsyncWalkedThread::Start::started) {
      source.error = AsyncStackIterator::error_of(start);
    }
  }
  AsyncStackIterator::run(source, [&](ASGST_Iterator* iterator) {
    on_safepoint.handler(ticket, iterator, on_safepoint.argument);
  });
}

void resize(Queue* queue) {
  const int size = Atomic::xchg(&queue->asked_size, 0);
  Ring* const old = queue->ring;
  if (size == 0 || size == old->capacity) return;
  Ring* const ring = Ring::make(size);
  if (ring == nullptr) return;
  // A signal handler enqueues before or after.
  queue->resizing = true;
  OrderAccess::fence();
  const bool fits = queue->tail - queue->head <= uint64_t(size);
  if (fits) {
    for (uint64_t i = queue->head; i != queue->tail; i++) *ring->at(i) = *old->at(i);
    Atomic::release_store(&queue->ring, ring);
  }
  OrderAccess::fence();
  queue->resizing = false;
  if (!fits) Atomic::cmpxchg(&queue->asked_size, 0, size);
  Ring::free(fits ? old : ring);
}

// Tells all elements there are. `error`: or that, in their place. The queue may be ended meanwhile,
// by its handlers too, but not freed.
void tell_all(Queue* queue, const AsyncWalkedThread& thread, const AsyncContext* at, int error) {
  const uint64_t number = queue->number;
  ASGST_Queue* const ticket = Registry::ticket_of(queue, number);
  const uint64_t end = Atomic::load_acquire(&queue->tail);
  OnSafepoint on_start, on_end;
  {
    Registry::Lock lock;
    on_start = queue->start;
  }
  const auto is_open = [&] { return number != 0 && Atomic::load(&queue->number) == number; };
  if (is_open()) call(on_start, ticket, thread, at, error);
  for (uint64_t i = queue->head; i != end && is_open(); i++) {
    const AsyncSample& sample = *queue->ring->at(i);
    AsyncStackIterator::Source source =
        sample.tell(thread, at, queue->options, AsyncQueues::may_read_heap);
    if (error != 0) source.error = error;
    AsyncStackIterator::run(source, [&](ASGST_Iterator* iterator) {
      queue->handler(iterator, queue->argument, sample.argument());
    });
  }
  if (!is_open()) return;
  {
    Registry::Lock lock;
    on_end = queue->end;
  }
  call(on_end, ticket, thread, at, error);
  Atomic::release_store(&queue->head, end);
  Atomic::store(&queue->attempts, 0);
}

}  // namespace

bool AsyncQueues::has_work(const JavaThread* thread) {
  Registry::Lock lock;
  return Registry::any_of(thread, [](const Queue* queue) { return queue->has_work(); });
}

void AsyncQueues::work(JavaThread* thread, const AsyncContext* at) {
  AsyncWalkedThread walked;
  if (!AsyncWalkedThread::of(thread, &walked)) return;
  Queue* queue = nullptr;
  {
    Registry::Lock lock;
    // A handler of this thread made it poll.
    if (Registry::any_of(thread, [](const Queue* each) { return each->working; })) return;
    queue = Registry::first(thread);
  }
  while (queue != nullptr) {
    queue->working = true;
    if (queue->has_elements()) tell_all(queue, walked, at, 0);
    if (queue->number != 0) resize(queue);
    queue->working = false;
    Registry::Lock lock;
    Queue* const next = Registry::after(queue);
    if (queue->number == 0) Registry::remove(queue);
    queue = next;
  }
}

void AsyncQueues::note_exception(const JavaThread* thread, address return_address) {
  Registry::Lock lock;
  Registry::any_of(thread, [=](Queue* queue) {
    for (uint64_t i = queue->head; i != queue->tail; i++) {
      queue->ring->at(i)->note_exception(p2u(return_address));
    }
    return false;
  });
}

void AsyncQueues::end_of(JavaThread* thread) {
  AsyncWalkedThread walked;
  if (!AsyncWalkedThread::of(thread, &walked)) return;
  for (;;) {
    Queue* queue = nullptr;
    {
      Registry::Lock lock;
      queue = Registry::first(thread);
    }
    if (queue == nullptr) return;
    queue->working = true;
    if (queue->has_elements()) tell_all(queue, walked, nullptr, ASGST_THREAD_EXIT);
    Registry::Lock lock;
    Registry::remove(queue);
  }
}

void AsyncQueues::forget(const Thread* thread) {
  Registry::Lock lock;
  while (Queue* const queue = Registry::first(thread)) Registry::remove(queue);
}

namespace {

bool find_thread(JNIEnv* env, AsyncWalkedThread* thread) {
  if (env != nullptr) return AsyncWalkedThread::with_env(env, thread);
  *thread = AsyncWalkedThread::current();
  return thread->java_thread() != nullptr;
}

bool is_size(int size) { return size >= 1 && size <= kMaxElements; }

bool is_full(const Queue* queue) {
  return Atomic::load(&queue->tail) - Atomic::load(&queue->head) >= uint64_t(queue->ring->capacity);
}

int take(AsyncSample* sample, const Queue* queue, void* ucontext) {
  struct Taking {
    AsyncSample* sample;
    AsyncWalkedThread thread;
    void* ucontext;
    int options;
    int result;
  } taking = {sample, AsyncWalkedThread(), ucontext, queue->options, ASGST_NO_THREAD};
  JavaThread* const thread = queue->thread;
  if (!AsyncWalkedThread::of(thread, &taking.thread)) return ASGST_NO_THREAD;
  const auto body = [](void* argument) {
    Taking* const t = static_cast<Taking*>(argument);
    t->result = t->sample->take(t->thread, t->ucontext, t->options);
  };
  if (Thread::current_or_null_safe() == thread) {
    body(&taking);
  } else if (!AsyncCrashProtection::call(body, &taking)) {
    return ASGST_ENQUEUE_OTHER_ERROR;
  }
  return taking.result;
}

int enqueue(Queue* queue, void* ucontext, void* argument, bool faults_arrive) {
  Atomic::inc(&queue->attempts);
  if (!faults_arrive) return ASGST_FAULTS_BLOCKED;
  if (queue->resizing) return ASGST_ENQUEUE_OTHER_ERROR;
  if (is_full(queue)) return ASGST_ENQUEUE_FULL_QUEUE;
  AsyncSample sample;
  const int kind = take(&sample, queue, ucontext);
  if (kind <= 0) return kind;
  sample.element()->arg = argument;
  uint64_t number = Atomic::load(&queue->tail);
  // Another signal's handler may have come in between.
  for (;;) {
    if (is_full(queue)) return ASGST_ENQUEUE_FULL_QUEUE;
    const uint64_t found = Atomic::cmpxchg(&queue->tail, number, number + 1);
    if (found == number) break;
    number = found;
  }
  *queue->ring->at(number) = sample;
  SafepointMechanism::arm_local_poll_release(queue->thread);
  return kind;
}

void set(OnSafepoint Queue::* which, ASGST_Queue* ticket, const OnSafepoint& to) {
  Registry::Lock lock;
  Queue* const queue = Registry::resolve(ticket);
  if (queue != nullptr) queue->*which = to;
}

}  // namespace

extern "C" {

JNIEXPORT ASGST_Queue* JNICALL ASGST_RegisterQueue(JNIEnv* env, int size, int options,
                                                   ASGST_Handler fun, void* argument) {
  if (fun == nullptr || !is_size(size)) return nullptr;
  Ring* const ring = Ring::make(size);
  if (ring == nullptr) return nullptr;
  {
    Registry::Lock lock;
    // One that is found is not freed before the lock is given back, see AsyncQueues::remove.
    AsyncWalkedThread thread;
    Queue* const queue = find_thread(env, &thread) && !thread.java_thread()->is_exiting()
                             ? Registry::add(thread.java_thread(), ring)
                             : nullptr;
    if (queue != nullptr) {
      queue->options = options;
      queue->handler = fun;
      queue->argument = argument;
      Registry::open(queue);
      return Registry::ticket_of(queue, queue->number);
    }
  }
  Ring::free(ring);
  return nullptr;
}

JNIEXPORT bool JNICALL ASGST_DeregisterQueue(JNIEnv* env, ASGST_Queue* ticket) {
  Registry::Lock lock;
  AsyncWalkedThread thread;
  Queue* const queue = Registry::resolve(ticket);
  if (queue == nullptr || !find_thread(env, &thread) || queue->thread != thread.java_thread()) {
    return false;
  }
  Registry::end(queue);
  if (Thread::current_or_null_safe() == queue->thread && !queue->working) {
    Registry::remove(queue);
  } else {
    // The thread frees it, when none of its signal handlers can be in it.
    SafepointMechanism::arm_local_poll_release(queue->thread);
  }
  return true;
}

JNIEXPORT int JNICALL ASGST_Enqueue(ASGST_Queue* ticket, void* ucontext, void* argument) {
  Queue* const queue = Registry::resolve(ticket);
  if (queue == nullptr) return ASGST_ENQUEUE_NO_QUEUE;
  return enqueue(queue, ucontext, argument,
                 AsyncCrashProtection::faults_arrive(__builtin_return_address(0)));
}

JNIEXPORT int JNICALL ASGST_GetEnqueuableElement(void* ucontext, ASGST_QueueElement* element) {
  if (element == nullptr) return ASGST_INVALID_ARGUMENT;
  if (!AsyncCrashProtection::faults_arrive(__builtin_return_address(0))) {
    return ASGST_FAULTS_BLOCKED;
  }
  AsyncSample sample;
  const int kind = sample.take(AsyncWalkedThread::current(), ucontext, 0);
  if (kind > 0) *element = *sample.element();
  return kind;
}

JNIEXPORT ASGST_QueueElement* JNICALL ASGST_GetQueueElement(ASGST_Queue* ticket, int n) {
  const Queue* const queue = Registry::resolve(ticket);
  if (queue == nullptr) return nullptr;
  const int64_t size = checked_cast<int64_t>(queue->tail - queue->head);
  if (n >= size || n < -size) return nullptr;
  return queue->ring->at(n < 0 ? queue->tail + n : queue->head + n)->element();
}

JNIEXPORT void JNICALL ASGST_ResizeQueue(ASGST_Queue* ticket, int size) {
  Queue* const queue = Registry::resolve(ticket);
  if (queue == nullptr || !is_size(size)) return;
  Atomic::store(&queue->asked_size, size);
  SafepointMechanism::arm_local_poll_release(queue->thread);
}

JNIEXPORT ASGST_QueueSizeInfo JNICALL ASGST_GetQueueSizeInfo(ASGST_Queue* ticket) {
  const Queue* const queue = Registry::resolve(ticket);
  if (queue == nullptr) return {0, 0, 0};
  return {static_cast<jint>(queue->tail - queue->head), queue->ring->capacity, queue->attempts};
}

JNIEXPORT void JNICALL ASGST_SetOnQueueProcessingStart(ASGST_Queue* queue, int options,
                                                       bool offerIterator,
                                                       ASGST_OnQueueSafepointHandler before,
                                                       void* arg) {
  set(&Queue::start, queue, {before, arg, options, offerIterator});
}

JNIEXPORT void JNICALL ASGST_SetOnQueueProcessingEnd(ASGST_Queue* queue, int options,
                                                     bool offerIterator,
                                                     ASGST_OnQueueSafepointHandler end, void* arg) {
  set(&Queue::end, queue, {end, arg, options, offerIterator});
}

}  // extern "C"
