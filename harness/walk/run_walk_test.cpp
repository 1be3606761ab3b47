// What is recorded of one walk, of walkers that do one thing each. No JVM.
#include "harness/walk/run_walk.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "harness/guard/guard_fixture.h"
#include "harness/guard/signal_table.h"

namespace framestorm {
namespace {

struct OneFrame {
  int32_t bci;
};

class OneWalker final : public Walker {
 public:
  using Body = int32_t (*)(const WalkTarget& target, OneFrame* frames, int32_t depth);
  explicit OneWalker(Body body) : Walker(kTraits), body_(body) {}

  const WalkFacts* facts() const override { return facts_given_ ? &facts_ : nullptr; }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void*) noexcept override {
    return body_(target, reinterpret_cast<OneFrame*>(frames), depth);
  }

  void say(const char* stopped) {
    facts_given_ = true;
    facts_.stopped = stopped;
  }

 private:
  static constexpr WalkerTraits kTraits = {.id = WalkerId::plugin,
                                           .layout = {.stride = sizeof(OneFrame), .bci = 0}};
  Body body_;
  bool facts_given_ = false;
  WalkFacts facts_;
};

class RunWalk : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Guard::install({&guard_test::dispatch_claim}, guard_test::kTestLimits);
  }
  RunWalk() {
    target_.same_thread = true;
    target_.java_thread = thread_.data();
    target_.options = 5;
    call_.target = &target_;
    call_.frames = reinterpret_cast<std::byte*>(frames_.data());
    call_.depth = static_cast<int32_t>(frames_.size());
    call_.context = &context_;
  }
  const WalkRecord& run(OneWalker::Body body) {
    OneWalker walker(body);
    return run(&walker);
  }
  const WalkRecord& run(OneWalker* walker) {
    call_.walker = walker;
    run_walk(call_, &record_, &incidents_);
    return record_;
  }

  std::array<std::byte, 64> thread_ = {};
  std::array<OneFrame, 8> frames_ = {};
  ucontext_t context_ = {};
  WalkTarget target_;
  WalkCall call_;
  WalkRecord record_;
  Incidents incidents_;
};

int32_t right(const WalkTarget&, OneFrame* frames, int32_t) {
  frames[0].bci = 7;
  return 1;
}
int32_t faults(const WalkTarget& target, OneFrame*, int32_t) {
  *static_cast<std::byte*>(target.java_thread) = std::byte{1};
  return *static_cast<volatile int32_t*>(target.jni_env);  // null
}
int32_t blocks_a_signal(const WalkTarget&, OneFrame*, int32_t) {
  // Not through libc, which the interposer would see and the guard take back.
  const uint64_t mask = uint64_t{1} << (SIGUSR2 - 1);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, nullptr, sizeof mask);
  return 0;
}

// What the walk's own memory holds that it has not written.
int32_t reads_its_stack(const WalkTarget&, OneFrame* frames, int32_t) {
  int32_t words[64];
  asm volatile("" : "=m"(words));
  frames[0].bci = words[32];
  return 1;
}

TEST_F(RunWalk, SaysWhatTheWalkWasAndWhatItAnswered) {
  const WalkRecord& record = run(&right);
  EXPECT_EQ(record.walker, WalkerId::plugin);
  EXPECT_EQ(record.depth, 8);
  EXPECT_EQ(record.options, 5U);
  EXPECT_EQ(record.end, WalkEnd::returned);
  EXPECT_EQ(record.result, 1);
  EXPECT_EQ(record.frame_count(), 1U);
  EXPECT_EQ(reinterpret_cast<const OneFrame*>(record.frames)->bci, 7);
  EXPECT_EQ(record.errno_after, kErrnoMarker);
  EXPECT_EQ(record.incidents, &incidents_);
  EXPECT_EQ(record.facts_if_any(), nullptr);
  EXPECT_EQ(record.ns, 0U) << "nobody asked for it";
}

TEST_F(RunWalk, MoreFramesThanThereIsRoomForCannotBeRead) {
  EXPECT_EQ(
      run([](const WalkTarget&, OneFrame*, int32_t depth) { return depth + 5; }).frame_count(), 8U);
  EXPECT_EQ(run([](const WalkTarget&, OneFrame*, int32_t) { return -3; }).frame_count(), 0U);
}

TEST_F(RunWalk, FactsAreThoseOfTheWalk) {
  OneWalker walker(&right);
  walker.say("earlier");
  const WalkRecord first = run(&walker);
  walker.say("later");
  EXPECT_STREQ(first.stopped(), "earlier");
  EXPECT_STREQ(run(&walker).stopped(), "later");
}

TEST_F(RunWalk, ErrnoIsSeenToChange) {
  const auto fails = [](const WalkTarget&, OneFrame*, int32_t) -> int32_t {
    errno = EINTR;
    return 0;
  };
  EXPECT_EQ(run(fails).errno_after, EINTR);
  EXPECT_EQ(run(&right).errno_after, kErrnoMarker) << "the next walk begins anew";
}

