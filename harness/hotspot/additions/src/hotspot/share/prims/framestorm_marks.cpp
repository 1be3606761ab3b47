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
#include "memory/resourceArea.hpp"
#include "runtime/handles.inline.hpp"
#include "runtime/javaThread.hpp"

#ifdef ASSERT

// Which int of an area counts the marks of a kind that a thread is in, both private to it: the one
// that setting a mark changes. The number of ints when it is not just one.
template <class Mark, class Area>
static size_t find_count(const Area* area) {
  const int* const words = reinterpret_cast<const int*>(area);
  const size_t size = sizeof(Area) / sizeof(int);
  int before[size];
  memcpy(before, words, sizeof(before));
  Mark mark;
  size_t found = size;
  for (size_t i = 0; i < size; i++) {
    if (words[i] == before[i]) continue;
    if (found != size) return size;
    found = i;
  }
  return found;
}

template <class Area>
static int* count_of(Area* area, size_t at) {
  return area == nullptr || at == sizeof(Area) / sizeof(int) ? nullptr
                                                             : reinterpret_cast<int*>(area) + at;
}

extern "C" {

// How many NoHandleMarks and ResourceMarks a thread is in, which a walk that is abandoned may leave
// wrong: the two counters, in the thread's HandleArea and ResourceArea; null what was not found.
// First call on a thread of the VM.
JNIEXPORT void framestorm_mark_counts(Thread* thread, int* counts[2]) {
  static const size_t no_handle = find_count<NoHandleMark>(Thread::current()->handle_area());
  static const size_t resource = find_count<ResourceMark>(Thread::current()->resource_area());
  counts[0] = count_of(thread->handle_area(), no_handle);
  counts[1] = count_of(thread->resource_area(), resource);
}

}  // extern "C"

#endif  // ASSERT
