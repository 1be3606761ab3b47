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

#include "prims/asyncUnwindTables.hpp"

#include "prims/asyncUnwindCpu.hpp"
#include "prims/asyncUnwindExpression.hpp"
#include "prims/asyncUnwindProgram.hpp"
#include "prims/asyncUnwindReader.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>

#if defined(HAVE_ASYNC_UNWIND_CPU) && defined(DLFO_STRUCT_HAS_EH_DBASE)
#define HAVE_UNWIND_TABLES
#pragma weak _dl_find_object
#endif

// Without _dl_find_object (glibc before 2.35, musl) nothing that a signal handler may call tells
// objects. What can be read may then be code: the frame pointers decide, and stay on the stack.
static inline bool may_be_code(uintptr_t pc) {
  constexpr uintptr_t kFirstPages = uintptr_t{64} * 1024;
  uintptr_t word = 0;
  return pc >= kFirstPages && AsyncUnwindReader::load(pc & ~uintptr_t(7), &word);
}

#ifdef HAVE_UNWIND_TABLES

// .eh_frame_hdr: Linux Standard Base Core 5.0, chapter 10.6.2.

namespace {

using Step = AsyncUnwindTables::Step;

struct CodeObject {
  uintptr_t low;
  uintptr_t high;
  uintptr_t table_header;  // .eh_frame_hdr
  link_map* map;

