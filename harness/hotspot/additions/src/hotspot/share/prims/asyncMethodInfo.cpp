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

#include "classfile/javaClasses.inline.hpp"
#include "classfile/vmSymbols.hpp"
#include "code/compressedStream.hpp"
#include "memory/allStatic.hpp"
#include "oops/annotations.hpp"
#include "oops/constMethod.hpp"
#include "oops/constantPool.hpp"
#include "oops/instanceKlass.hpp"
#include "oops/method.hpp"
#include "oops/symbol.hpp"
#include "prims/asyncMethods.hpp"
#include "profile2.h"
#include "runtime/interfaceSupport.inline.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/jniHandles.inline.hpp"
#include "utilities/unsigned5.hpp"

// Methods and classes of profile2.h. All loads are SafeFetches (AsyncMethods::load), so that what
// is unloaded meanwhile, which the interface forbids but cannot prevent, costs an answer and no
// more.

namespace {

// Single bytes, by whole words.
class Bytes {
  uintptr_t _word_address = 1;
  uintptr_t _word = 0;

 public:
  bool load(uintptr_t address, uint8_t* value) {
    const uintptr_t in_word = address % BytesPerWord;
    if (_word_address != address - in_word) {
      if (!AsyncMethods::load(address - in_word, &_word)) return false;
      _word_address = address - in_word;
    }
    *value = uint8_t(_word >> (BitsPerByte * in_word));
    return true;
  }
};

// What the header says of names: copied up to *length bytes with the closing 0, *length becomes the
// whole one. A character is not cut in two. Null for the symbol: there is no name.
void copy_symbol(uintptr_t symbol, char* buffer, int* length) {
  const int room = buffer == nullptr ? 0 : *length;
  *length = 0;
  AsyncMethods::Copy<Symbol> copy;
  if (symbol == 0 || !copy.load(symbol)) {
    if (room > 0) {
      buffer[0] = 0;
    }
    return;
  }
  const int whole = copy->utf8_length();
  const uintptr_t body = copy.place_in_original(copy->base(), symbol);
  Bytes bytes;
  int copied = 0;
  int last_character = 0;
  uint8_t byte = 0;
  while (copied < whole && copied < room && bytes.load(body + copied, &byte)) {
    if ((byte & 0xc0) != 0x80) {
      last_character = copied;
    }
    buffer[copied++] = char(byte);
  }
  *length = whole;
  if (room > 0) {
    buffer[copied < room ? copied : last_character] = 0;
  }
}

void copy_symbol_at(uintptr_t constants, int index, char* buffer, int* length) {
  uintptr_t symbol = 0;
  if (!AsyncMethods::symbol_at(constants, index, &symbol)) {
    symbol = 0;
  }
  copy_symbol(symbol, buffer, length);
}

int access_flags_at(uintptr_t address) {
  Bytes bytes;
  uint8_t low = 0;
  uint8_t high = 0;
  return bytes.load(address, &low) && bytes.load(address + 1, &high) ? low | high << BitsPerByte
                                                                     : 0;
}

// What is read of a method's ConstMethod.
class MethodParts {
  AsyncMethods::Copy<ConstMethod> _copy;
  uintptr_t _address = 0;

 public:
  // False for what is no method.
  bool load(ASGST_Method method) {
    const uintptr_t word = reinterpret_cast<uintptr_t>(method);
    return AsyncMethods::is_method(word) && AsyncMethods::const_method_of(word, &_address) &&
           _copy.load(_address);
  }

  const ConstMethod* operator->() const { return _copy.operator->(); }
  uintptr_t constants() const { return reinterpret_cast<uintptr_t>(_copy->constants()); }
  uintptr_t end() const { return _address + uintptr_t(_copy->size()) * BytesPerWord; }
  uintptr_t line_numbers() const {
    return _copy.place_in_original(_copy->compressed_linenumber_table(), _address);
  }

