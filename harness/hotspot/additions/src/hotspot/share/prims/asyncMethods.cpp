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

#include "prims/asyncMethods.hpp"

#include "classfile/classLoaderData.hpp"
#include "classfile/vmClasses.hpp"
#include "jni.h"
#include "memory/metaspace.hpp"
#include "oops/annotations.hpp"
#include "oops/array.hpp"
#include "oops/constMethod.hpp"
#include "oops/constantPool.hpp"
#include "oops/instanceKlass.hpp"
#include "oops/method.hpp"
#include "prims/asyncClassUnload.hpp"
#include "runtime/atomic.hpp"
#include "runtime/safefetch.hpp"
#include "runtime/thread.hpp"
#include "runtime/vmStructs.hpp"
#include "utilities/constantTag.hpp"

extern "C" {
extern VMStructEntry* gHotSpotVMStructs;

// Vtables, by their names in the Itanium C++ ABI; an object points behind the first two words.
extern const uintptr_t async_vtable_Method[] asm("_ZTV6Method");
extern const uintptr_t async_vtable_ConstantPool[] asm("_ZTV12ConstantPool");
extern const uintptr_t async_vtable_InstanceKlass[] asm("_ZTV13InstanceKlass");
extern const uintptr_t async_vtable_InstanceMirrorKlass[] asm("_ZTV19InstanceMirrorKlass");
extern const uintptr_t async_vtable_InstanceRefKlass[] asm("_ZTV16InstanceRefKlass");
extern const uintptr_t async_vtable_ClassLoaderKlass[] asm("_ZTV24InstanceClassLoaderKlass");
extern const uintptr_t async_vtable_StackChunkKlass[] asm("_ZTV23InstanceStackChunkKlass");
}

namespace {

// What the first word of an object of some classes can be: the vtables of the VM, and their clones
// in the CDS archive (cds/cppVtables.cpp), learnt from objects that come from it. Never null.
template <int capacity>
class VtableWords {
  uintptr_t _words[capacity];
  int _count;

 public:
  void add(const uintptr_t* vtable) { _words[_count++] = reinterpret_cast<uintptr_t>(vtable + 2); }
  void add_of(const void* object) {
    const uintptr_t word = *static_cast<const uintptr_t*>(object);
    if (!contains(word)) {
      assert(_count < capacity, "more kinds than expected");
      _words[_count++] = word;
    }
  }
  bool contains(uintptr_t word) const {
    for (int i = 0; i < _count; i++) {
      if (_words[i] == word) return true;
    }
    return false;
  }
  bool is_at(uintptr_t address) const {
    uintptr_t word = 0;
    return AsyncMethods::load(address, &word) && contains(word);
  }
};

VtableWords<2> method_vtables;
VtableWords<2> constant_pool_vtables;
VtableWords<10> klass_vtables;

// Byte offsets of private members.
int methods_offset = 0;      // InstanceKlass
int constants_offset = 0;    // InstanceKlass
int jmethod_ids_offset = 0;  // InstanceKlass
int name_offset = 0;         // Klass
int idnum_offset = 0;        // ConstMethod
int code_size_offset = 0;    // ConstMethod
int unloading_offset = 0;    // ClassLoaderData

volatile bool initialized = false;

// By the names that the serviceability agent knows.
int offset_of_field(const char* type, const char* field) {
  for (const VMStructEntry* entry = gHotSpotVMStructs; entry->typeName != nullptr; entry++) {
    if (strcmp(entry->typeName, type) == 0 && strcmp(entry->fieldName, field) == 0) {
      return checked_cast<int>(entry->offset);
    }
  }
  fatal("vmStructs has no %s::%s", type, field);
  return -1;
}

// ClassLoaderData::_unloading, which no table names: the byte that its accessor reads.
int find_unloading_offset() {
  static uintptr_t room[sizeof(ClassLoaderData) / sizeof(uintptr_t) + 1];
  char* const bytes = reinterpret_cast<char*>(room);
  const ClassLoaderData* const data = reinterpret_cast<const ClassLoaderData*>(room);
  for (size_t i = 0; i < sizeof(ClassLoaderData); i++) {
    bytes[i] = 1;
    const bool is_it = data->is_unloading();
    bytes[i] = 0;
    if (is_it) return checked_cast<int>(i);
  }
  fatal("no flag in ClassLoaderData");
  return -1;
}

// Methods that were proven to be such, each with the epoch it was proven in, in one word. A class
// that goes begins a new epoch, so that nothing proven before, or being proven meanwhile, counts.
class ProvenMethods {
  static const int index_bits = 11;
  static const int address_bits = 47 - LogBytesPerWord;  // of user space, without the lowest
  static const int epoch_bits = 64 - address_bits;

  volatile uint64_t _entries[1 << index_bits];
  volatile uint64_t _epoch;