  bool contains(uintptr_t address) const { return low <= address && address < high; }
};

// Where an object leaves pages between its segments, as the kernel maps a program, glibc tells the
// segment alone that pc is in. Its tables are in another one, between its first byte and its
// dynamic section.
void extend_to_tables(CodeObject* object) {
  uintptr_t bias = 0;
  uintptr_t dynamic = 0;
  if (object->map == nullptr ||
      !AsyncUnwindReader::load(reinterpret_cast<uintptr_t>(&object->map->l_addr), &bias) ||
      !AsyncUnwindReader::load(reinterpret_cast<uintptr_t>(&object->map->l_ld), &dynamic) ||
      object->table_header < bias || object->table_header >= dynamic) {
    return;
  }
  // A program that is linked to an address has no bias, and does not say where it begins.
  const uintptr_t first = bias != 0 ? bias : object->table_header;
  if (first < object->low) object->low = first;
  if (dynamic > object->high) object->high = dynamic;
}

bool find_object(uintptr_t pc, CodeObject* object) {
  dl_find_object found;
  if (_dl_find_object == nullptr || _dl_find_object(reinterpret_cast<void*>(pc), &found) != 0) {
    return false;
  }
  object->low = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  object->high = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  object->table_header = reinterpret_cast<uintptr_t>(found.dlfo_eh_frame);
  object->map = found.dlfo_link_map;
  if (!object->contains(object->table_header)) extend_to_tables(object);
  return true;
}

// Where the FDE should be that covers `pc`, which is in `object`.
Step find_fde(const CodeObject& object, uintptr_t pc, uintptr_t* fde) {
  constexpr uint64_t kEntrySize = 8;
  if (!object.contains(object.table_header)) return Step::no_table;
  AsyncUnwindReader header(object.table_header, object.high);
  const uint8_t version = header.u1();
  const uint8_t frames_encoding = header.u1();
  const uint8_t count_encoding = header.u1();
  const uint8_t table_encoding = header.u1();
  if (header.failed() || version != 1) return Step::unsupported;
  if (count_encoding == AsyncUnwindReader::omitted || table_encoding == AsyncUnwindReader::omitted)
    return Step::no_table;
  if (count_encoding != AsyncUnwindReader::unsigned4 ||
      table_encoding != (AsyncUnwindReader::data_relative | AsyncUnwindReader::signed4)) {
    return Step::unsupported;  // no linker makes it
  }
  if (frames_encoding != AsyncUnwindReader::omitted) {
    header.value_of_format(frames_encoding);
  }
  const uint64_t count = header.u4();
  const uintptr_t table = header.position();
  if (header.failed() || count > (object.high - table) / kEntrySize) return Step::unsupported;

  // Entries are {start of code, FDE}, both relative to the header and sorted by the first. Wanted:
  // the last that starts at or before pc.
  uint64_t first = 0;
  uint64_t behind = count;
  while (first < behind) {
    const uint64_t middle = first + (behind - first) / 2;
    AsyncUnwindReader entry(table + middle * kEntrySize, object.high);
    const uintptr_t start = object.table_header + entry.s4();
    if (entry.failed()) return Step::unsupported;
    if (start <= pc) {
      first = middle + 1;
    } else {
      behind = middle;
    }
  }
  if (first == 0) return Step::no_table;
  AsyncUnwindReader entry(table + (first - 1) * kEntrySize, object.high);
  entry.skip(kEntrySize / 2);
  *fde = object.table_header + entry.s4();
  return !entry.failed() && object.contains(*fde) ? Step::stepped : Step::unsupported;
}

Step find_cfa(const AsyncUnwindRow& row, const AsyncRegisters& registers,
              const AsyncUnwindStack& stack, uintptr_t* cfa) {
  switch (row.cfa_kind) {
    case AsyncUnwindRow::cfa_unset:
      return Step::unsupported;
    case AsyncUnwindRow::cfa_register:
      if (row.cfa_base == AsyncUnwindCpu::sp_register) {
        *cfa = registers.sp + row.cfa_offset;
      } else if (row.cfa_base == AsyncUnwindCpu::fp_register) {
        *cfa = registers.fp + row.cfa_offset;
      } else {
        return Step::unsupported;
      }
      break;
    case AsyncUnwindRow::cfa_expression:
      if (!AsyncUnwindExpression(registers, stack)
               .evaluate(row.cfa_base, row.cfa_expression_end, nullptr, cfa)) {
        return Step::unsupported;
      }
      break;
  }
  return stack.is_pointer(*cfa) ? Step::stepped : Step::bad_stack;
}

// For rules that are neither unspecified nor undefined.
Step apply(const AsyncUnwindRule& rule, const AsyncRegisters& registers,
           const AsyncUnwindStack& stack, uintptr_t cfa, uintptr_t* value) {
  uintptr_t address = cfa + rule.offset;
  switch (rule.kind) {
    case AsyncUnwindRule::same_value:
      return Step::stepped;
    case AsyncUnwindRule::value_offset:
      *value = address;
      return Step::stepped;
    case AsyncUnwindRule::at_expression:
    case AsyncUnwindRule::value_expression:
      if (!AsyncUnwindExpression(registers, stack)
               .evaluate(rule.offset, rule.expression_end, &cfa, &address)) {
        return Step::unsupported;
      }
      if (rule.kind == AsyncUnwindRule::value_expression) {
        *value = address;
        return Step::stepped;
      }
      break;
    case AsyncUnwindRule::at_offset:
      break;
    default:
      return Step::unsupported;
  }
  return stack.load_word(address, value) ? Step::stepped : Step::bad_stack;
}

Step step_from_linkage_jump(const CodeObject& object, AsyncRegisters* registers,
                            const AsyncUnwindStack& stack) {
  constexpr uintptr_t kBytesBefore = 6;
  if (registers->pc - object.low < kBytesBefore) return Step::no_table;
  AsyncUnwindReader code(registers->pc - kBytesBefore, object.high);
  if (!AsyncUnwindCpu::is_linkage_jump(&code)) return Step::no_table;
  uintptr_t caller_pc = 0;
  if (!stack.load_word(registers->sp, &caller_pc)) return Step::bad_stack;
  if (caller_pc == 0) return Step::end;
  registers->pc = caller_pc;
  registers->sp += sizeof(uintptr_t);
  return Step::stepped;
}

}  // namespace

