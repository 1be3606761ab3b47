// How far a frame is built, and what is pushed on it, as the instructions around pc say: code of
// HotSpot's, and what is true at each of its instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "asyncPushedWords_x86.hpp"
#include "asyncTransitions_x86.hpp"

namespace {

using Code = std::vector<u1>;

// C1's check of a subtype is called at the end of the code under test.
constexpr u1 kCheck[] = {0x57, 0x56, 0x51, 0x50, 0xc3};

// One instruction, and what is true before it.
struct At {
  Code bytes;
  int words;
};

Code joined(const std::vector<At>& instructions) {
  Code code;
  for (const At& at : instructions) code.insert(code.end(), at.bytes.begin(), at.bytes.end());
  return code;
}

// The same, its first call one of the check at the end.
Code linked(const std::vector<At>& instructions) {
  Code code = joined(instructions);
  size_t call = 0;
  for (size_t i = 0; instructions[i].bytes[0] != 0xe8; ++i) call += instructions[i].bytes.size();
  const auto distance = static_cast<int32_t>(code.size() - call - 5);
  memcpy(code.data() + call + 1, &distance, sizeof(distance));
  code.insert(code.end(), std::begin(kCheck), std::end(kCheck));
  static CodeBlob check;
  const u1* const end = code.data() + code.size();
  check = {end - sizeof(kCheck), end};
  CodeCache::only = &check;
  return code;
}

void expect_words(const std::vector<At>& instructions, const Code& code,
                  int (*count)(const u1* pc, const u1* begin, const u1* end)) {
  const u1* pc = code.data();
  for (const At& at : instructions) {
    EXPECT_EQ(count(pc, code.data(), code.data() + code.size()), at.words)
        << "at " << pc - code.data();
    pc += at.bytes.size();
  }
}

// LIR_Assembler::emit_arraycopy of C1: rsi and rdx are pushed twice.
TEST(PushedWordsTest, WordsAreCountedThatC1PushesToCopyAnArray) {
  const std::vector<At> instructions = {
      {{0x89, 0xc8}, 0},                    // mov eax, ecx
      {{0x56}, 0},                          // push rsi
      {{0x52}, 1},                          // push rdx
      {{0x8b, 0x76, 0x08}, 2},              // mov esi, [rsi + 8]
      {{0x8b, 0x52, 0x08}, 2},              // mov edx, [rdx + 8]
      {{0x48, 0x3b, 0xf2}, 2},              // cmp rsi, rdx
      {{0x0f, 0x84, 0x20, 0, 0, 0}, 2},     // je cont
      {{0x56}, 2},                          // push rsi
      {{0x52}, 3},                          // push rdx
      {{0xe8, 0, 0, 0, 0}, 4},              // call slow_subtype_check
      {{0x5a}, 4},                          // pop rdx
      {{0x5e}, 3},                          // pop rsi
      {{0x85, 0xf6}, 2},                    // test esi, esi
      {{0x0f, 0x85, 0x10, 0, 0, 0}, 2},     // jne cont
      {{0x5a}, 2},                          // pop rdx
      {{0x5e}, 1},                          // pop rsi
      {{0x48, 0x8b, 0x4c, 0x24, 0x08}, 0},  // mov rcx, [rsp + 8]
      {{0xe9, 0x02, 0, 0, 0}, 0},           // jmp
      {{0x5a}, 2},                          // cont: pop rdx
      {{0x5e}, 1},                          // pop rsi
      {{0x48, 0x8b, 0xc1}, 0},              // mov rax, rcx
  };
  expect_words(instructions, linked(instructions), words_pushed_for_check);
}

// LIR_Assembler::emit_typecheck_helper: nothing is pushed around it.
TEST(PushedWordsTest, WordsAreCountedThatC1PushesToCheckASubtype) {
  const std::vector<At> instructions = {
      {{0x41, 0x50}, 0},                 // push r8
      {{0x57}, 1},                       // push rdi
      {{0xe8, 0, 0, 0, 0}, 2},           // call slow_subtype_check
      {{0x5f}, 2},                       // pop rdi
      {{0x41, 0x58}, 1},                 // pop r8
      {{0x45, 0x85, 0xc0}, 0},           // test r8d, r8d
      {{0x0f, 0x84, 0x10, 0, 0, 0}, 0},  // je
      {{0x48, 0x8b, 0xc1}, 0},           // mov rax, rcx
  };
  expect_words(instructions, linked(instructions), words_pushed_for_check);
}

// SaveLiveRegisters of C2's barriers, and the arguments of what is called.
TEST(PushedWordsTest, WordsAreCountedThatABarrierPushes) {
  const std::vector<At> instructions = {
      {{0x48, 0x8b, 0xc1}, 0},              // mov rax, rcx
      {{0x48, 0x83, 0xec, 0x20}, 0},        // sub rsp, 32
      {{0x48, 0x89, 0x04, 0x24}, 4},        // mov [rsp], rax
      {{0x4c, 0x89, 0x44, 0x24, 0x08}, 4},  // mov [rsp + 8], r8
      {{0x49, 0x8d, 0x74, 0x88, 0x10}, 4},  // lea rsi, [r8 + rcx * 4 + 16]
      {{0x48, 0x8b, 0xfa}, 4},              // mov rdi, rdx
      {{0xe8, 0, 0, 0, 0}, 4},              // call
      {{0x48, 0x8b, 0x04, 0x24}, 4},        // mov rax, [rsp]
      {{0x48, 0x83, 0xc4, 0x20}, 4},        // add rsp, 32
      {{0xc3}, 0},                          // something else
  };
  Code code = joined(instructions);
  code.resize(code.size() + 16, 0x90);
  expect_words(instructions, code, words_pushed_for_barrier);
}

// MacroAssembler::sha512_AVX2 and sha256_AVX2. `words`: pushed between the kept sp and rbp's place; -1:
// rbp is the frame pointer.
void expect_kept(const std::vector<At>& instructions, bool restored_at_end) {
  const Code code = joined(instructions);
  const u1* pc = code.data();
  bool restored = false;
  for (const At& at : instructions) {
    KeptSp kept;
    const bool found = kept.find(pc, code.data(), code.data() + code.size());
    EXPECT_EQ(found, at.words >= 0) << "at " << pc - code.data();
    if (found) {
      EXPECT_EQ(kept.at(), 0x38);
      EXPECT_EQ(kept.pushed(), at.words) << "at " << pc - code.data();
      restored = kept.restored();
    }
    pc += at.bytes.size();
  }
  EXPECT_EQ(restored, restored_at_end);
}

const std::vector<At> kKeepsSp = {
    {{0x48, 0x8b, 0xc4}, -1},              // mov rax, rsp
    {{0x48, 0x83, 0xec, 0x70}, -1},        // sub rsp, 0x70
    {{0x48, 0x83, 0xe4, 0xe0}, -1},        // and rsp, -32
    {{0x48, 0x89, 0x44, 0x24, 0x38}, -1},  // mov [rsp + 0x38], rax
};

// SharedRuntime::generate_i2c2i_adapters, with Shenandoah's barrier of a load and that of what is marked,
// and the pushes of ZGC's.
TEST(PushedWordsTest, WhatBarriersOfAnAdapterPushIsCounted) {
  const std::vector<At> instructions = {
      {{0x41, 0xff, 0xe3}, 0},                                // jmp r11
      {{0x48, 0x83, 0xfb, 0x00}, 0},                          // cmp rbx, 0
      {{0x0f, 0x84, 0xb8, 0x02, 0, 0}, 0},                    // je
      {{0x41, 0x83, 0x7a, 0x24, 0x50}, 0},                    // cmp dword [r10 + 36], 'P'
      {{0x41, 0x80, 0xba, 0x30, 1, 0, 0, 0x04}, 0},           // cmp byte [r10 + 304], 4
      {{0x4d, 0x8b, 0x1a}, 0},                                // mov r11, [r10]
      {{0x41, 0xf6, 0x47, 0x38, 0x11}, 0},                    // test byte [r15 + 56], 17
      {{0x48, 0x81, 0xec, 0x80, 0, 0, 0}, 0},                 // sub rsp, 128
      {{0xc5, 0xfb, 0x11, 0x44, 0x24, 0x50}, 16},             // vmovsd [rsp + 80], xmm0
      {{0x48, 0x83, 0xec, 0x48}, 16},                         // sub rsp, 72
      {{0x48, 0x89, 0x44, 0x24, 0x40}, 25},                   // mov [rsp + 64], rax
      {{0x4c, 0x89, 0x1c, 0x24}, 25},                         // mov [rsp], r11
      {{0x49, 0x8d, 0x32}, 25},                               // lea rsi, [r10]
      {{0x40, 0xf6, 0xc4, 0x0f}, 25},                         // test spl, 15
      {{0x0f, 0x84, 0x12, 0, 0, 0}, 25},                      // je
      {{0x48, 0x83, 0xec, 0x08}, 25},                         // sub rsp, 8
      {{0xe8, 1, 2, 3, 4}, 26},                               // call
      {{0x48, 0x83, 0xc4, 0x08}, 26},                         // add rsp, 8
      {{0xe9, 0x05, 0, 0, 0}, 25},                            // jmp
      {{0xe8, 1, 2, 3, 4}, 25},                               // call
      {{0x4c, 0x8b, 0x1c, 0x24}, 25},                         // mov r11, [rsp]
      {{0x48, 0x83, 0xc4, 0x48}, 25},                         // add rsp, 72
      {{0xc5, 0xfb, 0x10, 0x04, 0x24}, 16},                   // vmovsd xmm0, [rsp]
      {{0x48, 0x81, 0xc4, 0x80, 0, 0, 0}, 16},                // add rsp, 128
      {{0x9c}, 0},                                            // pushf
      {{0x48, 0x83, 0xec, 0x08}, 1},                          // sub rsp, 8
      {{0x50}, 2},                                            // push rax
      {{0x41, 0x53}, 3},                                      // push r11
      {{0x49, 0xba, 0x58, 2, 3, 4, 5, 6, 7, 8}, 4},           // mov r10, 64 bits
      {{0x41, 0xff, 0xd2}, 4},                                // call r10
      {{0x41, 0xc7, 0x47, 0x10, 0x50, 0x50, 0x50, 0x50}, 4},  // mov dword [r15 + 16], 32 bits
      {{0x41, 0x5b}, 4},                                      // pop r11
      {{0x58}, 3},                                            // pop rax
      {{0x48, 0x83, 0xc4, 0x08}, 2},                          // add rsp, 8
      {{0x9d}, 1},                                            // popf
      {{0x4c, 0x8b, 0xec}, 0},                                // mov r13, rsp
  };
  Code code = joined(instructions);
  const Code lookup = {0x4c, 0x8d, 0x6c, 0x24, 0x08};  // lea r13, [rsp + 8]
  code.insert(code.end(), lookup.begin(), lookup.end());
  const CodeBlob blob = {code.data(), code.data() + code.size()};
  const u1* pc = code.data();
  for (const At& at : instructions) {
    const AdapterDepth depth(pc, &blob);
    EXPECT_EQ(depth.return_at, at.words * wordSize) << "at " << pc - code.data();
    EXPECT_EQ(depth.caller_sp, (at.words + 1) * wordSize) << "at " << pc - code.data();
    pc += at.bytes.size();
  }
}

// TemplateInterpreterGenerator::generate_Reference_get_entry: what stands behind the jump is jumped to.
TEST(PushedWordsTest, WhatIsPushedIsNotToldWhereSpIsSet) {
  const Code code = {
      0x50,                          // push rax
      0x48, 0x83, 0xe4, 0xf0,        // and rsp, -16
      0x90,                          // nop
      0x49, 0x8b, 0xe5,              // mov rsp, r13
      0xff, 0xe7,                    // jmp rdi
      0x48, 0x8d, 0x64, 0x24, 0x08,  // lea rsp, [rsp + 8]
      0x0f, 0x0b,                    // ud2
      0x90,                          // nop
  };
  const auto told = [&](size_t at) {
    ptrdiff_t bytes = 0;
    const u1* const begin = code.data();
    return bytes_pushed(begin, begin + at, begin + code.size(), &bytes) ? bytes : -1;
  };
  const std::vector<std::pair<size_t, ptrdiff_t>> expected = {{0, 0},  {1, 8},  {5, -1},  {6, -1},
                                                              {9, -1}, {11, 0}, {16, -1}, {18, -1}};
  for (const auto& [at, bytes] : expected) EXPECT_EQ(told(at), bytes) << "at " << at;
  EXPECT_EQ(told(2), -1) << "inside an instruction";
}

TEST(PushedWordsTest, TheSpIsFoundThatSha512Keeps) {
  std::vector<At> code = {{{0x55}, -1}, {{0x48, 0x8b, 0xec}, -1}, {{0x52}, -1}, {{0x51}, -1}};
  code.insert(code.end(), kKeepsSp.begin(), kKeepsSp.end());
  const std::vector<At> rest = {
      {{0x48, 0xbd, 1, 2, 3, 4, 5, 6, 7, 8}, 2},  // mov rbp, immediate
      {{0x48, 0x8b, 0x6c, 0x24, 0x40}, 2},        // mov rbp, [rsp + 0x40]
      {{0x48, 0x8b, 0x64, 0x24, 0x38}, 2},        // mov rsp, [rsp + 0x38]
      {{0x59}, 2},                                // pop rcx
      {{0x5a}, 1},                                // pop rdx
      {{0xc5, 0xf8, 0x77}, 0},                    // vzeroupper
      {{0xc9}, -1},                               // leave
      {{0xc3}, -1},                               // ret
  };
  code.insert(code.end(), rest.begin(), rest.end());
  expect_kept(code, /*restored_at_end=*/true);
}

// The frame is gone where it is looked whether the reserved zone was used, up to where the jump goes
// that says no (MacroAssembler::reserved_stack_check).
TEST(PushedWordsTest, TheFrameIsGoneAtTheCheckOfTheReservedZone) {
  const std::vector<At> instructions = {
      {{0x48, 0x83, 0xc4, 0x10}, 0},              // add rsp, 16
      {{0x5d}, 0},                                // pop rbp
      {{0x49, 0x3b, 0xa7, 0xb8, 0x05, 0, 0}, 1},  // cmp rsp, [r15 + 0x5b8]
      {{0x0f, 0x82, 0x08, 0, 0, 0}, 1},           // jb
      {{0x49, 0x8b, 0xff}, 1},                    // mov rdi, r15
      {{0xe9, 0, 0, 0, 0}, 1},                    // jmp throw_delayed_StackOverflowError
      {{0x48, 0x8b, 0xc1}, 0},                    // something else
  };
  const Code code = joined(instructions);
  const u1* pc = code.data();
  for (const At& at : instructions) {
    EXPECT_EQ(is_taken_down(pc, code.data(), code.data() + code.size()), at.words == 1)
        << "at " << pc - code.data();
    pc += at.bytes.size();
  }
}

// SharedRuntime::generate_deopt_blob: from behind push rbp, mov rbp, rsp up to the load of r14.
TEST(PushedWordsTest, ABlobSavesRegistersUntilItLoadsR14) {
  const std::vector<At> instructions = {
      {{0x55}, 0},                          // push rbp
      {{0x48, 0x8b, 0xec}, 1},              // mov rbp, rsp
      {{0x9c}, 1},                          // pushfq
      {{0x48, 0x83, 0xec, 0x08}, 1},        // sub rsp, 8
      {{0x48, 0x89, 0x44, 0x24, 0x78}, 1},  // mov [rsp + 0x78], rax
      {{0x41, 0xbe, 0, 0, 0, 0}, 1},        // mov r14d, 0
      {{0x48, 0x8b, 0xc1}, 0},              // what follows
  };
  const Code code = joined(instructions);
  const u1* pc = code.data();
  for (const At& at : instructions) {
    EXPECT_EQ(is_saving_registers(pc, code.data(), code.data() + code.size()), at.words == 1)
        << "at " << pc - code.data();
    pc += at.bytes.size();
  }
}

}  // namespace
