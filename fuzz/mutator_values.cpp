#include "fuzz/mutator_values.h"

#include <algorithm>

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

using enum ValueKind;

constexpr int32_t kWord = 8;
constexpr int32_t kPage = 4096;

// Repetition is weight.
constexpr ValueKind kPcKinds[] = {code,     code,       code,    code,      code,        code,
                                  code,     code,       real_pc, real_pc,   real_pc,     other_pc,
                                  slot,     slot,       raw,     libc_text, libjvm_text, java_heap,
                                  unmapped, guard_page, real_sp, misaligned};
constexpr ValueKind kSpKinds[] = {real_sp,   real_sp,  real_sp,  real_sp,    real_sp,    real_sp,
                                  real_fp,   real_fp,  slot,     stack_base, stack_base, stack_end,
                                  stack_end, other_sp, other_sp, misaligned, guard_page, guard_page,
                                  java_heap, unmapped, raw,      real};
constexpr ValueKind kFpKinds[] = {real_fp,   real_fp,  real_fp,  real_fp,    real_sp,    real_sp,
                                  real_sp,   slot,     slot,     slot,       stack_base, stack_base,
                                  stack_end, other_sp, other_sp, misaligned, guard_page, java_heap,
                                  unmapped,  raw,      raw,      real};

// The bounds and gaps of HotSpot's JavaThreadState (globalDefinitions.hpp): 0, 2..11, 12 is the
// maximum.
constexpr uint64_t kThreadStates[] = {
    0,  1,  2,   3,   4,   4,          5,          6,      6,
    7,  8,  8,   9,   10,  10,         11,         12,     13,
    16, 32, 255, 256, 264, 0x7fffffff, 0xffffffff, 0xdead, 0x8'0000'0008};

// Null-like, page-like, sign-like, not canonical, kernel, vsyscall, HotSpot's and malloc's fill
// patterns.
constexpr uint64_t kRawValues[] = {0,
                                   1,
                                   7,
                                   8,
                                   0xfff,
                                   0x1000,
                                   0x1008,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   0x100000000,
                                   0x7fffffffeff8,
                                   0x7ffffffffff8,
                                   0x800000000000,
                                   0x7fffffffffffffff,
                                   0x8000000000000000,
                                   0xffff800000000000,
                                   0xffffffffff600000,
                                   0xfffffffffffffff8,
                                   0xffffffffffffffff,
                                   0xdeadbeefdeadbeef,
                                   0xbaadbabebaadbabe,
                                   0xcccccccccccccccc,
                                   0xfefefefefefefefe};

int32_t with_sign(Rng& rng, int32_t size) { return rng.one_in(2) ? size : -size; }

// 1 .. 2^max_bits, small ones more often.
int32_t small_number(Rng& rng, uint32_t max_bits) {
  return 1 + static_cast<int32_t>(rng.below(size_t{1} << (1 + rng.below(max_bits))));
}

int32_t pick_delta(Rng& rng) {
  switch (rng.below(16)) {
    case 0:
    case 1:
    case 2:
      return 0;
    case 3:
    case 4:
      return with_sign(rng, static_cast<int32_t>(1 + rng.below(15)));
    case 5:
      return with_sign(rng, kPage * small_number(rng, 3)) + with_sign(rng, kWord);
    case 6:
      return with_sign(rng, kPage * small_number(rng, 8));
    case 7:
      return with_sign(rng, 1 << rng.below(28));
    case 8:
      return with_sign(rng, static_cast<int32_t>(rng.below(1U << 24)));
    default:
      return with_sign(rng, kWord * small_number(rng, 6));
  }
}

uint64_t pick_raw(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return rng.next();
    case 1:
      return rng.next() >> rng.below(64);
    case 2:
      return rng.pick(kRawValues) + static_cast<uint64_t>(with_sign(rng, small_number(rng, 4)));
    default:
      return rng.pick(kRawValues);
  }
}

void pick_of_kind(const CodeNames* names, Rng& rng, ValueKind kind, SymbolicValue* value) {
  value->kind = kind;
  value->delta = 0;
  switch (kind) {
    case code:
      pick_code(names, rng, value);
      return;
    case raw:
      value->raw = pick_raw(rng);
      return;
    case slot:
      value->index = static_cast<uint16_t>(small_number(rng, 7) - 1);
      // Mostly the slot as it is: a plausible address of the wrong frame.
      value->delta = rng.one_in(2) ? pick_delta(rng) : 0;
      return;
    case other_sp:
    case other_pc:
      value->index = static_cast<uint16_t>(rng.below(4));
      break;
    case stack_base:
      value->delta = rng.one_in(4) ? pick_delta(rng) : -kWord * small_number(rng, 8);
      return;
    case stack_end:
      value->delta = rng.one_in(4) ? pick_delta(rng) : kWord * small_number(rng, 8);
      return;
    default:
      break;
  }
  value->delta = pick_delta(rng);
}

void finish(Rng& rng, Mutation* mutation) {
  canonicalise(&mutation->value);
  if (is_no_op(*mutation)) {
    mutation->value.delta = with_sign(rng, kWord * small_number(rng, 5));
  }
}

ValueRole register_role(Register reg) {
  switch (reg) {
    case Register::pc:
      return ValueRole::pc;
    case Register::sp:
      return ValueRole::sp;
    case Register::fp:
      return ValueRole::fp;
    default:
      return ValueRole::any;
  }
}

ValueRole field_role(ThreadField field) {
  switch (field) {
    case ThreadField::last_java_sp:
      return ValueRole::sp;
    case ThreadField::last_java_pc:
      return ValueRole::pc;
    case ThreadField::last_java_fp:
      return ValueRole::fp;
    default:
      return ValueRole::thread_state;
  }
}

