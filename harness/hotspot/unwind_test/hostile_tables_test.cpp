// The unwinder on tables that were damaged, and on none at all: whatever they hold, it reads within
// the object and the stack, comes back soon, and gives registers that a walk can go on with.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "harness/hotspot/unwind_test/fake_object.h"
#include "harness/hotspot/unwind_test/safe_fetch.h"
#include "harness/hotspot/unwind_test/victims.h"
#include "prims/asyncUnwindTables.hpp"

namespace framestorm::unwind_test {
namespace {

using Step = AsyncUnwindTables::Step;
using Random = std::mt19937_64;

// As many as the largest allowed number of instructions can need.
constexpr uint64_t kMostLoads = 400'000;

template <class T>
T read(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

class HostileTables : public testing::Test {
 protected:
  static void SetUpTestSuite() { install_safe_fetch(); }

  HostileTables() : stack_(512) {
    for (auto& word : stack_) word = random_();
  }

  uintptr_t stack_low() const { return reinterpret_cast<uintptr_t>(stack_.data()); }
  uintptr_t stack_high() const { return stack_low() + stack_.size() * sizeof(uintptr_t); }

  uintptr_t on_stack() { return stack_low() + random_() % (stack_high() - stack_low() + 1); }
  uintptr_t word_on_stack() { return on_stack() & ~uintptr_t{7}; }

  // One step, and what has to hold whatever the tables say. The step's result.
  Step step(const FakeObject& object, uintptr_t pc) {
    const bool good_stack = random_() % 4 != 0;
    const AsyncRegisters before = {pc, good_stack ? word_on_stack() : random_(),
                                   good_stack ? word_on_stack() : random_()};
    AsyncRegisters after = before;
    const LoadsWatch watch(object.range(), {stack_low(), stack_high()});
    const Step result =
        AsyncUnwindTables::step(&after, random_() % 2 == 0, stack_low(), stack_high());
    most_loads_ = std::max(most_loads_, LoadsWatch::loads());
    EXPECT_EQ(LoadsWatch::strays(), 0U);
    if (result == Step::stepped || result == Step::stepped_to_interrupted) {
      EXPECT_GT(after.sp, before.sp);
      EXPECT_LE(after.sp, stack_high());
      EXPECT_GE(after.sp, stack_low());
      EXPECT_EQ(after.sp % sizeof(uintptr_t), 0U);
      EXPECT_NE(after.pc, 0U);
    } else {
      EXPECT_EQ(std::memcmp(&before, &after, sizeof before), 0);
    }
    ++results_[static_cast<size_t>(result)];
    return result;
  }

  uint64_t count(Step result) const { return results_[static_cast<size_t>(result)]; }

  Random random_{20261120};
  std::vector<uintptr_t> stack_;
  std::array<uint64_t, 6> results_{};
  uint64_t most_loads_ = 0;
};

TEST_F(HostileTables, TheWatchSeesAStrayLoad) {
  AsyncRegisters registers = {reinterpret_cast<uintptr_t>(&call_chain), word_on_stack(), 0};
  const LoadsWatch watch({}, {});
  AsyncUnwindTables::step(&registers, true, stack_low(), stack_high());
  EXPECT_GT(LoadsWatch::strays(), 0U);
}

// The parts of a copied object that a step from some pc reads.
struct Tables {
  uintptr_t pc = 0;
  unsigned char* header = nullptr;  // 12 bytes, then the entries
  unsigned char* entry = nullptr;
  unsigned char* fde = nullptr;
  unsigned char* cie = nullptr;
};

class CopiedObject : public HostileTables {
 protected:
  CopiedObject()
      : original_(loaded_object(reinterpret_cast<uintptr_t>(&call_chain))), copy_(original_) {
    header_ = copy_.bytes() + (original_.table_header - original_.range.low);
    entries_ = read<uint32_t>(header_ + 8);
  }

  // What the linker wrote, read without any check.
  Tables any_tables() {
    Tables tables;
    tables.header = header_;
    tables.entry = header_ + 12 + 8 * (random_() % entries_);
    tables.fde = header_ + read<int32_t>(tables.entry + 4);
    tables.cie = tables.fde + 4 - read<uint32_t>(tables.fde + 4);
    const uint32_t size = read<uint32_t>(tables.fde + 12);
    tables.pc = reinterpret_cast<uintptr_t>(header_ + read<int32_t>(tables.entry)) +
                (size == 0 ? 0 : random_() % size);
    return tables;
  }

  LoadedObject original_;
  FakeObject copy_;
  unsigned char* header_ = nullptr;
  uint32_t entries_ = 0;
};

TEST_F(CopiedObject, UndamagedTablesStep) {
  for (int i = 0; i < 20'000; ++i) step(copy_, any_tables().pc);
  EXPECT_GT(count(Step::stepped), 2000U);
  EXPECT_GT(count(Step::bad_stack), 2000U);
}

TEST_F(CopiedObject, DamagedTablesDoNoHarm) {
  constexpr int kRounds = 300'000;
  constexpr size_t kReach = 72;  // bytes of an FDE and of a CIE; damage behind is of others
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const Tables tables = any_tables();
    struct Damage {
      unsigned char* place;
      unsigned char byte;
    };
    std::array<Damage, 6> damages{};
    const size_t used = 1 + random_() % damages.size();
    for (size_t i = 0; i < used; ++i) {
      const std::array<unsigned char*, 8> places = {
          tables.fde + random_() % kReach,  tables.fde + random_() % kReach,
          tables.fde + 16 + random_() % 16, tables.cie + random_() % 32,
          tables.cie + 8 + random_() % 16,  tables.entry + random_() % 8,
          tables.header + random_() % 12,   tables.fde + random_() % 16};
      unsigned char* place = places[random_() % places.size()];
      damages[i] = {place, *place};
      const auto byte = static_cast<unsigned char>(random_());
      *place = random_() % 2 == 0 ? byte : static_cast<unsigned char>(*place ^ (1U << byte % 8));
    }
    step(copy_, tables.pc + random_() % 2);
    for (size_t i = used; i-- > 0;) *damages[i].place = damages[i].byte;
  }
  EXPECT_LT(most_loads_, kMostLoads);
  EXPECT_GT(count(Step::stepped), 1000U);
  EXPECT_GT(count(Step::unsupported), 1000U);
  EXPECT_GT(count(Step::bad_stack), 1000U);
  EXPECT_GT(count(Step::no_table), 100U);
}

TEST_F(HostileTables, RandomBytesDoNoHarm) {
  constexpr size_t kSize = 1 << 16;
  FakeObject object(kSize);
  for (int content = 0; content < 40 && !HasFailure(); ++content) {
    for (size_t i = 0; i < kSize; ++i) object.bytes()[i] = static_cast<unsigned char>(random_());
    for (int round = 0; round < 2000 && !HasFailure(); ++round) {
      // A header, and often a table, that lead into the noise.
      const size_t at = random_() % (kSize - 16);
      object.set_table_header(object.range().low + at);
      const std::array<unsigned char, 4> header = {1, 0x1b, 0x03, 0x3b};
      std::memcpy(object.bytes() + at, header.data(), header.size());
      if (random_() % 4 != 0) {
        const auto count = static_cast<uint32_t>(random_() % ((kSize - at) / 8));
        std::memcpy(object.bytes() + at + 8, &count, sizeof count);
      }
      step(object, object.range().low + random_() % kSize);
    }
  }
  EXPECT_LT(most_loads_, kMostLoads);
}

TEST_F(HostileTables, AHeaderOutsideItsObjectIsNone) {
  FakeObject object(4096);
  for (const uintptr_t header :
       {uintptr_t{0}, object.range().low - 1, object.range().high, ~uintptr_t{0}}) {
    object.set_table_header(header);
    EXPECT_EQ(step(object, object.range().low + 100), Step::no_table);
  }
  // Cut off by the object's end.
  for (uintptr_t header = object.range().high - 12; header < object.range().high; ++header) {
    object.set_table_header(header);
    object.bytes()[header - object.range().low] = 1;
    step(object, object.range().low + 100);
  }
  EXPECT_EQ(count(Step::stepped), 0U);
}

// An object with one function, whose CIE and FDE run these instructions.
class HandMadeTables : public HostileTables {
 protected:
  using Bytes = std::vector<unsigned char>;

  static constexpr size_t kCode = 1 << 18;  // the function is there
  static constexpr size_t kCodeSize = 256;

  static void append(Bytes& bytes, uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<unsigned char>(value >> (8 * i)));
  }
  static void append(Bytes& bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }

  // The step from the function's first instruction, sp at the stack's bottom.
  Step step_by(const Bytes& cie_program, const Bytes& fde_program) {
    FakeObject object(kCode + kCodeSize);
    Bytes bytes = {1, 0x1b, 0x03, 0x3b};
    append(bytes, 0U);
    append(bytes, 1U);
    append(bytes, uint32_t{kCode});  // the header is the object's beginning
    const auto cie = static_cast<uint32_t>(bytes.size() + 4);
    const auto fde = static_cast<uint32_t>(cie + 4 + 13 + cie_program.size());
    append(bytes, fde);
    append(bytes, static_cast<uint32_t>(13 + cie_program.size()));
    append(bytes, 0U);
    append(bytes, Bytes{1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b});
    append(bytes, cie_program);
    append(bytes, static_cast<uint32_t>(13 + fde_program.size()));
    append(bytes, static_cast<uint32_t>(bytes.size() - cie));
    append(bytes, static_cast<uint32_t>(kCode - bytes.size()));
    append(bytes, uint32_t{kCodeSize});
    bytes.push_back(0);
    append(bytes, fde_program);
    EXPECT_LT(bytes.size(), kCode);
    std::memcpy(object.bytes(), bytes.data(), bytes.size());

    const LoadsWatch watch(object.range(), {stack_low(), stack_high()});
    registers_ = {object.range().low + kCode, stack_low(), stack_low() + 64};
    const Step result = AsyncUnwindTables::step(&registers_, true, stack_low(), stack_high());
    EXPECT_EQ(LoadsWatch::strays(), 0U);
    EXPECT_LT(LoadsWatch::loads(), kMostLoads);
    return result;
  }
  Step step_by(const Bytes& fde_program) { return step_by(kPlain, fde_program); }

  const Bytes kPlain = {0x0c, 7, 8, 0x90, 1};  // CFA: rsp + 8; the return address is below it
  AsyncRegisters registers_ = {};
};

TEST_F(HandMadeTables, PlainOnesStep) {
  EXPECT_EQ(step_by({}), Step::stepped);
  EXPECT_EQ(registers_.pc, stack_[0]);
  EXPECT_EQ(registers_.sp, stack_low() + 8);
  EXPECT_EQ(registers_.fp, stack_low() + 64);
}

TEST_F(HandMadeTables, WhatIsNotSupportedIsSaidToBe) {
  const struct {
    const char* what;
    Bytes cie;
    Bytes fde;
  } cases[] = {
      {"no CFA", {0x90, 1}, {}},
      {"no return address", {0x0c, 7, 8}, {}},
      {"CFA by rbx", kPlain, {0x0d, 3}},
      {"return address in a register", kPlain, {0x09, 16, 3}},
      {"return address like the callee's", kPlain, {0x08, 16}},
      {"restore in a CIE", {0x0c, 7, 8, 0x90, 1, 0xd0}, {}},
      {"unknown instruction", kPlain, {0x3c}},
      {"remembered too often", kPlain, Bytes(9, 0x0a)},
      {"nothing remembered", kPlain, {0x0b}},
      {"CFA offset without a CFA", {0x0e, 8, 0x90, 1}, {}},
      {"too long", kPlain, Bytes((1 << 16) + 1, 0)},
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
    EXPECT_EQ(step_by(test.cie, test.fde), Step::unsupported) << test.what;
  }
}

TEST_F(HandMadeTables, AnUndefinedReturnAddressIsTheEnd) {
  EXPECT_EQ(step_by({0x07, 16}), Step::end);
  stack_[0] = 0;
  EXPECT_EQ(step_by({}), Step::end);
}

TEST_F(HandMadeTables, FramesThatAreNotOnTheStack) {
  EXPECT_EQ(step_by({0x0e, 0}), Step::bad_stack);                 // the return address is below sp
  EXPECT_EQ(step_by({0x0e, 12}), Step::bad_stack);                // misaligned
  EXPECT_EQ(step_by({0x0e, 0x80, 0x40}), Step::bad_stack);        // 8 KB: above
  EXPECT_EQ(step_by({0x0c, 6, 0x80, 0x80, 4}), Step::bad_stack);  // by rbp, far above
  EXPECT_EQ(step_by({0x0f, 3, 0x77, 0, 0x06}), Step::bad_stack);  // CFA: a random word of it
  EXPECT_EQ(step_by({0x16, 7, 1, 0x30}), Step::bad_stack);        // sp: 0
}

}  // namespace
}  // namespace framestorm::unwind_test
