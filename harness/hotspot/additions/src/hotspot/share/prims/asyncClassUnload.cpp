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

#include "prims/asyncClassUnload.hpp"

#include "memory/allocation.inline.hpp"
#include "oops/array.hpp"
#include "oops/instanceKlass.hpp"
#include "profile2.h"
#include "runtime/atomic.hpp"
#include "runtime/os.hpp"
#include "runtime/thread.hpp"

namespace {

struct Registration {
  ASGST_ClassUnloadHandler handler;  // null: free
  void* argument;
};

Registration registrations[64];
volatile int registrations_lock = 0;
volatile int registered = 0;
Thread* volatile thread_in_handler = nullptr;

// Held for a look at all registrations, never while a handler runs.
class RegistrationsLock {
 public:
  RegistrationsLock() {
    while (Atomic::cmpxchg(&registrations_lock, 0, 1) != 0) {
      os::naked_yield();
    }
  }
  ~RegistrationsLock() { Atomic::release_store(&registrations_lock, 0); }
};

// Null when there is none.
Registration* find(ASGST_ClassUnloadHandler handler, const void* argument) {
  for (Registration& registration : registrations) {
    if (registration.handler == handler &&
        (handler == nullptr || registration.argument == argument)) {
      return &registration;
    }
  }
  return nullptr;
}

int count_methods(const InstanceKlass* klass) {
  int count = 0;
  for (const InstanceKlass* version = klass; version != nullptr;
       version = version->previous_versions()) {
    count += version->methods() == nullptr ? 0 : version->methods()->length();
  }
  return count;
}

void copy_methods(const InstanceKlass* klass, ASGST_Method* methods) {
  for (const InstanceKlass* version = klass; version != nullptr;
       version = version->previous_versions()) {
    const Array<Method*>* const of_version = version->methods();
    for (int i = 0; of_version != nullptr && i < of_version->length(); i++) {
      *methods++ = of_version->at(i);
    }
  }
}

}  // namespace

void AsyncClassUnload::call_handlers(InstanceKlass* klass) {
  if (Atomic::load_acquire(&registered) == 0) return;
  const int count = count_methods(klass);
  ASGST_Method* const methods = NEW_C_HEAP_ARRAY(ASGST_Method, count + 1, mtServiceability);
  copy_methods(klass, methods);
  Atomic::store(&thread_in_handler, Thread::current_or_null_safe());
  for (Registration& registration : registrations) {
    // Both at once: the place may be given to another pair.
    Registration called;
    {
      RegistrationsLock lock;
      called = registration;
    }
    if (called.handler != nullptr) {
      called.handler(klass, methods, count, /*redefined=*/false, called.argument);
    }
  }
  Atomic::store(&thread_in_handler, static_cast<Thread*>(nullptr));
  FREE_C_HEAP_ARRAY(ASGST_Method, methods);
}

bool AsyncClassUnload::is_in_handler() {
  Thread* const thread = Atomic::load(&thread_in_handler);
  return thread != nullptr && thread == Thread::current_or_null_safe();
}

JNIEXPORT int JNICALL ASGST_RegisterClassUnloadHandler(ASGST_ClassUnloadHandler handler,
                                                       void* argument) {
  if (handler == nullptr) return 0;
  RegistrationsLock lock;
  if (find(handler, argument) != nullptr) return 0;
  Registration* const free = find(nullptr, nullptr);
  if (free == nullptr) return 0;
  *free = {handler, argument};
  Atomic::inc(&registered);
  return 1;
}

JNIEXPORT int JNICALL ASGST_DeregisterClassUnloadHandler(ASGST_ClassUnloadHandler handler,
                                                         void* argument) {
  if (handler == nullptr) return 0;
  RegistrationsLock lock;
  Registration* const found = find(handler, argument);
  if (found == nullptr) return 0;
  *found = {nullptr, nullptr};
  Atomic::dec(&registered);
  return 1;
}