// An artifact's delta may be anything.
void add_to_delta(SymbolicValue* value, int32_t change) {
  constexpr int32_t kLimit = 1 << 30;
  value->delta = std::clamp(value->delta, -kLimit, kLimit) + change;
}

void tweak_code(const CodeNames* names, Rng& rng, SymbolicValue* value) {
  switch (rng.below(8)) {
    case 0:
      value->code.anchor = rng.any<CodeAnchor>();
      break;
    case 1:
      value->code.tier = static_cast<uint8_t>(rng.below(5));
      break;
    case 2:
      if (const NamedCode* other = names != nullptr ? names->pick(rng) : nullptr) {
        value->code = other->ref;
      }
      break;
    default:
      add_to_delta(value, with_sign(rng, small_number(rng, 4)));
  }
}

}  // namespace

ValueRole role_of(const Mutation& mutation, Rng& rng) {
  switch (mutation.kind) {
    case MutationKind::set_register:
      return register_role(mutation.reg);
    case MutationKind::set_thread_field:
      return field_role(mutation.field);
    default: {
      // A word of the stack may be a return address, a saved fp, an sp of the interpreter, or data.
      constexpr ValueRole kWordRoles[] = {ValueRole::pc, ValueRole::pc, ValueRole::fp,
                                          ValueRole::sp, ValueRole::any};
      return rng.pick(kWordRoles);
    }
  }
}

bool is_no_op(const Mutation& mutation) {
  const SymbolicValue& value = mutation.value;
  if (value.delta != 0) {
    return false;
  }
  if (value.kind == real) {
    return true;
  }
  if (mutation.kind != MutationKind::set_register) {
    return false;
  }
  return (mutation.reg == Register::pc && value.kind == real_pc) ||
         (mutation.reg == Register::sp && value.kind == real_sp) ||
         (mutation.reg == Register::fp && value.kind == real_fp);
}

void pick_code(const CodeNames* names, Rng& rng, SymbolicValue* value) {
  const NamedCode* named = names != nullptr ? names->pick(rng) : nullptr;
  if (named == nullptr) {
    value->kind = real_pc;
    value->delta = with_sign(rng, small_number(rng, 7));
    return;
  }
  value->kind = code;
  value->code = named->ref;
  value->delta = 0;
  if (named->is_returned_to && rng.one_in(2)) return;  // HotSpot compares with just that
  const auto size = static_cast<int32_t>(std::clamp<uint32_t>(named->size, 1, 1U << 24));
  switch (rng.below(8)) {
    case 0:
      value->code.anchor = CodeAnchor::end;
      value->delta = static_cast<int32_t>(rng.below(40)) - 32;
      break;
    case 1:
      value->code.anchor =
          named->ref.kind == CodeKind::nmethod ? CodeAnchor::deopt_handler : CodeAnchor::entry;
      value->delta = rng.one_in(2) ? 0 : static_cast<int32_t>(rng.below(32)) - 8;
      break;
    case 2:
      value->code.anchor =
          named->ref.kind == CodeKind::nmethod ? CodeAnchor::verified_entry : CodeAnchor::entry;
      value->delta = rng.one_in(2) ? 0 : static_cast<int32_t>(rng.below(32));
      break;
    case 3:
      // Before the entry: the header, constants and relocations of a blob.
      value->code.anchor = CodeAnchor::entry;
      value->delta = -small_number(rng, 8);
      break;
    default:
      value->code.anchor = CodeAnchor::entry;
      value->delta = static_cast<int32_t>(rng.below(static_cast<size_t>(size)));
  }
  if (rng.one_in(8)) {
    value->code.tier = 0;
  }
}

void pick_value(const CodeNames* names, Rng& rng, Mutation* mutation) {
  const ValueRole role = rng.one_in(16) ? ValueRole::any : role_of(*mutation, rng);
  ValueKind kind = real;
  switch (role) {
    case ValueRole::pc:
      kind = rng.pick(kPcKinds);
      break;
    case ValueRole::sp:
      kind = rng.pick(kSpKinds);
      break;
    case ValueRole::fp:
      kind = rng.pick(kFpKinds);
      break;
    case ValueRole::thread_state:
      kind = raw;
      break;
    default:
      kind = rng.any<ValueKind>();
  }
  pick_of_kind(names, rng, kind, &mutation->value);
  if (role == ValueRole::thread_state) {
    mutation->value.raw = rng.pick(kThreadStates);
  }
  finish(rng, mutation);
}

void tweak_value(const CodeNames* names, Rng& rng, Mutation* mutation) {
  SymbolicValue& value = mutation->value;
  if (value.kind == code) {
    tweak_code(names, rng, &value);
  } else if (value.kind == raw) {
    value.raw = rng.one_in(2)
                    ? value.raw ^ uint64_t { 1 } << rng.below(64)
                    : value.raw + static_cast<uint64_t>(with_sign(rng, small_number(rng, 4)));
  } else if (uses_index(value.kind) && rng.one_in(2)) {
    value.index = static_cast<uint16_t>(value.index + with_sign(rng, 1));
  } else if (rng.one_in(8)) {
    value.delta = pick_delta(rng);
  } else {
    const int32_t change =
        rng.one_in(4) ? static_cast<int32_t>(1 + rng.below(8)) : kWord * small_number(rng, 3);
    add_to_delta(&value, with_sign(rng, change));
  }
  finish(rng, mutation);
}

}  // namespace framestorm
