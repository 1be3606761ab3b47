// The unwinder on tables and ELF files that are made here, each with one thing that is unusual or wrong.
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "harness/hotspot/unwind_test/fake_object.h"
#include "harness/hotspot/unwind_test/safe_fetch.h"
#include "prims/asyncUnwindProgram.hpp"
#include "prims/asyncUnwindTables.hpp"

namespace framestorm::unwind_test {
namespace {

using Step = AsyncUnwindTables::Step;
using Bytes = std::vector<unsigned char>;

constexpr size_t kCode = 1 << 18;  // the function is there
constexpr size_t kCodeSize = 256;
constexpr size_t kPage = 4096;

const Bytes kPlain = {0x0c, 7, 8, 0x90, 1};  // CFA: rsp + 8; the return address is below it

void append(Bytes& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<unsigned char>(value >> (8 * i)));
}
void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// What an object with one function holds. What is not named is as linkers write it.
struct Tables {
  Bytes cie_program = kPlain;
  Bytes fde_program;
  std::optional<int> set_loc;  // the FDE's program begins with it: bytes from the function's start
  // The CIE's version, augmentation, alignments, return register, and what the augmentation needs.
  Bytes cie = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
  uint32_t cie_id = 0;
  bool has_augmentation = true;             // else addresses have eight bytes
  Bytes encodings = {1, 0x1b, 0x03, 0x3b};  // of .eh_frame_hdr, behind its version
  std::vector<size_t> starts = {kCode};     // of the table; each entry leads to the FDE
  std::optional<uint32_t> count;            // that .eh_frame_hdr says it has
  bool header_is_last = false;              // up to the object's end; else its beginning
  size_t cut = 0;                           // bytes of the header's end that are not in the object
  size_t header_at = 0;                     // where it is not last
  std::optional<size_t> unreadable;         // a page
  size_t covered = kCodeSize;               // that the FDE says it is for
};

class HandMadeTables : public testing::Test {
 protected:
  static void SetUpTestSuite() { install_safe_fetch(); }

  HandMadeTables() : stack_(512) {
    std::mt19937_64 random(20261128);
    for (auto& word : stack_) word = random();
  }

  uintptr_t stack_low() const { return reinterpret_cast<uintptr_t>(stack_.data()); }
  uintptr_t stack_high() const { return stack_low() + stack_.size() * sizeof(uintptr_t); }

  // The step from `pc` in the object, sp at the stack's bottom; `first_pc`: after one from there.
  Step step_by(const Tables& tables, size_t pc = kCode, std::optional<size_t> first_pc = {}) {
    const size_t header_size = 12 + 8 * tables.starts.size();
    const size_t first = tables.header_is_last ? 0 : tables.header_at + header_size;
    const size_t header = tables.header_is_last ? kCode + kCodeSize : tables.header_at;
    FakeObject object(kCode + kCodeSize + (tables.header_is_last ? header_size - tables.cut : 0));
    const auto put = [&](size_t at, const Bytes& bytes) {
      const size_t room = object.range().high - object.range().low - at;
      std::memcpy(object.bytes() + at, bytes.data(), std::min(room, bytes.size()));
    };

    Bytes cie;
    append(cie, 4 + tables.cie.size() + tables.cie_program.size(), 4);
    append(cie, tables.cie_id, 4);
    append(cie, tables.cie);
    append(cie, tables.cie_program);
    const size_t fde_at = first + cie.size();
    put(first, cie);
    put(fde_at, fde(tables, object.range().low, first, fde_at));

    Bytes bytes = tables.encodings;
    append(bytes, 0, 4);
    append(bytes, tables.count.value_or(static_cast<uint32_t>(tables.starts.size())), 4);
    for (const size_t start : tables.starts) {
      append(bytes, start - header, 4);
      append(bytes, fde_at - header, 4);
    }
    put(header, bytes);
    object.set_table_header(object.range().low + header);
    if (tables.unreadable) {
      EXPECT_EQ(mprotect(object.bytes() + *tables.unreadable, kPage, PROT_NONE), 0);
    }

    const LoadsWatch watch(object.range(), {stack_low(), stack_high()});
    const auto step = [&](size_t from) {
      registers_ = {object.range().low + from, stack_low(), stack_low() + 64};
      return AsyncUnwindTables::step(&registers_, true, stack_low(), stack_high());
    };
    if (first_pc) EXPECT_EQ(step(*first_pc), Step::stepped);
    const Step result = step(pc);
    EXPECT_EQ(LoadsWatch::strays(), 0U);
    EXPECT_LT(LoadsWatch::loads(), kMostLoads);
    return result;
  }
  Step step_by_program(const Bytes& fde_program) { return step_by({.fde_program = fde_program}); }