  static uint64_t entry_of(uintptr_t method, uint64_t epoch) {
    return (epoch << address_bits) | (method >> LogBytesPerWord);
  }
  static bool is_address(uintptr_t method) {
    return method != 0 && method >> (address_bits + LogBytesPerWord) == 0;
  }
  volatile uint64_t* slot_of(uintptr_t method) {
    const uint64_t mixed = uint64_t(method) * UCONST64(0x9e3779b97f4a7c15);
    return &_entries[mixed >> (64 - index_bits)];
  }

 public:
  uint64_t epoch() const { return Atomic::load_acquire(&_epoch); }
  bool contain(uintptr_t method, uint64_t epoch) {
    // What else a word has would count as epoch.
    return is_address(method) && Atomic::load(slot_of(method)) == entry_of(method, epoch);
  }
  void add(uintptr_t method, uint64_t epoch) {
    if (is_address(method)) {
      Atomic::store(slot_of(method), entry_of(method, epoch));
    }
  }
  void forget() {
    if ((Atomic::add(&_epoch, uint64_t(1)) & right_n_bits(epoch_bits)) != 0) return;
    // The epochs in the entries begin anew.
    for (size_t i = 0; i < ARRAY_SIZE(_entries); i++) {
      Atomic::store(&_entries[i], uint64_t(0));
    }
  }
};

ProvenMethods proven_methods;

// `size` bytes, all of one word.
bool load_part(uintptr_t address, int size, uintptr_t* value) {
  const uintptr_t in_word = address % BytesPerWord;
  uintptr_t word = 0;
  if (!AsyncMethods::load(address - in_word, &word)) return false;
  *value = (word >> (BitsPerByte * in_word)) & right_n_bits(BitsPerByte * size);
  return true;
}

// Data of classes also lies in gaps of the class space (MetaspaceArena takes what its alignment
// wastes there).
bool is_in_metadata(uintptr_t word) {
  return Metaspace::contains(reinterpret_cast<const void*>(word));
}

// Loaded, and its loader is not being unloaded. *in_handler: it is, but this is its unload handler.
bool is_live_klass(uintptr_t klass, bool* in_handler) {
  const void* const p = reinterpret_cast<const void*>(klass);
  if (!is_aligned(klass, BytesPerWord) || !Metaspace::contains(p)) return false;
  if (!klass_vtables.is_at(klass)) return false;

  uintptr_t state = 0;
  if (!load_part(klass + in_bytes(InstanceKlass::init_state_offset()), 1, &state) ||
      state < InstanceKlass::loaded || state > InstanceKlass::initialization_error) {
    return false;
  }

  uintptr_t loader_data = 0;
  if (!AsyncMethods::load(klass + in_bytes(Klass::class_loader_data_offset()), &loader_data) ||
      loader_data == 0 || !is_aligned(loader_data, BytesPerWord)) {
    return false;
  }
  uintptr_t unloading = 0;
  if (!load_part(loader_data + unloading_offset, 1, &unloading)) return false;
  *in_handler = unloading != 0;
  return !*in_handler || AsyncClassUnload::is_in_handler();
}

// Does the array hold it? `hint`: where it most likely is. `*left`: how many elements may still be
// looked at.
bool array_has(uintptr_t array, uintptr_t method, uintptr_t hint, int* left) {
  const uintptr_t data = array + Array<Method*>::base_offset_in_bytes();
  uint32_t length = 0;
  if (!is_aligned(array, BytesPerWord) ||
      !AsyncMethods::load(array + Array<Method*>::length_offset_in_bytes(), &length) ||
      length > max_jushort) {
    return false;
  }
  uintptr_t element = 0;
  if (hint < length && AsyncMethods::load(data + hint * BytesPerWord, &element) &&
      element == method) {
    return true;
  }
  for (uint32_t i = 0; i < length && *left > 0; i++, (*left)--) {
    if (!AsyncMethods::load(data + i * BytesPerWord, &element)) return false;
    if (element == method) return true;
  }
  return false;
}

// A replaced method: the versions of the class that are kept because methods of theirs run have it.
bool previous_version_has(uintptr_t klass, uintptr_t method, uintptr_t hint, int* left) {
  const int max_versions = 1000;
  AsyncMethods::Copy<InstanceKlass> version;
  for (int i = 0; i < max_versions; i++) {
    if (!version.load(klass)) return false;
    klass = reinterpret_cast<uintptr_t>(version->previous_versions());
    if (klass == 0 || !is_aligned(klass, BytesPerWord) || !klass_vtables.is_at(klass)) return false;
    uintptr_t methods = 0;
    if (AsyncMethods::load(klass + methods_offset, &methods) &&
        array_has(methods, method, hint, left)) {
      return true;
    }
  }
  return false;
}

// Whether a method of these was made by Method::make_method_handle_intrinsic: it is in no array.
bool is_linker(uintptr_t klass, uintptr_t constants) {
  AsyncMethods::Copy<ConstantPool> pool;
  return klass == reinterpret_cast<uintptr_t>(vmClasses::MethodHandle_klass()) &&
         pool.load(constants) && pool->is_for_method_handle_intrinsic();
}

bool klass_has(uintptr_t klass, uintptr_t method, uintptr_t const_method, uintptr_t constants) {
  uintptr_t methods = 0;
  uintptr_t hint = 0;  // renumbering and methods that the VM made come between
  if (!AsyncMethods::load(klass + methods_offset, &methods) ||
      !load_part(const_method + idnum_offset, sizeof(u2), &hint)) {
    return false;
  }
  // As many as one class may have, twice: in a signal handler that is a fraction of a millisecond.
  int left = 2 * max_jushort;
  if (array_has(methods, method, hint, &left)) return true;
  return is_linker(klass, constants) || previous_version_has(klass, method, hint, &left);
}

// Not in the cache. *lasting: it may be put there.
bool prove_method(uintptr_t word, bool* lasting) {
  uintptr_t const_method = 0;
  uintptr_t constants = 0;
  uintptr_t klass = 0;
  bool in_handler = false;
  const bool proven =
      is_in_metadata(word) && method_vtables.is_at(word) &&
      AsyncMethods::const_method_of(word, &const_method) &&
      AsyncMethods::load(const_method + in_bytes(ConstMethod::constants_offset()), &constants) &&
      AsyncMethods::holder_of_constants(constants, &klass) && is_live_klass(klass, &in_handler) &&
      klass_has(klass, word, const_method, constants);
  *lasting = !in_handler;
  return proven;
}

}  // namespace