AsyncUnwindTables::Step AsyncUnwindTables::step(AsyncRegisters* registers, bool interrupted,
                                                uintptr_t low, uintptr_t high) {
  // A call may be its function's last instruction, and the return address another function's first.
  const uintptr_t pc = interrupted ? registers->pc : registers->pc - 1;
  const AsyncUnwindStack stack(low, high);
  CodeObject object;
  if (!find_object(pc, &object)) return Step::no_table;
  uintptr_t fde_address = 0;
  AsyncUnwindFde fde;
  Step result = find_fde(object, pc, &fde_address);
  if (result == Step::stepped) {
    if (!fde.read(fde_address, object.low, object.high)) return Step::unsupported;
    if (!fde.covers(pc)) {
      result = Step::no_table;
    }
  }
  if (result == Step::no_table && interrupted && is_code(pc)) {
    return step_from_linkage_jump(object, registers, stack);
  }
  if (result != Step::stepped) return result;
  AsyncUnwindProgram program(fde, pc);
  if (!program.run(fde)) return Step::unsupported;
  const AsyncUnwindRow& row = program.row();

  // same_value for it, and no rule at all, would mean that the function has no caller but itself.
  const AsyncUnwindRule& return_rule = row.rules[AsyncUnwindRow::return_address];
  if (return_rule.kind == AsyncUnwindRule::undefined) return Step::end;
  if (return_rule.kind == AsyncUnwindRule::unspecified ||
      return_rule.kind == AsyncUnwindRule::same_value) {
    return Step::unsupported;
  }

  uintptr_t cfa = 0;
  result = find_cfa(row, *registers, stack, &cfa);
  AsyncRegisters caller = {0, cfa, registers->fp};
  if (result == Step::stepped) {
    result = apply(return_rule, *registers, stack, cfa, &caller.pc);
  }
  if (result == Step::stepped && row.rules[AsyncUnwindRow::sp].kind > AsyncUnwindRule::same_value) {
    result = apply(row.rules[AsyncUnwindRow::sp], *registers, stack, cfa, &caller.sp);
  }
  // Compilers do not always say that an epilogue has restored the frame pointer. It has where the
  // slot it was saved in is no longer part of the stack.
  const AsyncUnwindRule& fp_rule = row.rules[AsyncUnwindRow::fp];
  const bool fp_restored =
      fp_rule.kind == AsyncUnwindRule::at_offset && cfa + fp_rule.offset < registers->sp;
  if (result == Step::stepped && fp_rule.kind > AsyncUnwindRule::same_value && !fp_restored) {
    result = apply(fp_rule, *registers, stack, cfa, &caller.fp);
  }
  if (result != Step::stepped) return result;
  if (caller.pc == 0) return Step::end;
  if (!stack.is_pointer(caller.sp) || caller.sp <= registers->sp) return Step::bad_stack;
  *registers = caller;
  return fde.cie.is_signal_frame ? Step::stepped_to_interrupted : Step::stepped;
}

bool AsyncUnwindTables::is_code(uintptr_t pc) {
  if (_dl_find_object == nullptr) return may_be_code(pc);
  constexpr uint16_t kMaxSegments = 64;
  CodeObject object;
  uintptr_t bias = 0;
  if (!find_object(pc, &object) || object.map == nullptr ||
      !AsyncUnwindReader::load(reinterpret_cast<uintptr_t>(&object.map->l_addr), &bias)) {
    return false;
  }
  AsyncUnwindReader header(object.low, object.high);
  if (header.u4() != 0x464c457f) return false;  // ELFMAG, little-endian
  header.skip(offsetof(ElfW(Ehdr), e_phoff) - 4);
  const uint64_t segments = header.u8();
  header.skip(offsetof(ElfW(Ehdr), e_phentsize) - offsetof(ElfW(Ehdr), e_phoff) - 8);
  const uint16_t size = header.u2();
  const uint16_t count = header.u2();
  if (size != sizeof(ElfW(Phdr)) || count > kMaxSegments || segments >= object.high - object.low) {
    return false;
  }
  for (int i = 0; i < count; i++) {
    const uintptr_t segment = object.low + segments + i * sizeof(ElfW(Phdr));
    AsyncUnwindReader reader(segment, object.high);
    const uint32_t type = reader.u4();
    const uint32_t flags = reader.u4();
    if (reader.failed()) return false;
    if (type != PT_LOAD || (flags & PF_X) == 0) continue;
    reader.skip(offsetof(ElfW(Phdr), p_vaddr) - 8);
    const uintptr_t start = bias + reader.u8();
    reader.skip(offsetof(ElfW(Phdr), p_memsz) - offsetof(ElfW(Phdr), p_vaddr) - 8);
    if (pc - start < reader.u8() && !reader.failed()) return true;
  }
  return false;
}

#else  // HAVE_UNWIND_TABLES

AsyncUnwindTables::Step AsyncUnwindTables::step(AsyncRegisters*, bool, uintptr_t, uintptr_t) {
  return Step::no_table;
}

bool AsyncUnwindTables::is_code(uintptr_t pc) { return may_be_code(pc); }

#endif  // HAVE_UNWIND_TABLES