  AsyncRegisters registers_ = {};
  std::vector<uintptr_t> stack_;

 private:
  static Bytes fde(const Tables& tables, uintptr_t object, size_t cie_at, size_t at) {
    Bytes body;
    append(body, at + 4 - cie_at, 4);
    if (tables.has_augmentation) {
      append(body, kCode - (at + 8), 4);
      append(body, tables.covered, 4);
      body.push_back(0);
    } else {
      append(body, object + kCode, 8);
      append(body, tables.covered, 8);
    }
    if (tables.set_loc) {
      body.push_back(0x01);
      append(body, kCode + static_cast<size_t>(*tables.set_loc) - (at + 4 + body.size()), 4);
    }
    append(body, tables.fde_program);
    Bytes whole;
    append(whole, body.size(), 4);
    append(whole, body);
    EXPECT_LT(at + whole.size(), kCode);
    return whole;
  }
};

TEST_F(HandMadeTables, PlainOnesStep) {
  EXPECT_EQ(step_by({}), Step::stepped);
  EXPECT_EQ(registers_.pc, stack_[0]);
  EXPECT_EQ(registers_.sp, stack_low() + 8);
  EXPECT_EQ(registers_.fp, stack_low() + 64);
}

TEST_F(HandMadeTables, WhatTheFormatsAllowIsSupported) {
  const struct {
    const char* what;
    Tables tables;
  } cases[] = {
      {"version 3, whose return register may be long",
       {.cie = {3, 'z', 'R', 0, 1, 0x78, 0x90, 0, 1, 0x1b}}},
      {"eight letters", {.cie = {1,    'z', 'R', 'R',  'R',  'R',  'R',  'R',  'R',  0,   1,
                                 0x78, 16,  7,   0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b}}},
      {"no augmentation", {.cie = {1, 0, 1, 0x78, 16}, .has_augmentation = false}},
      {"CIE at the object's beginning, header up to its end", {.header_is_last = true}},
      {"as many instructions as may be", {.fde_program = Bytes((1 << 16) - 2, 0)}},
      {"rules that begin behind the pc", {.fde_program = {0x0e, 16}, .set_loc = 1}},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(step_by(test.tables), Step::stepped) << test.what;
    EXPECT_EQ(registers_.pc, stack_[0]) << test.what;
    EXPECT_EQ(registers_.sp, stack_low() + 8) << test.what;
  }
  EXPECT_EQ(step_by({.fde_program = {0x0e, 16}, .set_loc = 0}), Step::stepped);
  EXPECT_EQ(registers_.pc, stack_[1]);
}

TEST_F(HandMadeTables, WhatIsNotSupportedIsSaidToBe) {
  const struct {
    const char* what;
    Bytes cie;
    Bytes fde;
  } cases[] = {
      {"no CFA", {0x90, 1}, {}},
      {"no return address", {0x0c, 7, 8}, {}},
      {"no return address, and a CFA that is not on the stack", {0x0c, 7, 12}, {}},
      {"CFA by rbx", kPlain, {0x0d, 3}},
      {"return address in a register", kPlain, {0x09, 16, 3}},
      {"return address like the callee's", kPlain, {0x08, 16}},
      {"return address by an expression without operands", kPlain, {0x16, 16, 1, 0x22}},
      {"restore in a CIE", {0x0c, 7, 8, 0x90, 1, 0xd0}, {}},
      {"unknown instruction", kPlain, {0x3c}},
      {"remembered too often", kPlain, Bytes(9, 0x0a)},
      {"nothing remembered", kPlain, {0x0b}},
      {"CFA offset without a CFA", {0x0e, 8, 0x90, 1}, {}},
      {"too long", kPlain, Bytes((1 << 16) - 1, 0)},
      {"number too long", kPlain, Bytes(12, 0x8e)},
      {"cut off", kPlain, {0x0e}},
      {"expression of another register", kPlain, {0x0f, 2, 0x73, 8}},
      {"expression without operands", kPlain, {0x0f, 1, 0x22}},
      {"expression with too many",
       kPlain,
       {0x0f, 17, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30,
        0x30, 0x30, 0x30, 0x30}},
      {"expression with a branch", kPlain, {0x0f, 5, 0x77, 8, 0x2f, 0xfd, 0xff}},
      {"expression behind the table", kPlain, {0x0f, 0x7f, 0x77, 8}},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(step_by({.cie_program = test.cie, .fde_program = test.fde}), Step::unsupported)
        << test.what;
  }
}

TEST_F(HandMadeTables, WhatIsMalformedIsRefused) {
  const struct {
    const char* what;
    Tables tables;
  } cases[] = {
      {"an FDE for a CIE", {.cie_id = 1}},
      {"version 2", {.cie = {2, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b}}},
      {"nine letters", {.cie = {1,    'z', 'R', 'R',  'R',  'R',  'R',  'R',  'R',  'R',  0,   1,
                                0x78, 16,  8,   0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b}}},
      {"augmentation without its length", {.cie = {1, 'R', 0, 1, 0x78, 16, 1, 0x1b}}},
      {"unknown letter", {.cie = {1, 'z', 'X', 0, 1, 0x78, 16, 1, 0x1b}}},
      {"version 2 of the header", {.encodings = {2, 0x1b, 0x03, 0x3b}}},
      {"signed count", {.encodings = {1, 0x1b, 0x0b, 0x3b}}},
      {"table relative to the pc", {.encodings = {1, 0x1b, 0x03, 0x1b}}},
      {"augmentation without its length, and addresses of eight bytes",
       {.fde_program = {0}, .cie = {1, 'x', 0, 1, 0x78, 16, 0}, .has_augmentation = false}},
      {"augmentation behind the CIE",
       {.cie_program = {},
        .fde_program = kPlain,
        .cie = {1, 'z', 'R', 0, 1, 0x78, 16, 0x7f, 0x1b}}},
      {"count cut off", {.header_is_last = true, .cut = 10}},
      {"no count", {.header_is_last = true, .cut = 12}},
      {"more entries than the object holds",
       {.starts = {kCode, kCode + kCodeSize}, .count = 3, .header_is_last = true}},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(step_by(test.tables), Step::unsupported) << test.what;
  }
}

TEST_F(HandMadeTables, EntriesThatCannotBeReadAreNotSupported) {
  Tables tables = {.starts = std::vector<size_t>(1024, kCode), .header_at = 5};
  EXPECT_EQ(step_by(tables), Step::stepped);
  // The first entry that is looked at is there; the last ones are behind it.
  tables.unreadable = kPage;
  EXPECT_EQ(step_by(tables), Step::unsupported);
  // Of the last entry one byte is there, the last: it is 0, as what was not read.
  tables.count = 510;
  EXPECT_EQ(step_by(tables), Step::unsupported);
  tables.count = 509;
  EXPECT_EQ(step_by(tables), Step::stepped);
}

// In an object that has room for as many bytes as the escape is as a number.
TEST_F(HandMadeTables, TablesOf64BitDwarfAreRefused) {
  const Bytes plain_cie = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8};
  Bytes plain_fde = {20, 0, 0, 0, 20, 0, 0, 0};
  append(plain_fde, kCode, 8);
  append(plain_fde, kCodeSize, 8);
  const auto reads = [](const Bytes& cie, const Bytes& fde) {
    Bytes both = cie;
    append(both, fde);
    const auto low = reinterpret_cast<uintptr_t>(both.data());
    AsyncUnwindFde read;
    return read.read(low + cie.size(), low, low + (uintptr_t{1} << 33));
  };
  const auto escaped = [](Bytes table) {
    std::fill_n(table.begin(), 4, 0xff);
    return table;
  };
  EXPECT_TRUE(reads(plain_cie, plain_fde));
  EXPECT_FALSE(reads(escaped(plain_cie), plain_fde));
  EXPECT_FALSE(reads(plain_cie, escaped(plain_fde)));
}

