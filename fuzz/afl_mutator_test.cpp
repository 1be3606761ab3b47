// The mutator as afl-fuzz calls it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "harness/input/binary.h"

extern "C" {
void* afl_custom_init(void* afl, unsigned int seed);
uint8_t afl_custom_queue_get(void* data, const unsigned char* file);
size_t afl_custom_fuzz(void* data, uint8_t* buffer, size_t size, uint8_t** out, uint8_t* other,
                       size_t other_size, size_t max_size);
unsigned int afl_custom_fuzz_count(void* data, const unsigned char* buffer, size_t size);
void afl_custom_deinit(void* data);
}

namespace framestorm {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kMaxSize = 4096;

class AflMutatorTest : public testing::Test {
 protected:
  AflMutatorTest() {
    setenv("FRAMESTORM_TARGET", "fuzz_ucontext", 1);
    setenv("FRAMESTORM_SCENARIOS", "c1,osr,c2-inlined", 1);
    setenv("FRAMESTORM_MODES", "same-thread,separate-thread", 1);
    mutator_ = afl_custom_init(nullptr, 7);
    Input entry;
    entry.scenario = ScenarioId::osr;
    encode(entry, &entry_);
    afl_custom_queue_get(mutator_, nullptr);
  }
  void TearDown() override { afl_custom_deinit(mutator_); }

  Input mutate(Bytes other = {}) {
    uint8_t* out = nullptr;
    const size_t size = afl_custom_fuzz(mutator_, entry_.data(), entry_.size(), &out, other.data(),
                                        other.size(), kMaxSize);
    EXPECT_EQ(check_artifact({out, size}), ArtifactCheck::ok);
    Input input;
    decode({out, size}, &input);
    return input;
  }
  unsigned round() { return afl_custom_fuzz_count(mutator_, entry_.data(), entry_.size()); }

  void* mutator_ = nullptr;
  Bytes entry_;
};

TEST_F(AflMutatorTest, AnEntryKeepsAScenarioForItsRound) {
  Input elsewhere;
  elsewhere.scenario = ScenarioId::c2_inlined;
  Bytes other;
  encode(elsewhere, &other);
  std::map<ScenarioId, int> rounds;
  for (int entries = 0; entries < 64; ++entries) {
    afl_custom_queue_get(mutator_, nullptr);
    const Input first = mutate(other);
    ++rounds[first.scenario];
    for (unsigned i = 1; i < round(); ++i) {
      const Input next = mutate(i % 2 == 0 ? other : Bytes());
      ASSERT_EQ(next.scenario, first.scenario) << i;
      ASSERT_EQ(next.mode, first.mode) << i;
    }
  }
  // Those asked for and no others, its own most often.
  EXPECT_EQ(rounds.size(), 3U);
  EXPECT_GT(rounds[ScenarioId::osr], rounds[ScenarioId::c1]);
  EXPECT_GT(rounds[ScenarioId::osr], rounds[ScenarioId::c2_inlined]);
}

TEST_F(AflMutatorTest, MutantsDiffer) {
  std::set<Bytes> seen;
  Bytes bytes;
  for (unsigned i = 0; i < round(); ++i) {
    encode(mutate(), &bytes);
    seen.insert(bytes);
  }
  EXPECT_GT(seen.size(), round() / 2);
}

}  // namespace
}  // namespace framestorm
