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

#ifndef SHARE_PRIMS_ASYNCTICKETS_HPP
#define SHARE_PRIMS_ASYNCTICKETS_HPP

#include "memory/allStatic.hpp"
#include "memory/allocation.inline.hpp"
#include "runtime/atomic.hpp"
#include "runtime/os.hpp"
#include "utilities/globalDefinitions.hpp"

// For a few instructions; not for signal handlers.
class AsyncSpinLock : public StackObj {
  volatile int* const _word;

 public:
  explicit AsyncSpinLock(volatile int* word) : _word(word) {
    while (Atomic::cmpxchg(_word, 0, 1) != 0) os::naked_yield();
  }
  ~AsyncSpinLock() { Atomic::release_store(_word, 0); }
};

// What profilers hold of an object: a number that is never given again, and the object's place in a
// table. So one that has ended is refused for ever. Objects are never freed, but given to others,
// under another number.
//
// A T has `volatile uint64_t number` (0: ended), `uint64_t place`, and `T* next`, which is free for
// other use while it is claimed.
template <typename T>
class AsyncTickets : AllStatic {
  static constexpr int kPlaceBits = 16;

  static T* volatile _places[1 << kPlaceBits];
  static int _used_places;
  static T* _free;
  static uint64_t _numbers;

 public:
  // Async-signal-safe. Null for what is no ticket, or was one.
  static T* resolve(const void* ticket) {
    const uintptr_t word = p2u(ticket);
    T* const object = Atomic::load_acquire(&_places[word & right_n_bits(kPlaceBits)]);
    const uint64_t number = word >> kPlaceBits;
    if (object == nullptr || number == 0) return nullptr;
    return Atomic::load_acquire(&object->number) == number ? object : nullptr;
  }
  static void* ticket_of(const T* object, uint64_t number) {
    return reinterpret_cast<void*>((number << kPlaceBits) | object->place);
  }

  // All that follow: with a lock of the caller's.

  // One that is empty, and has no number yet. Null when there is no place.
  static T* claim() {
    T* object = _free;
    if (object != nullptr) {
      _free = object->next;
    } else {
      if (_used_places == 1 << kPlaceBits) return nullptr;
      object = NEW_C_HEAP_OBJ_RETURN_NULL(T, mtThread);
      if (object == nullptr) return nullptr;
      object->place = _used_places++;
    }
    const uint64_t place = object->place;
    *object = {};
    object->place = place;
    return object;
  }
  static void open(T* object) {
    Atomic::release_store(&object->number, ++_numbers);
    Atomic::release_store(&_places[object->place], object);
  }
  static void end(T* object) { Atomic::release_store(&object->number, uint64_t(0)); }
  // When no signal handler is in it.
  static void release(T* object) {
    end(object);
    object->next = _free;
    _free = object;
  }
};

template <typename T>
T* volatile AsyncTickets<T>::_places[1 << kPlaceBits];
template <typename T>
int AsyncTickets<T>::_used_places = 0;
template <typename T>
T* AsyncTickets<T>::_free = nullptr;
template <typename T>
uint64_t AsyncTickets<T>::_numbers = 0;

#endif  // SHARE_PRIMS_ASYNCTICKETS_HPP