TEST_F(HandMadeTables, WhereNoFunctionIsThereIsNoTable) {
  EXPECT_EQ(step_by({}, kCode - 1), Step::no_table);
  EXPECT_EQ(step_by({}, kCode + kCodeSize - 1), Step::stepped);
  EXPECT_EQ(step_by({.header_is_last = true}, kCode + kCodeSize), Step::no_table);
  EXPECT_EQ(step_by({.encodings = {1, 0x1b, 0xff, 0x3b}}), Step::no_table);
  EXPECT_EQ(step_by({.encodings = {1, 0x1b, 0x03, 0xff}}), Step::no_table);
}

TEST_F(HandMadeTables, WhatIsInNoObjectHasNoneOfTheLastOnes) {
  EXPECT_EQ(step_by({.covered = 2 * kCodeSize}, kCode + kCodeSize, kCode), Step::no_table);
}

TEST_F(HandMadeTables, AnUndefinedReturnAddressIsTheEnd) {
  EXPECT_EQ(step_by_program({0x07, 16}), Step::end);
  stack_[0] = 0;
  EXPECT_EQ(step_by({}), Step::end);
}

TEST_F(HandMadeTables, FramesThatAreNotOnTheStack) {
  EXPECT_EQ(step_by_program({0x0e, 0}), Step::bad_stack);   // the return address is below sp
  EXPECT_EQ(step_by_program({0x0e, 12}), Step::bad_stack);  // misaligned
  EXPECT_EQ(step_by_program({0x0e, 12, 0x14, 7, 1}), Step::bad_stack);    // sp would be right
  EXPECT_EQ(step_by_program({0x0e, 0x80, 0x40}), Step::bad_stack);        // 8 KB: above
  EXPECT_EQ(step_by_program({0x0c, 6, 0x80, 0x80, 4}), Step::bad_stack);  // by rbp, far above
  EXPECT_EQ(step_by_program({0x0f, 3, 0x77, 0, 0x06}), Step::bad_stack);  // CFA: a random word
  EXPECT_EQ(step_by_program({0x16, 7, 1, 0x30}), Step::bad_stack);        // sp: 0
}