void AsyncMethods::initialize() {
  method_vtables.add(async_vtable_Method);
  constant_pool_vtables.add(async_vtable_ConstantPool);
  klass_vtables.add(async_vtable_InstanceKlass);
  klass_vtables.add(async_vtable_InstanceMirrorKlass);
  klass_vtables.add(async_vtable_InstanceRefKlass);
  klass_vtables.add(async_vtable_ClassLoaderKlass);
  klass_vtables.add(async_vtable_StackChunkKlass);

  // From the archive, if there is one.
  InstanceKlass* const object = vmClasses::Object_klass();
  method_vtables.add_of(object->methods()->at(0));
  constant_pool_vtables.add_of(object->constants());
  klass_vtables.add_of(object);
  klass_vtables.add_of(vmClasses::Class_klass());
  klass_vtables.add_of(vmClasses::WeakReference_klass());
  klass_vtables.add_of(vmClasses::ClassLoader_klass());
  klass_vtables.add_of(vmClasses::StackChunk_klass());

  methods_offset = offset_of_field("InstanceKlass", "_methods");
  constants_offset = offset_of_field("InstanceKlass", "_constants");
  jmethod_ids_offset = offset_of_field("InstanceKlass", "_methods_jmethod_ids");
  name_offset = offset_of_field("Klass", "_name");
  idnum_offset = offset_of_field("ConstMethod", "_method_idnum");
  code_size_offset = offset_of_field("ConstMethod", "_code_size");
  unloading_offset = find_unloading_offset();
  Atomic::release_store(&initialized, true);
}

bool AsyncMethods::load(uintptr_t address, uint32_t* value) {
  int* const place = reinterpret_cast<int*>(address);
  int word = SafeFetch32(place, 1);
  if (word == 1) {
    word = SafeFetch32(place, 2);
    if (word == 2) return false;
  }
  *value = static_cast<uint32_t>(word);
  return true;
}

bool AsyncMethods::is_method(uintptr_t word) {
  if (!is_aligned(word, BytesPerWord) || !Atomic::load_acquire(&initialized)) return false;
  const uint64_t epoch = proven_methods.epoch();
  if (proven_methods.contain(word, epoch)) return true;
  bool lasting = false;
  if (!prove_method(word, &lasting)) return false;
  if (lasting) {
    proven_methods.add(word, epoch);
  }
  return true;
}

bool AsyncMethods::is_klass(uintptr_t word) {
  bool in_handler = false;
  uintptr_t constants = 0;
  uintptr_t holder = 0;
  return Atomic::load_acquire(&initialized) && is_live_klass(word, &in_handler) &&
         constants_of_klass(word, &constants) && holder_of_constants(constants, &holder) &&
         holder == word;
}

bool AsyncMethods::const_method_of(uintptr_t method, uintptr_t* const_method) {
  return load(method + in_bytes(Method::const_offset()), const_method) &&
         is_aligned(*const_method, BytesPerWord) && is_in_metadata(*const_method);
}

