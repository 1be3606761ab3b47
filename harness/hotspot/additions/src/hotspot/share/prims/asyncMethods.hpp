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

#ifndef SHARE_PRIMS_ASYNCMETHODS_HPP
#define SHARE_PRIMS_ASYNCMETHODS_HPP

#include "jni.h"
#include "memory/allStatic.hpp"
#include "runtime/safefetch.hpp"
#include "utilities/globalDefinitions.hpp"

class InstanceKlass;
class Method;
class Symbol;

// Which words are methods and classes, and what can be read of them, for walkers that meet
// arbitrary words in frames.
//
// Async-signal-safe but for what says otherwise: every load is a SafeFetch, nothing is allocated,
// no lock is taken. True of a moment of the call; it stays true while the class cannot be unloaded,
// as while a frame of it is on a halted stack.
class AsyncMethods : AllStatic {
  static const intptr_t unlikely = intptr_t(0xbadbadbadbadbad1);

 public:
  // At the end of the VM's start, once. Nothing is a method or a class before.
  static void initialize();

  // The start of a Method that belongs to a loaded class: by its vtable and those of its constant
  // pool and class, and because the class has it, or had it before a redefinition, or because it is
  // one of the VM's own method handle intrinsics. Methods of the CDS archive count when their class
  // was loaded from it; those of a class that is being unloaded do not, but for its unload
  // handlers.
  static bool is_method(uintptr_t word);
  // The same for InstanceKlass.
  static bool is_klass(uintptr_t word);

  // For an m that is_method(). Null when no ID was made before.
  static jmethodID jmethod_id_or_null(const Method* m);
  // For an m that is_method(). -1 when bcp is not in the method's bytecodes.
  static int bci_of(const Method* m, uintptr_t bcp);

  // Words, and the 32 bits of an aligned address. False when they cannot be read.
  // Two tries, since any value may be a word's own.
  static bool load(uintptr_t address, uintptr_t* value) {
    intptr_t* const place = reinterpret_cast<intptr_t*>(address);
    const intptr_t word = SafeFetchN(place, unlikely);
    if (word == unlikely && SafeFetchN(place, 0) == 0) return false;
    *value = static_cast<uintptr_t>(word);
    return true;
  }
  static bool load(uintptr_t address, uint32_t* value);
  // A copy of an object, for its accessors that look at nothing else.
  template <class T>
  class Copy {
    uintptr_t _words[(sizeof(T) + sizeof(uintptr_t) - 1) / sizeof(uintptr_t)];

   public:
    bool load(uintptr_t address) {
      for (size_t i = 0; i < ARRAY_SIZE(_words); i++) {
        if (!AsyncMethods::load(address + i * sizeof(uintptr_t), &_words[i])) return false;
      }
      return true;
    }
    const T* operator->() const { return reinterpret_cast<const T*>(_words); }
    // Where something is in the object, that the copy says is at `place` in the copy.
    uintptr_t place_in_original(const void* place, uintptr_t original) const {
      return original + (reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(_words));
    }
  };

  // For words that are methods and classes. False when they are no more.
  static bool const_method_of(uintptr_t method, uintptr_t* const_method);
  static bool constants_of_klass(uintptr_t klass, uintptr_t* constants);
  static bool name_of_klass(uintptr_t klass, uintptr_t* symbol);
  static bool holder_of_constants(uintptr_t constants, uintptr_t* klass);
  // The UTF-8 entry of a constant pool.
  static bool symbol_at(uintptr_t constants, int index, uintptr_t* symbol);

  // Not for signal handlers. From InstanceKlass::unload_class: the class and its methods are going
  // to be freed.
  static void class_unloads(InstanceKlass* klass);
  // From the end of InstanceKlass::release_C_heap_structures. The memory of a class may stay as it
  // is long after: it is made unlike one's. `with_methods`: its methods go with it.
  static void class_freed(InstanceKlass* klass, bool with_methods);
};

#endif  // SHARE_PRIMS_ASYNCMETHODS_HPP