TEST_F(HandMadeTables, AFramePointerThatWasSavedBelowSpIsRestored) {
  EXPECT_EQ(step_by_program({0x86, 2}), Step::stepped);  // at CFA - 16, which is below sp
  EXPECT_EQ(registers_.fp, stack_low() + 64);
  EXPECT_EQ(step_by_program({0x14, 6, 2}), Step::stepped);  // it is CFA - 16
  EXPECT_EQ(registers_.fp, stack_low() + 8 - 16);
}

// An ELF file as it is loaded, at the addresses that it was linked to.
class HandMadeElf : public testing::Test {
 protected:
  static constexpr size_t kSize = 8192;
  static constexpr size_t kAt = 4096, kLength = 64;  // of the code

  static void SetUpTestSuite() { install_safe_fetch(); }

  HandMadeElf() : object_(kSize) {
    object_.set_table_header(0);
    object_.set_link_map(&map_);
    header_.e_phoff = sizeof header_;
    header_.e_phentsize = sizeof(ElfW(Phdr));
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
  }

  uintptr_t address(size_t offset) const { return object_.range().low + offset; }

  ElfW(Phdr) segment(size_t at = kAt) const {
    ElfW(Phdr) segment = {};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_vaddr = address(at);
    segment.p_memsz = kLength;
    return segment;
  }

  // `count`: that the header says; all of `segments` are there.
  void write(const std::vector<ElfW(Phdr)>& segments, std::optional<size_t> count = {}) {
    header_.e_phnum = static_cast<ElfW(Half)>(count.value_or(segments.size()));
    std::memcpy(object_.bytes(), &header_, sizeof header_);
    if (header_.e_phoff >= kSize) return;
    std::memcpy(object_.bytes() + header_.e_phoff, segments.data(),
                std::min(segments.size() * sizeof(ElfW(Phdr)), kSize - header_.e_phoff));
  }

  bool is_code(size_t offset) const {
    const auto map = reinterpret_cast<uintptr_t>(&map_);
    const LoadsWatch watch(object_.range(), {map, map + sizeof map_});
    const bool is = AsyncUnwindTables::is_code(address(offset));
    EXPECT_EQ(LoadsWatch::strays(), 0U);
    return is;
  }

