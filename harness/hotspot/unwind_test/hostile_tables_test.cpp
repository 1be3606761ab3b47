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

}  // namespace
}  // namespace framestorm::unwind_test