  int generic_signature_index() const {
    if (!_copy->has_generic_signature()) return 0;
    const uintptr_t at = _copy.place_in_original(_copy->generic_signature_index_addr(), _address);
    Bytes bytes;
    uint8_t low = 0;
    uint8_t high = 0;
    const bool loaded = bytes.load(at, &low) && bytes.load(at + 1, &high);
    return loaded ? low | high << BitsPerByte : 0;
  }
};

// The line number table, as Method's CompressedLineNumberWriteStream wrote it. Ends at the end of
// the ConstMethod, whatever it holds.
class LineNumbers {
  struct Fetch {
    // A byte that no number holds, where there is none.
    uint8_t operator()(uintptr_t base, uintptr_t offset) const {
      uint8_t byte = 0;
      return Bytes().load(base + offset, &byte) ? byte : 0;
    }
  };

  uintptr_t _next;
  const uintptr_t _end;
  uint32_t _bci = 0;
  uint32_t _line = 0;

  bool read_number(int32_t* number) {
    uintptr_t offset = 0;
    if (_next >= _end || UNSIGNED5::check_length(_next, offset, _end - _next, Fetch()) == 0) {
      return false;
    }
    *number = UNSIGNED5::decode_sign(UNSIGNED5::read_uint(_next, offset, _end - _next, Fetch()));
    _next += offset;
    return true;
  }

 public:
  explicit LineNumbers(const MethodParts& method)
      : _next(method->has_linenumber_table() ? method.line_numbers() : method.end()),
        _end(method.end()) {}

  bool next() {
    uint8_t byte = 0;
    if (_next >= _end || !Bytes().load(_next, &byte) || byte == 0) return false;
    _next++;
    if (byte != 0xff) {
      _bci += byte >> 3;
      _line += byte & 0x7;
      return true;
    }
    int32_t bcis = 0;
    int32_t lines = 0;
    if (!read_number(&bcis) || !read_number(&lines)) return false;
    _bci += uint32_t(bcis);
    _line += uint32_t(lines);
    return true;
  }

  int bci() const { return int(_bci); }
  int line() const { return int(_line); }
};

// 0 when it cannot be read. JFR numbers classes when they are loaded, recording or not.
jlong id_of_class(uintptr_t klass) {
  AsyncMethods::Copy<InstanceKlass> copy;
  return copy.load(klass) ? static_cast<jlong>(copy->trace_id() >> 16) : 0;
}

}  // namespace

JNIEXPORT int JNICALL ASGST_GetMethodInfo(ASGST_Method method, ASGST_MethodInfo* info) {
  MethodParts parts;
  uintptr_t klass = 0;
  if (!parts.load(method) || !AsyncMethods::holder_of_constants(parts.constants(), &klass))
    return 0;
  if (info == nullptr) return 1;
  const uintptr_t constants = parts.constants();
  info->klass = reinterpret_cast<ASGST_Class>(klass);
  copy_symbol_at(constants, parts->name_index(), info->method_name, &info->method_name_length);
  copy_symbol_at(constants, parts->signature_index(), info->signature, &info->signature_length);
  copy_symbol_at(constants, parts.generic_signature_index(), info->generic_signature,
                 &info->generic_signature_length);
  info->modifiers = access_flags_at(reinterpret_cast<uintptr_t>(method) +
                                    in_bytes(Method::access_flags_offset())) &
                    JVM_RECOGNIZED_METHOD_MODIFIERS;
  info->idnum = parts->orig_method_idnum();
  info->class_idnum = id_of_class(klass);
  return 1;
}

JNIEXPORT int JNICALL ASGST_GetClassInfo(ASGST_Class klass, ASGST_ClassInfo* info) {
  const uintptr_t word = reinterpret_cast<uintptr_t>(klass);
  uintptr_t constants = 0;
  uintptr_t name = 0;
  AsyncMethods::Copy<ConstantPool> pool;
  if (!AsyncMethods::is_klass(word) || !AsyncMethods::constants_of_klass(word, &constants) ||
      !AsyncMethods::name_of_klass(word, &name) || !pool.load(constants)) {
    return 0;
  }
  if (info == nullptr) return 1;
  copy_symbol(name, info->class_name, &info->class_name_length);
  copy_symbol_at(constants, pool->generic_signature_index(), info->generic_class_name,
                 &info->generic_class_name_length);
  info->modifiers = access_flags_at(word + in_bytes(Klass::access_flags_offset())) &
                    JVM_RECOGNIZED_CLASS_MODIFIERS;
  info->idnum = id_of_class(word);
  return 1;
}