TEST_F(RunWalk, TheSignalMaskIsLookedAtAndPutBackWhereItIsGiven) {
  const uint64_t before = signals::mask();
  EXPECT_FALSE(run(&blocks_a_signal).signal_mask_changed);
  EXPECT_NE(signals::set_mask(before), before);
  call_.mask = &before;
  EXPECT_TRUE(run(&blocks_a_signal).signal_mask_changed);
  EXPECT_EQ(signals::mask(), before);
  EXPECT_FALSE(run(&right).signal_mask_changed);
}

TEST_F(RunWalk, StaleWordsAreThoseThatTheCallSays) {
  for (const uint32_t words : {0U, 2U, 0xabcdefU}) {
    call_.stale_words = words;
    const WalkRecord& record = run(&reads_its_stack);
    EXPECT_EQ(static_cast<uint32_t>(frames_[0].bci), words);
    EXPECT_EQ(record.stale_words, words);
  }
  call_.stale_words.reset();
  EXPECT_EQ(run(&reads_its_stack).stale_words, std::nullopt);
}

// There are the pages that HotSpot has protected.
TEST_F(RunWalk, StaleWordsAreNotWrittenNearTheEndOfTheStack) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  target_.stack_base = here + 4096;
  target_.stack_end = here - (size_t{16} << 10);
  call_.stale_words = 2;
  run(&reads_its_stack);
  EXPECT_NE(frames_[0].bci, 2);
  target_.stack_end = here - (size_t{256} << 10);
  run(&reads_its_stack);
  EXPECT_EQ(frames_[0].bci, 2);
}

TEST_F(RunWalk, ALockThatTheWalkKeepsIsCounted) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const auto keeps = [](const WalkTarget&, OneFrame*, int32_t) -> int32_t {
    return pthread_mutex_lock(&mutex);
  };
  const auto gives_back = [](const WalkTarget&, OneFrame*, int32_t) -> int32_t {
    return pthread_mutex_unlock(&mutex);
  };
  run(keeps);
  EXPECT_EQ(incidents_.unsafe.locks_held, 1U);
  run(gives_back);
  EXPECT_EQ(incidents_.unsafe.locks_held, 0U);
}

TEST_F(RunWalk, AMaskLeftByACallIsSeenInEachWalk) {
  const auto leaves = [](const WalkTarget&, OneFrame*, int32_t) -> int32_t {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    return 0;
  };
  EXPECT_TRUE(run(leaves).signal_mask_changed);
  EXPECT_EQ(incidents_.unsafe.count, 0U);
  EXPECT_FALSE(run(&right).signal_mask_changed) << "of the walk before";
}

TEST_F(RunWalk, AWalkerHearsThatItsWalkWasAbandoned) {
  static int heard;
  class Lock final : public Walker {
   public:
    Lock() : Walker(WalkerId::plugin) {}
    int32_t walk(const WalkTarget& target, std::byte*, int32_t, void*) noexcept override {
      return faults(target, nullptr, 0);
    }
    void abandoned(const WalkTarget& target) noexcept override {
      ++heard;
      if (target.options == 7) *static_cast<volatile int*>(target.jni_env) = 0;
    }
  } lock;
  call_.walker = &lock;
  run_walk(call_, &record_, &incidents_);
  EXPECT_EQ(record_.end, WalkEnd::fault);
  EXPECT_EQ(heard, 1);
  EXPECT_FALSE(incidents_.fault.is_write);
  target_.options = 7;
  run_walk(call_, &record_, &incidents_);
  EXPECT_EQ(heard, 2);
  EXPECT_TRUE(incidents_.fault.is_write) << "what it does wrong there is what is reported";
}

TEST_F(RunWalk, AFaultIsContainedAndItsResidueTakenBack) {
  std::array<std::byte, 64> marked = thread_;
  marked[0] = std::byte{1};
  WalkResidue residue;
  residue.learn(thread_.data(), marked.data(), thread_.size());
  ASSERT_EQ(residue.count(), 1U);
  EXPECT_EQ(run(&faults).end, WalkEnd::fault);
  EXPECT_EQ(incidents_.fault.signo, SIGSEGV);
  EXPECT_EQ(record_.frame_count(), 0U);
  EXPECT_EQ(thread_[0], std::byte{1}) << "without, that is the caller's to do";
  thread_[0] = std::byte{0};
  call_.residue = &residue;
  EXPECT_EQ(run(&faults).end, WalkEnd::fault);
  EXPECT_EQ(thread_[0], std::byte{0});
}

TEST_F(RunWalk, IncidentsAreOfTheLastWalk) {
  run(&faults);
  ASSERT_EQ(incidents_.fault.end, WalkEnd::fault);
  call_.contained = false;
  EXPECT_EQ(run(&right).end, WalkEnd::returned);
  EXPECT_EQ(incidents_.fault.end, WalkEnd::returned);
  EXPECT_EQ(incidents_.unsafe.count, 0U);
}

TEST_F(RunWalk, UncontainedAFaultIsWhoeversItWouldBe) {
  call_.contained = false;
  EXPECT_EXIT(run(&faults), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace framestorm
