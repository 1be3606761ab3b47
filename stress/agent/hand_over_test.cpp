// Also compiled with ThreadSanitizer (agent_handover_tsan_test): what a handler and a sampler write
// without the word's leave is a race.
#include "stress/agent/hand_over.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "harness/base/clock.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Handlers are given contexts that say whose they are.
ucontext_t context_of(uint64_t number) {
  ucontext_t context = {};
  set_register(&context, Register::pc, number);
  return context;
}

uint64_t number_in(const HandOver::Answer& answer) {
  return get_register(*answer.context, Register::pc);
}

TEST(HandOver, VictimStandsStillUntilItIsReleased) {
  HandOver hand_over;
  const uint64_t number = hand_over.ask();
  std::atomic<bool> went_on{false};
  std::thread victim([&] {
    const ucontext_t context = context_of(number);
    EXPECT_TRUE(hand_over.answer(number, context, &went_on, /*stay=*/true));
    went_on = true;
  });
  HandOver::Answer answer;
  ASSERT_TRUE(hand_over.await(number, seconds(60), &answer));
  EXPECT_EQ(number_in(answer), number);
  EXPECT_EQ(answer.java_thread, &went_on);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(went_on);
  hand_over.release(number);
  victim.join();
  EXPECT_TRUE(went_on);
}

TEST(HandOver, VictimThatRunsOnLeavesACopy) {
  HandOver hand_over;
  const uint64_t number = hand_over.ask();
  const uint64_t before = monotonic_ns();
  std::thread([&] {
    const ucontext_t context = context_of(number);
    EXPECT_TRUE(hand_over.answer(number, context, nullptr, /*stay=*/false));
  }).join();
  const uint64_t after = monotonic_ns();
  HandOver::Answer answer;
  ASSERT_TRUE(hand_over.await(number, seconds(60), &answer));
  EXPECT_EQ(number_in(answer), number);
  EXPECT_GE(answer.given_ns, before);
  EXPECT_LE(answer.given_ns, after) << "when it was given, not when it was found";
  hand_over.release(number);
}

TEST(HandOver, LateHandlerIsTurnedAwayAndTouchesNoLaterRequest) {
  HandOver hand_over;
  const uint64_t late = hand_over.ask();
  HandOver::Answer answer;
  ASSERT_FALSE(hand_over.await(late, milliseconds(1), &answer));
  const uint64_t number = hand_over.ask();
  const ucontext_t wrong = context_of(late);
  EXPECT_FALSE(hand_over.answer(late, wrong, &hand_over, true));
  std::thread victim([&] {
    const ucontext_t right = context_of(number);
    EXPECT_TRUE(hand_over.answer(number, right, &answer, true));
  });
  ASSERT_TRUE(hand_over.await(number, seconds(60), &answer));
  EXPECT_FALSE(hand_over.answer(late, wrong, &hand_over, true));
  EXPECT_EQ(number_in(answer), number);
  EXPECT_EQ(answer.java_thread, &answer);
  hand_over.release(number);
  victim.join();
  EXPECT_FALSE(hand_over.answer(number, wrong, &hand_over, true))
      << "a second signal of one request";
}

TEST(HandOver, VictimThatSleepsOnIsLetGoByTheNextRequestToo) {
  // A handler that is not scheduled after release() finds the next request's word.
  HandOver hand_over;
  const uint64_t number = hand_over.ask();
  std::thread victim([&] {
    const ucontext_t context = context_of(number);
    EXPECT_TRUE(hand_over.answer(number, context, nullptr, true));
  });
  HandOver::Answer answer;
  ASSERT_TRUE(hand_over.await(number, seconds(60), &answer));
  hand_over.release(number);
  hand_over.ask();
  victim.join();
}

TEST(HandOver, SignalThatWasNotSentEndsTheRequest) {
  HandOver hand_over;
  const uint64_t number = hand_over.ask();
  hand_over.give_up(number);
  EXPECT_FALSE(hand_over.answer(number, context_of(number), nullptr, true));
  EXPECT_NE(hand_over.ask(), number);
}

// Victims that answer in time, late, twice or never, and a sampler without patience. What it gets
// is always its own request's, written by one victim.
TEST(HandOver, NoAnswerIsEverAnotherRequests) {
  constexpr int kVictims = 4;
  constexpr uint64_t kRequests = 3000;
  HandOver hand_over;
  std::atomic<uint64_t> asked{0};
  std::atomic<bool> over{false};
  std::atomic<uint64_t> stood{0};
  std::vector<std::thread> victims;
  victims.reserve(kVictims);
  for (int v = 0; v < kVictims; ++v) {
    victims.emplace_back([&, v] {
      std::mt19937 random(static_cast<unsigned>(v));
      while (!over) {
        const uint64_t number = asked;
        // As a handler that was stalled does: some time between learning of a request and
        // answering.
        for (unsigned i = random() % 4; i > 0; --i) std::this_thread::yield();
        const ucontext_t context = context_of(number);
        const bool stay = random() % 2 == 0;
        if (hand_over.answer(number, context, &victims, stay)) ++stood;
        std::this_thread::yield();
      }
    });
  }
  uint64_t answered = 0;
  for (uint64_t i = 0; i < kRequests; ++i) {
    const uint64_t number = hand_over.ask();
    if (i % 3 != 0) asked = number;  // the signals of the others are lost
    HandOver::Answer answer;
    if (!hand_over.await(number, std::chrono::microseconds(200), &answer)) continue;
    ASSERT_EQ(number_in(answer), number);
    ASSERT_EQ(answer.java_thread, &victims);
    hand_over.release(number);
    ++answered;
  }
  over = true;
  for (std::thread& victim : victims) victim.join();
  EXPECT_EQ(stood, answered) << "a victim that stood still was not the sampler's";
  EXPECT_GT(answered, 0U);
}

HandOver* signalled = nullptr;
std::atomic<uint64_t> answered_signals{0};

void handle(int, siginfo_t* info, void* context) {
  const auto number = reinterpret_cast<uint64_t>(info->si_value.sival_ptr);
  if (signalled->answer(number, *static_cast<const ucontext_t*>(context), nullptr, true)) {
    ++answered_signals;
  }
}

TEST(HandOver, ThreadsThatExitAfterTheSignalWasSentHoldNobodyUp) {
  HandOver hand_over;
  signalled = &hand_over;
  struct sigaction action = {};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ASSERT_EQ(sigaction(SIGRTMAX - 8, &action, nullptr), 0);
  uint64_t halted = 0;
  for (int i = 0; i < 200; ++i) {
    std::atomic<int> tid{0};
    std::atomic<bool> may_end{false};
    std::thread victim([&] {
      tid = static_cast<int>(syscall(SYS_gettid));
      while (!may_end) std::this_thread::yield();
    });
    while (tid == 0) std::this_thread::yield();
    const uint64_t number = hand_over.ask();
    siginfo_t info = {};
    info.si_code = SI_QUEUE;
    info.si_value.sival_ptr = reinterpret_cast<void*>(number);
    may_end = i % 2 == 0;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), tid.load(), SIGRTMAX - 8, &info) != 0) {
      hand_over.give_up(number);
    } else {
      HandOver::Answer answer;
      if (hand_over.await(number, milliseconds(20), &answer)) {
        ++halted;
        hand_over.release(number);
      }
    }
    may_end = true;
    victim.join();
  }
  EXPECT_EQ(halted, answered_signals);
  EXPECT_GT(halted, 0U);
}

}  // namespace
}  // namespace framestorm::stress
