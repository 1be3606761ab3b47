// What profile2.h promises about safepoint queues, done the plain way: a queue is a list of elements.
// Signal context: allocates nothing.
#pragma once

#include <profile2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace framestorm {

// The allocations of one walk: the n-th from now on fails.
class FailingAllocation {
 public:
  void reset() { left_ = kNone; }
  void fail_after(size_t allocations) { left_ = allocations; }
  // Whether this one does.
  bool next_fails() {
    if (left_ == kNone) return false;
    if (left_-- > 0) return false;
    left_ = kNone;
    return true;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  size_t left_ = kNone;
};

class QueueModel {
 public:
  static constexpr size_t kMostQueues = 8;
  static constexpr int kMostElements = 14;  // that a call asks for

  enum class OnSafepoint : uint8_t { none, plain, with_iterator };
  struct Element {
    uintptr_t argument = 0;
    size_t origin = 0;  // which context it was noted of
  };
  struct Queue {
    const void* ticket = nullptr;
    bool live = false;
    int capacity = 0;
    int asked = 0;  // 0: no resize
    int attempts = 0;
    OnSafepoint start = OnSafepoint::none;
    OnSafepoint end = OnSafepoint::none;
    std::array<Element, kMostElements> elements = {};
    size_t size = 0;
    size_t round = 0;  // elements that are told at this poll
    size_t told = 0;
  };
  enum class EventKind : uint8_t { none, start, element, end };
  // What a poll does next: which handler of which queue it calls.
  struct Event {
    EventKind kind = EventKind::none;
    size_t queue = 0;
    Element element = {};
  };

  // `may_register`: the thread may have queues.
  void reset(bool may_register) {
    count_ = 0;
    may_register_ = may_register;
    exits_ = polls_ = false;
    allocation_.reset();
  }
  FailingAllocation& allocation() { return allocation_; }
  bool exits() const { return exits_; }
  size_t count() const { return count_; }
  Queue& at(size_t index) { return queues_[index]; }
  // Null for what is no queue, or was one.
  Queue* find(const void* ticket) {
    const auto end = queues_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find_if(queues_.begin(), end, [ticket](const Queue& queue) {
      return queue.live && queue.ticket == ticket;
    });
    return found == end ? nullptr : &*found;
  }

  // Whether RegisterQueue gives one.
  bool registers(int size) { return is_size(size) && allocates_ring() && may_register_ && !exits_; }
  void add(const void* ticket, int size) {
    queues_[count_++] = {.ticket = ticket, .live = true, .capacity = size};
  }
  // What Enqueue returns, when noting the thread gives `taken`.
  static int enqueue(Queue* queue, int taken) {
    if (queue == nullptr) return ASGST_ENQUEUE_NO_QUEUE;
    ++queue->attempts;
    return queue->size >= static_cast<size_t>(queue->capacity) ? ASGST_ENQUEUE_FULL_QUEUE : taken;
  }
  static bool push(Queue* queue, const Element& element) {
    if (queue->size == queue->elements.size()) return false;
    queue->elements[queue->size++] = element;
    return true;
  }
  // Null when there is none.
  static Element* element(Queue* queue, int n) {
    if (queue == nullptr) return nullptr;
    const int size = static_cast<int>(queue->size);
    if (n >= size || n < -size) return nullptr;
    return &queue->elements[static_cast<size_t>(n < 0 ? size + n : n)];
  }
  static void resize(Queue* queue, int size) {
    if (queue != nullptr && is_size(size)) queue->asked = size;
  }
  static bool agrees(const Queue* queue, const ASGST_QueueSizeInfo& info) {
    if (queue == nullptr) return info.size == 0 && info.capacity == 0 && info.attempts == 0;
    return info.size == static_cast<jint>(queue->size) && info.capacity == queue->capacity &&
           info.attempts == queue->attempts;
  }

  // The queues one after the other, those too that handlers register meanwhile; each with what it
  // holds when its turn comes. `exits`: the thread ends, and they do.
  void begin_poll(bool exits) {
    at_ = 0;
    phase_ = Phase::next_queue;
    exits_ = exits;
    polls_ = true;
  }
  Event next_event() {
    while (at_ < count_) {
      Queue& queue = queues_[at_];
      switch (phase_) {
        case Phase::next_queue:
          if (!queue.live) {
            ++at_;
          } else if (queue.size == 0) {
            settle(&queue);
          } else {
            queue.round = queue.size;
            queue.told = 0;
            phase_ = Phase::elements;
            if (queue.start != OnSafepoint::none) return {EventKind::start, at_};
          }
          break;
        case Phase::elements:
          if (!queue.live) {
            settle(&queue);
          } else if (queue.told < queue.round) {
            return {EventKind::element, at_, queue.elements[queue.told++]};
          } else {
            phase_ = Phase::end;
            if (queue.end != OnSafepoint::none) return {EventKind::end, at_};
          }
          break;
        case Phase::end:
          std::move(queue.elements.begin() + static_cast<std::ptrdiff_t>(queue.round),
                    queue.elements.begin() + static_cast<std::ptrdiff_t>(queue.size),
                    queue.elements.begin());
          queue.size -= queue.round;
          queue.attempts = 0;
          settle(&queue);
          break;
      }
    }
    return {};
  }
  void end_poll() { exits_ = polls_ = false; }
  bool polls() const { return polls_; }

 private:
  enum class Phase : uint8_t { next_queue, elements, end };

  static bool is_size(int size) { return size >= 1 && size <= 1 << 20; }
  bool allocates_ring() { return !allocation_.next_fails() && !allocation_.next_fails(); }

  // A queue's turn is over.
  void settle(Queue* queue) {
    ++at_;
    phase_ = Phase::next_queue;
    if (exits_) queue->live = false;
    if (!queue->live || queue->asked == 0) return;
    const int asked = queue->asked;
    if (asked == queue->capacity || !allocates_ring()) {
      queue->asked = 0;
    } else if (queue->size <= static_cast<size_t>(asked)) {
      queue->capacity = asked;
      queue->asked = 0;
    }
  }

  std::array<Queue, kMostQueues> queues_;
  size_t count_ = 0;
  bool may_register_ = false;
  bool exits_ = false;
  bool polls_ = false;
  size_t at_ = 0;
  Phase phase_ = Phase::next_queue;
  FailingAllocation allocation_;
};

}  // namespace framestorm
