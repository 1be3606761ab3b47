/*
 * This code is free software; you can redistribute it and/or modify it under the terms of the GNU
 * General Public License version 2 only, as published by the Free Software Foundation, with the
 * "Classpath" exception as provided in the LICENSE file that accompanies OpenJDK.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without
 * even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU
 * General Public License version 2 for more details.
 */

// What an abandoned walk leaves wrong in a debug VM's thread, for who has to put it right.

#include "jni.h"
#include "runtime/handles.inline.hpp"
#include "runtime/javaThread.hpp"

#ifdef ASSERT

extern "C" {

// How many NoHandleMarks a thread is in, which a walk that is abandoned may leave wrong: the
// counter, of the thread's HandleArea. Null when it was not found. First call on a thread of the
// VM.
JNIEXPORT int* framestorm_no_handle_marks(Thread* thread) {
  static const size_t offset = [] {
    const HandleArea* const area = Thread::current()->handle_area();
    const int* const words = reinterpret_cast<const int*>(area);
    const size_t count = sizeof(HandleArea) / sizeof(int);
    int before[sizeof(HandleArea) / sizeof(int)];
    memcpy(before, words, sizeof(before));
    NoHandleMark mark;
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
      if (words[i] != before[i]) found = i;
    }
    return found;
  }();
  HandleArea* const area = thread->handle_area();
  return offset == sizeof(HandleArea) / sizeof(int) || area == nullptr
             ? nullptr
             : reinterpret_cast<int*>(area) + offset;
}

}  // extern "C"

#endif  // ASSERT