JNIEXPORT int JNICALL ASGST_GetLineNumber(ASGST_Method method, int bci) {
  MethodParts parts;
  if (!parts.load(method) || bci < 0 || bci >= parts->code_size()) return -1;
  int best_bci = -1;
  int line = -1;
  LineNumbers numbers(parts);
  while (numbers.next()) {
    // Entries need not be sorted.
    if (numbers.bci() <= bci && numbers.bci() > best_bci) {
      best_bci = numbers.bci();
      line = numbers.line();
    }
  }
  return line;
}

JNIEXPORT int JNICALL ASGST_GetLineNumberTable(ASGST_Method method, ASGST_LineNumberEntry* entries,
                                               int length) {
  MethodParts parts;
  if (!parts.load(method)) return -1;
  int count = 0;
  LineNumbers numbers(parts);
  while (numbers.next()) {
    if (entries != nullptr && count < length) {
      entries[count] = {numbers.bci(), numbers.line()};
    }
    count++;
  }
  return count;
}

JNIEXPORT jmethodID JNICALL ASGST_MethodToJMethodID(ASGST_Method method) {
  if (!AsyncMethods::is_method(reinterpret_cast<uintptr_t>(method))) return nullptr;
  return AsyncMethods::jmethod_id_or_null(static_cast<const Method*>(method));
}

JNIEXPORT ASGST_Method JNICALL ASGST_JMethodIDToMethod(jmethodID method) {
  const uintptr_t id = reinterpret_cast<uintptr_t>(method);
  uintptr_t word = 0;
  if (id == 0 || !is_aligned(id, BytesPerWord) || !AsyncMethods::load(id, &word) ||
      !AsyncMethods::is_method(word)) {
    return nullptr;
  }
  return reinterpret_cast<ASGST_Method>(word);
}

JNIEXPORT jint JNICALL ASGST_GetMethodLineNumber(ASGST_Method method, jint bci) {
  return ASGST_GetLineNumber(method, bci);
}

JNIEXPORT int JNICALL ASGST_GetMethodLineNumberTable(ASGST_Method method,
                                                     ASGST_MethodLineNumberEntry* entries,
                                                     int length) {
  return ASGST_GetLineNumberTable(method, entries, length);
}

JNIEXPORT jint JNICALL ASGST_GetMethodIdNum(ASGST_Method method) {
  MethodParts parts;
  return parts.load(method) ? parts->orig_method_idnum() : 0;
}

JNIEXPORT jlong JNICALL ASGST_GetClassIdNum(ASGST_Class klass) {
  const uintptr_t word = reinterpret_cast<uintptr_t>(klass);
  return AsyncMethods::is_klass(word) ? id_of_class(word) : 0;
}

JNIEXPORT ASGST_Class JNICALL ASGST_GetClass(ASGST_Method method) {
  MethodParts parts;
  uintptr_t klass = 0;
  return parts.load(method) && AsyncMethods::holder_of_constants(parts.constants(), &klass)
             ? reinterpret_cast<ASGST_Class>(klass)
             : nullptr;
}

JNIEXPORT ASGST_Class JNICALL ASGST_JClassToClass(jclass klass) {
  JavaThread* const thread = JavaThread::current_or_null();
  if (klass == nullptr || thread == nullptr) return nullptr;
  const ThreadInVMfromNative in_vm(thread);
  Klass* const found = java_lang_Class::as_Klass(JNIHandles::resolve_non_null(klass));
  return found != nullptr && found->is_instance_klass() ? static_cast<ASGST_Class>(found) : nullptr;
}

JNIEXPORT jclass JNICALL ASGST_ClassToJClass(ASGST_Class klass) {
  JavaThread* const thread = JavaThread::current_or_null();
  if (thread == nullptr) return nullptr;
  const ThreadInVMfromNative in_vm(thread);
  if (!AsyncMethods::is_klass(reinterpret_cast<uintptr_t>(klass))) return nullptr;
  return static_cast<jclass>(
      JNIHandles::make_local(thread, static_cast<InstanceKlass*>(klass)->java_mirror()));
}