  link_map map_ = {};
  FakeObject object_;
  ElfW(Ehdr) header_ = {};
};

TEST_F(HandMadeElf, CodeIsInAnExecutableSegment) {
  write({segment()});
  EXPECT_TRUE(is_code(kAt));
  EXPECT_TRUE(is_code(kAt + kLength - 1));
  EXPECT_FALSE(is_code(kAt - 1));
  EXPECT_FALSE(is_code(kAt + kLength));
  std::vector<ElfW(Phdr)> segments(64, segment(0));
  segments.back() = segment();
  write(segments);
  EXPECT_TRUE(is_code(kAt));
  write(segments, 63);
  EXPECT_FALSE(is_code(kAt));
}

TEST_F(HandMadeElf, WhatIsInNoObjectIsNotCodeOfTheLastOne) {
  ElfW(Phdr) longer = segment();
  longer.p_memsz = 2 * kSize;
  write({longer});
  EXPECT_TRUE(is_code(kAt));
  EXPECT_FALSE(is_code(kSize));
}

TEST_F(HandMadeElf, OtherSegmentsHoldNone) {
  ElfW(Phdr) stack = segment();
  stack.p_type = PT_GNU_STACK;
  ElfW(Phdr) data = segment();
  data.p_flags = PF_R | PF_W;
  write({stack, data});
  EXPECT_FALSE(is_code(kAt));
}

TEST_F(HandMadeElf, WhatIsNoElfFileHoldsNone) {
  const auto holds_none = [&](const std::function<void()>& damage) {
    const ElfW(Ehdr) whole = header_;
    damage();
    write({segment()}, header_.e_phnum == 0 ? 1 : header_.e_phnum);
    const bool none = !is_code(kAt);
    header_ = whole;
    return none;
  };
  EXPECT_FALSE(holds_none([] {}));
  EXPECT_TRUE(holds_none([&] { header_.e_ident[1] = 'F'; }));
  EXPECT_TRUE(holds_none([&] { header_.e_phentsize = sizeof(ElfW(Phdr)) - 1; }));
  EXPECT_TRUE(holds_none([&] { header_.e_phnum = 65; }));
  EXPECT_TRUE(holds_none([&] { header_.e_phoff = kSize; }));
  // Of the segment's size the object has the first byte.
  EXPECT_TRUE(holds_none([&] { header_.e_phoff = kSize - offsetof(ElfW(Phdr), p_memsz) - 1; }));
  EXPECT_TRUE(holds_none([&] { header_.e_phoff = 0 - 2 * sizeof(ElfW(Phdr)); }));
}

TEST_F(HandMadeElf, AnObjectWithoutALinkMapHoldsNone) {
  write({segment()});
  object_.set_link_map(nullptr);
  EXPECT_FALSE(AsyncUnwindTables::is_code(address(kAt)));
  object_.set_link_map(reinterpret_cast<link_map*>(object_.range().high));  // unreadable
  EXPECT_FALSE(AsyncUnwindTables::is_code(address(kAt)));
}

// jmp *address(%rip), where there is no table: its frame is the return address.
TEST_F(HandMadeElf, AJumpOfALinkageTableIsOneInCodeWhereItIsInterrupted) {
  constexpr size_t kJump = kAt + 8;
  object_.bytes()[kJump] = 0xff;
  object_.bytes()[kJump + 1] = 0x25;
  const std::vector<uintptr_t> stack = {address(kAt), 1, 2, 3};
  const auto low = reinterpret_cast<uintptr_t>(stack.data());
  const auto step = [&](bool interrupted) {
    AsyncRegisters registers = {address(kJump), low, low};
    return AsyncUnwindTables::step(&registers, interrupted, low, low + 32);
  };
  write({segment()});
  EXPECT_EQ(step(true), Step::stepped);
  EXPECT_EQ(step(false), Step::no_table);
  ElfW(Phdr) data = segment();
  data.p_flags = PF_R;
  write({data});
  EXPECT_EQ(step(true), Step::no_table);
}

}  // namespace
}  // namespace framestorm::unwind_test
