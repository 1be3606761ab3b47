// The mutator as afl-fuzz calls it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "harness/input/binary.h"

extern "C" {
void* afl_custom_init(void* afl, unsigned int seed);
uint8_t afl_custom_queue_get(void* data, const unsigned char* file);
size_t afl_custom_fuzz(void* data, uint8_t* buffer, size_t size, uint8_t** out, uint8_t* other,
                       size_t other_size, size_t max_size);
size_t afl_custom_post_process(void* data, uint8_t* buffer, size_t size, uint8_t** out);
void afl_custom_deinit(void* data);
}

namespace framestorm {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr int kExecutions = 5000;
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

  Bytes mutate() {
    uint8_t* out = nullptr;
    const size_t size =
        afl_custom_fuzz(mutator_, entry_.data(), entry_.size(), &out, nullptr, 0, kMaxSize);
    return {out, out + size};
  }
  Bytes post(Bytes bytes) {
    uint8_t* out = nullptr;
    const size_t size = afl_custom_post_process(mutator_, bytes.data(), bytes.size(), &out);
    return {out, out + size};
  }

  void* mutator_ = nullptr;
  Bytes entry_;
};

TEST_F(AflMutatorTest, WhatIsCalibratedStaysWhatItIs) {
  // AFL++ saves what post_process gave, and executes that again.
  for (int i = 0; i < kExecutions; ++i) {
    Bytes bytes = mutate();
    bytes.push_back(0);  // havoc's surplus, which is not given on
    const Bytes given = post(bytes);
    ASSERT_EQ(post(given), given) << i;
    ASSERT_EQ(post(given), given) << i;
  }
}

TEST_F(AflMutatorTest, KeepsAScenarioForATurn) {
  std::set<std::pair<ScenarioId, Mode>> seen;
  std::pair<ScenarioId, Mode> last;
  int changes = 0;
  Input input;
  for (int i = 0; i < kExecutions; ++i) {
    // Havoc's, with any scenario.
    Bytes bytes = mutate();
    if (i % 2 != 0) bytes[1] = static_cast<uint8_t>(i);
    decode(post(bytes), &input);
    const std::pair now = {input.scenario, input.mode};
    if (i != 0 && now != last) ++changes;
    last = now;
    seen.insert(now);
  }
  EXPECT_LE(changes, kExecutions / 500);
  EXPECT_GT(seen.size(), 1U);
  for (const auto& [scenario, mode] : seen) {
    EXPECT_TRUE(scenario == ScenarioId::c1 || scenario == ScenarioId::osr ||
                scenario == ScenarioId::c2_inlined)
        << name_of(scenario);
  }
}

TEST_F(AflMutatorTest, GivesOnOnlyInputsAsFramestormWritesThem) {
  for (int i = 0; i < kExecutions; ++i) {
    Bytes bytes = mutate();
    bytes[static_cast<size_t>(i) % bytes.size()] ^= static_cast<uint8_t>(i);
    ASSERT_EQ(check_artifact(post(bytes)), ArtifactCheck::ok) << i;
  }
}

TEST_F(AflMutatorTest, AnEntryOfTheQueueIsExecutedAsItIs) {
  for (int i = 0; i < 2000; ++i) post(mutate());
  afl_custom_queue_get(mutator_, nullptr);
  EXPECT_EQ(post(entry_), entry_);
}

}  // namespace
}  // namespace framestorm
