// What makes an Input legal: bounds kept, names clean, and every field that its kind does not use
// at its default, so that two Inputs that mean the same are equal. decode() and parse_text() return
// legal Inputs; code that edits fields calls canonicalise() afterwards.
#pragma once

#include <string>

#include "harness/input/input.h"

namespace framestorm {

// Printable ASCII without double quotes and backslashes.
constexpr bool is_symbol_char(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// Whether the kind has that part. A delta of `misaligned` is a choice of low bits, 0..3.
constexpr bool uses_delta(ValueKind kind) { return kind != ValueKind::raw; }
constexpr bool uses_index(ValueKind kind) {
  return kind == ValueKind::other_sp || kind == ValueKind::other_pc || kind == ValueKind::slot;
}

constexpr bool uses_argument(IteratorCallKind kind) {
  return kind == IteratorCallKind::next || kind == IteratorCallKind::jump ||
         kind == IteratorCallKind::select;
}

// Of those that there are, from 1.
constexpr bool names_a_frame(QueueCallKind kind) {
  return kind == QueueCallKind::return_frame || kind == QueueCallKind::unwind;
}
constexpr bool uses_argument(QueueCallKind kind) {
  return kind == QueueCallKind::register_queue || kind == QueueCallKind::enqueue ||
         kind == QueueCallKind::element || kind == QueueCallKind::change ||
         kind == QueueCallKind::resize || kind == QueueCallKind::on_start ||
         kind == QueueCallKind::on_end || kind == QueueCallKind::select ||
         kind == QueueCallKind::no_memory || kind == QueueCallKind::move_mark ||
         kind == QueueCallKind::select_mark || names_a_frame(kind);
}

// How text says the argument: how often and how many handlers are counted from 1.
constexpr uint8_t first_argument(IteratorCallKind kind) {
  return kind == IteratorCallKind::select ? 0 : 1;
}

constexpr int first_argument(QueueCallKind kind) {
  const bool is_index = kind == QueueCallKind::element || kind == QueueCallKind::change;
  const bool is_size = kind == QueueCallKind::register_queue || kind == QueueCallKind::resize;
  return is_index ? -8 : is_size ? -1 : names_a_frame(kind) ? 1 : 0;
}
// What a call's argument means: the number in its text.
constexpr int argument_of(const QueueCall& call) {
  return call.argument + first_argument(call.kind);
}

// Shortens to kMaxSymbolName bytes and maps disallowed ones to '_'. Names that HotSpot gives go
// through this before they are compared with names in an Input.
void canonicalise_name(std::string* name);

// Default values; the name keeps its storage.
void reset(CodeRef* code);
void reset(Mutation* mutation);

// Resets what the kinds do not use and keeps the bounds of input.h. Enumerators have to be valid.
// Keeps allocated storage. Any thread; not async-signal-safe.
void canonicalise(CodeRef* code);
void canonicalise(SymbolicValue* value);
void canonicalise(Mutation* mutation);
void canonicalise(HaltPoint* halt);
void canonicalise(CallArgs* call);
void canonicalise(IteratorCall* call);
void canonicalise(QueueCall* call);
void canonicalise(Input* input);

}  // namespace framestorm
