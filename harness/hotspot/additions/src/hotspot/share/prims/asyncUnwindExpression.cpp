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

#include "prims/asyncUnwindExpression.hpp"

#ifdef HAVE_ASYNC_UNWIND_CPU

// DWARF 5, chapters 2.5 and 7.7.1.

namespace {

constexpr uintptr_t kMaxExpression = 256;  // bytes

}  // namespace

bool AsyncUnwindExpression::evaluate(uintptr_t begin, uintptr_t end, const uintptr_t* initial,
                                     uintptr_t* result) {
  if (end - begin > kMaxExpression) return false;
  if (initial != nullptr) {
    push(*initial);
  }
  AsyncUnwindReader reader(begin, end);
  while (!reader.at_end() && !_failed) {
    execute(&reader);
  }
  *result = pop();
  return !_failed && !reader.failed();
}

void AsyncUnwindExpression::execute(AsyncUnwindReader* reader) {
  const uint8_t code = reader->u1();
  if (code >= 0x30 && code <= 0x4f) {  // lit0 to lit31
    push(code - 0x30);
    return;
  }
  if (code >= 0x70 && code <= 0x8f) {  // breg0 to breg31
    push_register(code - 0x70, reader->sleb());
    return;
  }
  switch (code) {
    case 0x06: {  // deref
      uintptr_t value = 0;
      if (!_stack.load_word(pop(), &value)) {
        _failed = true;
      }
      push(value);
      break;
    }
    case 0x08:
      push(reader->u1());
      break;
    case 0x09:
      push(reader->s1());
      break;
    case 0x0a:
      push(reader->u2());
      break;
    case 0x0b:
      push(reader->s2());
      break;
    case 0x0c:
      push(reader->u4());
      break;
    case 0x0d:
      push(reader->s4());
      break;
    case 0x0e:
    case 0x0f:
      push(reader->u8());
      break;
    case 0x10:
      push(reader->uleb());
      break;
    case 0x11:
      push(reader->sleb());
      break;
    case 0x12: {  // dup
      const uintptr_t value = pop();
      push(value);
      push(value);
      break;
    }
    case 0x13:
      pop();
      break;  // drop
    case 0x23:
      push(pop() + reader->uleb());
      break;
    case 0x92: {  // bregx
      const uint64_t number = reader->uleb();
      push_register(number, reader->sleb());
      break;
    }
    case 0x96:
      break;  // nop
    default:
      execute_binary(code);
      break;
  }
}

void AsyncUnwindExpression::execute_binary(uint8_t code) {
  const uintptr_t right = pop();
  const uintptr_t left = pop();
  const intptr_t signed_right = static_cast<intptr_t>(right);
  const intptr_t signed_left = static_cast<intptr_t>(left);
  switch (code) {
    case 0x1a:
      push(left & right);
      break;
    case 0x1c:
      push(left - right);
      break;
    case 0x21:
      push(left | right);
      break;
    case 0x22:
      push(left + right);
      break;
    case 0x24:
      push(right < 64 ? left << right : 0);
      break;
    case 0x25:
      push(right < 64 ? left >> right : 0);
      break;
    case 0x27:
      push(left ^ right);
      break;
    case 0x29:
      push(left == right ? 1 : 0);
      break;
    case 0x2a:
      push(signed_left >= signed_right ? 1 : 0);
      break;
    case 0x2b:
      push(signed_left > signed_right ? 1 : 0);
      break;
    case 0x2c:
      push(signed_left <= signed_right ? 1 : 0);
      break;
    case 0x2d:
      push(signed_left < signed_right ? 1 : 0);
      break;
    case 0x2e:
      push(left != right ? 1 : 0);
      break;
    default:
      _failed = true;
      break;
  }
}

#endif  // HAVE_ASYNC_UNWIND_CPU