bool AsyncMethods::constants_of_klass(uintptr_t klass, uintptr_t* constants) {
  return load(klass + constants_offset, constants);
}

bool AsyncMethods::name_of_klass(uintptr_t klass, uintptr_t* symbol) {
  return load(klass + name_offset, symbol) && *symbol != 0;
}

bool AsyncMethods::holder_of_constants(uintptr_t constants, uintptr_t* klass) {
  return is_aligned(constants, BytesPerWord) && is_in_metadata(constants) &&
         constant_pool_vtables.is_at(constants) &&
         load(constants + in_bytes(ConstantPool::pool_holder_offset()), klass);
}

bool AsyncMethods::symbol_at(uintptr_t constants, int index, uintptr_t* symbol) {
  Copy<ConstantPool> pool;
  if (index <= 0 || !pool.load(constants) || index >= pool->length()) return false;
  const uintptr_t tags = reinterpret_cast<uintptr_t>(pool->tags());
  uintptr_t tag = 0;
  if (!load_part(tags + Array<u1>::base_offset_in_bytes() + index, 1, &tag)) return false;
  return tag == JVM_CONSTANT_Utf8 &&
         load(constants + (ConstantPool::header_size() + index) * BytesPerWord, symbol) &&
         *symbol != 0;
}

// A method's class, and its number there. A linker has that of the class's first method (0) for want
// of one, and no ID.
static bool class_and_number(uintptr_t method, uintptr_t* klass, uintptr_t* number) {
  uintptr_t const_method = 0;
  uintptr_t constants = 0;
  return AsyncMethods::load(method + in_bytes(Method::const_offset()), &const_method) &&
         AsyncMethods::load(const_method + in_bytes(ConstMethod::constants_offset()), &constants) &&
         AsyncMethods::load(constants + in_bytes(ConstantPool::pool_holder_offset()), klass) &&
         !is_linker(*klass, constants) &&
         load_part(const_method + idnum_offset, sizeof(u2), number);
}

// Whether it is the method of that number in the class: an ID is that of the newest version.
static bool is_version_of(uintptr_t method, uintptr_t holder, uintptr_t number) {
  uintptr_t klass = 0;
  uintptr_t index = 0;
  return AsyncMethods::is_method(method) && class_and_number(method, &klass, &index) &&
         klass == holder && index == number;
}

jmethodID AsyncMethods::jmethod_id_or_null(const Method* m) {
  const uintptr_t method = reinterpret_cast<uintptr_t>(m);
  uintptr_t klass = 0;
  uintptr_t index = 0;
  uintptr_t ids = 0;
  if (!class_and_number(method, &klass, &index) || !load(klass + jmethod_ids_offset, &ids) ||
      ids == 0) {
    return nullptr;
  }
  // The first word is the number of those that follow. Redefinition frees the array for a larger
  // one, so what is found has to be an ID.
  uintptr_t count = 0;
  uintptr_t id = 0;
  uintptr_t named = 0;
  if (!load(ids, &count) || index >= count || !load(ids + (index + 1) * BytesPerWord, &id) ||
      id == 0 || !is_aligned(id, BytesPerWord) || !load(id, &named)) {
    return nullptr;
  }
  return named == method || is_version_of(named, klass, index) ? reinterpret_cast<jmethodID>(id)
                                                               : nullptr;
}

int AsyncMethods::bci_of(const Method* m, uintptr_t bcp) {
  const uintptr_t method = reinterpret_cast<uintptr_t>(m);
  uintptr_t const_method = 0;
  uintptr_t size = 0;
  if (!load(method + in_bytes(Method::const_offset()), &const_method) ||
      !load_part(const_method + code_size_offset, sizeof(u2), &size)) {
    return -1;
  }
  const uintptr_t bci = bcp - const_method - in_bytes(ConstMethod::codes_offset());
  return bci < size ? int(bci) : -1;
}

void AsyncMethods::class_unloads(InstanceKlass* klass) {
  AsyncClassUnload::call_handlers(klass);
  proven_methods.forget();
}

void AsyncMethods::class_freed(InstanceKlass* klass, bool with_methods) {
  proven_methods.forget();
  if (!with_methods) return;  // deallocate_contents() does the same to class and methods
  Array<Method*>* const methods = klass->methods();
  if (methods == nullptr) return;
  for (int i = 0; i < methods->length(); i++) {
    Method* const method = methods->at(i);
    if (method != nullptr) {
      method->set_constMethod(nullptr);
    }
  }
  klass->set_constants(nullptr);
}

extern "C" {

// For fuzzers: what a walk covers is to depend on nothing that walks before it proved.
// Any thread, any context; async-signal-safe.
JNIEXPORT void framestorm_forget_methods() { proven_methods.forget(); }

}  // extern "C"
