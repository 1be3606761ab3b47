#include "harness/victim/world.h"

#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "harness/guard/unsafe_calls.h"
#include "harness/victim/context.h"
#include "harness/victim/world_fixture.h"

namespace framestorm {
namespace {

using world_test::CountingThread;
using world_test::current_tid;
using world_test::TestThread;
using world_test::WorldTest;

uintptr_t pc_of(const ThreadSlot& slot) { return get_register(*slot.context, Register::pc); }
uintptr_t sp_of(const ThreadSlot& slot) { return get_register(*slot.context, Register::sp); }

std::vector<int> live_threads() {
  std::vector<int> tids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    tids.push_back(std::stoi(task.path().filename()));
  }
  return tids;
}

TEST_F(WorldTest, AHaltedThreadStandsStillUntilItIsReleased) {
  CountingThread victim;
  ASSERT_TRUE(world().halt(victim->tid()));
  const uint64_t count = victim.count();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(victim.count(), count);
  world().release(world().find(victim->tid()));
  victim.await_progress();
}

TEST_F(WorldTest, DescribesTheHaltedThread) {
  CountingThread victim;
  ASSERT_TRUE(world().halt(victim->tid()));
  const ThreadSlot* slot = world().find(victim->tid());
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(slot->phase, ThreadPhase::parked);
  EXPECT_EQ(slot->vm_thread, victim.operator->()) << "asked on the victim's own thread";
  EXPECT_TRUE(victim->stack().holds(sp_of(*slot)));
  EXPECT_GT(slot->frames_top, sp_of(*slot));
  EXPECT_TRUE(victim->stack().holds(slot->frames_top));
  Dl_info info{};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(pc_of(*slot)), &info), 0);
  world().release_all();
}

TEST_F(WorldTest, HaltsTheSameThreadAgainAndAgain) {
  CountingThread victim;
  for (uint32_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(world().halt(victim->tid()));
    ASSERT_EQ(world().find(victim->tid())->parks, i);
    world().release(world().find(victim->tid()));
  }
  victim.await_progress();
}

TEST_F(WorldTest, AThreadHaltsItselfOnceItHasRunForAWhile) {
  CountingThread victim;
  int moved = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = victim.count();
    ASSERT_TRUE(world().halt_after(victim->tid(), 200'000));
    const uint64_t count = victim.count();
    moved += count > before ? 1 : 0;
    for (int k = 0; k < 100; ++k) std::this_thread::yield();
    EXPECT_EQ(victim.count(), count);
    world().release_all();
  }
  // On a busy machine a thread may get no CPU at all within the patience of a halt.
  EXPECT_GT(moved, 0);
}

TEST_F(WorldTest, AThreadThatUsesNoCpuIsHaltedAllTheSame) {
  std::atomic<uint32_t> word{0};
  TestThread victim([&](const std::atomic<bool>&) { word.wait(0); });
  EXPECT_TRUE(world().halt_after(victim.tid(), 1'000'000'000));
  world().release_all();
  word = 1;
  word.notify_all();
}

// It would stand there for ever: whoever asked thinks that it runs.
TEST_F(WorldTest, AThreadThatDoesNotReactInTimeDoesNotHaltLater) {
  std::atomic<bool> blocked{false};
  std::atomic<bool> reacts{false};
  std::atomic<bool> ran{false};
  TestThread victim([&](const std::atomic<bool>&) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    blocked = true;
    reacts.wait(false);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);  // the halt signal comes here
    ran = true;
  });
  while (!blocked) std::this_thread::yield();
  EXPECT_FALSE(world().halt(victim.tid()));
  reacts = true;
  reacts.notify_all();
  for (int i = 0; i < 5000 && !ran; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(ran);
}

TEST_F(WorldTest, DoesNotHaltAThreadThatIsGone) {
  TestThread ended([](const std::atomic<bool>&) {});
  ended.join();
  EXPECT_FALSE(world().halt(ended.tid()));
  EXPECT_TRUE(world().halt_all({}).refused.empty());
  EXPECT_EQ(world().find(ended.tid()), nullptr) << "its slot is free again";
  world().release_all();
}

TEST_F(WorldTest, FreesTheSlotOfAThreadThatEndedBetweenHalts) {
  CountingThread other;
  auto victim = std::make_unique<CountingThread>();
  const int tid = (*victim)->tid();
  EXPECT_TRUE(world().halt_all({}).refused.empty());
  EXPECT_NE(world().find(tid), nullptr);
  world().release_all();
  victim.reset();
  EXPECT_TRUE(world().halt_all({}).refused.empty());
  EXPECT_EQ(world().find(tid), nullptr);
  EXPECT_NE(world().find(other->tid()), nullptr);
  world().release_all();
}

TEST_F(WorldTest, IgnoresALateHaltSignal) {
  CountingThread victim;
  ASSERT_TRUE(world().halt(victim->tid()));
  ThreadSlot* slot = world().find(victim->tid());
  // Pending until the handler returns: it arrives when its halt is over.
  ASSERT_EQ(syscall(SYS_tgkill, getpid(), victim->tid(), SIGSTKFLT), 0);
  world().release(slot);
  victim.await_progress();
  victim.await_progress();
  EXPECT_EQ(slot->phase, ThreadPhase::running);
  EXPECT_EQ(slot->parks, 1U);
}

TEST_F(WorldTest, LeavesSystemCallsAndErrnoOfTheHaltedThreadAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<ssize_t> got{-2};
  std::atomic<int> errno_after{0};
  TestThread victim([&](const std::atomic<bool>&) {
    errno = 77;
    char byte = 0;
    got = read(ends[0], &byte, 1);
    errno_after = errno;
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(world().halt(victim.tid()));
    world().release_all();
  }
  EXPECT_EQ(got, -2) << "still reading";
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  victim.join();
  EXPECT_EQ(got, 1);
  EXPECT_EQ(errno_after, 77);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(WorldTest, HaltsAllThreadsButTheExemptAndTheCaller) {
  CountingThread a;
  CountingThread b;
  CountingThread exempt;
  const HaltReport report = world().halt_all({exempt->tid()});
  EXPECT_TRUE(report.refused.empty());
  EXPECT_EQ(report.halted, 2);
  exempt.await_progress();
  const uint64_t counts = a.count() + b.count();
  exempt.await_progress();
  EXPECT_EQ(a.count() + b.count(), counts);
  world().release_all();
  a.await_progress();
  b.await_progress();
}

TEST_F(WorldTest, HaltsThreadsThatAreCreatedMeanwhile) {
  std::atomic<uint64_t> created{0};
  TestThread creator([&](const std::atomic<bool>& stop) {
    while (!stop) std::thread([&] { created.fetch_add(1); }).join();
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(world().halt_all({}).refused.empty());
    for (const int tid : live_threads()) {
      if (tid == current_tid()) continue;
      const ThreadSlot* slot = world().find(tid);
      ASSERT_NE(slot, nullptr) << "a thread that halt_all has not seen";
      // Parked, or already back in glibc, which takes it down.
      const ThreadPhase phase = slot->phase;
      ASSERT_TRUE(phase != ThreadPhase::running && phase != ThreadPhase::asked);
    }
    const uint64_t now = created;
    for (int k = 0; k < 100; ++k) std::this_thread::yield();
    ASSERT_EQ(created, now);
    world().release_all();
  }
  const uint64_t now = created;
  while (created == now) std::this_thread::yield();
}

TEST_F(WorldTest, SaysWhichThreadRefused) {
  std::atomic<bool> unblock{false};
  TestThread victim([&](const std::atomic<bool>&) {
    sigset_t all;
    sigfillset(&all);
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (!unblock) std::this_thread::yield();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  });
  CountingThread other;
  std::vector<int> refused;
  while (refused.empty()) {
    // Until the signals are blocked it is halted like any other thread.
    refused = world().halt_all({}).refused;
    world().release_all();
  }
  EXPECT_EQ(refused, std::vector<int>{victim.tid()});
  // Its halt signal, pending all the time, comes when nobody waits for it any more.
  unblock = true;
  victim.join();
}

TEST_F(WorldTest, SaysWhenWhoRefusedWaitsForAHaltedThread) {
  std::mutex mutex;
  std::atomic<bool> held{false};
  // As one that logs, and as one in HotSpot's signal handler that wants to log, too.
  TestThread holder([&](const std::atomic<bool>& stop) {
    const std::lock_guard lock(mutex);
    held = true;
    while (!stop) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  std::atomic<bool> blocked{false};
  TestThread waiter([&](const std::atomic<bool>&) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    blocked = true;
    const std::lock_guard lock(mutex);
  });
  while (!blocked) std::this_thread::yield();
  const HaltReport report = world().halt_all({});
  EXPECT_EQ(report.refused, std::vector<int>{waiter.tid()});
  EXPECT_TRUE(report.deadlocked);
  world().release_all();
  holder.join();
  waiter.join();
}

TEST_F(WorldTest, DoesNotTakeABusyThreadForADeadlock) {
  std::atomic<bool> blocked{false};
  TestThread victim([&](const std::atomic<bool>& stop) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    blocked = true;
    while (!stop) {
    }
  });
  while (!blocked) std::this_thread::yield();
  const HaltReport report = world().halt_all({});
  EXPECT_EQ(report.refused, std::vector<int>{victim.tid()});
  EXPECT_FALSE(report.deadlocked);
  world().release_all();
}

// The allocator -----------------------------------------------------------------------------------

std::atomic<uint32_t> parked_in_allocator{0};

TEST_F(WorldTest, ParksOutsideTheAllocator) {
  // Called where the thread parks.
  World::get().install(
      []() -> void* {
        if (interposer::in_allocator()) ++parked_in_allocator;
        return nullptr;
      },
      &MigratingLoop::host_from_signal);
  TestThread victim([](const std::atomic<bool>& stop) {
    void* volatile block = nullptr;
    while (!stop) {
      block = calloc(1, size_t{1} << 20);  // mapped anew each time: nearly all time is spent inside
      free(block);
    }
  });
  uint32_t deferred = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(world().halt(victim.tid()));
    Dl_info info{};
    // A halt that was put off is sent again by the thread itself.
    const auto pc = reinterpret_cast<void*>(pc_of(*world().find(victim.tid())));
    if (dladdr(pc, &info) != 0 && info.dli_sname != nullptr &&
        std::string_view(info.dli_sname) == "syscall") {
      ++deferred;
    }
    world().release_all();
  }
  EXPECT_EQ(parked_in_allocator, 0U);
  EXPECT_GT(deferred, 0U) << "no halt signal met the allocator: the test shows nothing";
}

// glibc has one lock for the list of all open files. A thread that stood with it would keep who opens the next
// one waiting for ever: ctest would end this.
TEST_F(WorldTest, AFileCanBeOpenedWhileThreadsThatOpenFilesStand) {
  TestThread victim([](const std::atomic<bool>& stop) {
    while (!stop) {
      const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/dev/null", "r"), &fclose);
      ASSERT_NE(file.get(), nullptr);
    }
  });
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(world().halt(victim.tid()));
    ASSERT_TRUE(std::ifstream("/dev/null").is_open());
    world().release_all();
  }
}

// Stepping ----------------------------------------------------------------------------------------

std::atomic<uint64_t> leaf_calls{0};

extern "C" [[gnu::noinline, gnu::used]] void world_test_leaf() { leaf_calls.fetch_add(1); }
extern "C" [[gnu::noinline, gnu::used, clang::disable_tail_calls]] void world_test_deeper() {
  world_test_leaf();
}

class WorldStepTest : public WorldTest {
 protected:
  WorldStepTest()
      : victim_([](const std::atomic<bool>& stop) {
          while (!stop.load(std::memory_order_relaxed)) {
            world_test_leaf();
            world_test_deeper();
          }
        }) {}
  ThreadSlot* halt() {
    EXPECT_TRUE(world().halt(victim_.tid()));
    return world().find(victim_.tid());
  }
  void TearDown() override { world().release_all(); }

  static constexpr uint64_t kSteps = 20'000;
  const uintptr_t leaf_ = reinterpret_cast<uintptr_t>(&world_test_leaf);
  TestThread victim_;
};

TEST_F(WorldStepTest, StopsAtThePc) {
  ThreadSlot* slot = halt();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(world().step(slot, {kSteps, leaf_, 0}));
    ASSERT_EQ(slot->phase, ThreadPhase::parked);
    EXPECT_EQ(pc_of(*slot), leaf_);
    const uint64_t calls = leaf_calls;
    ASSERT_TRUE(world().step(slot, {1, 0, 0})) << "one instruction into the function";
    EXPECT_EQ(leaf_calls, calls);
  }
}

TEST_F(WorldStepTest, StopsAtThePcWithThatSpOnly) {
  ThreadSlot* slot = halt();
  ASSERT_TRUE(world().step(slot, {kSteps, leaf_, 0}));
  const uintptr_t first = sp_of(*slot);
  // Called from two depths: the next call is at the other one.
  ASSERT_TRUE(world().step(slot, {1, 0, 0}));
  ASSERT_TRUE(world().step(slot, {kSteps, leaf_, 0}));
  const uintptr_t second = sp_of(*slot);
  ASSERT_NE(first, second);
  for (const uintptr_t sp : {first, first, second, second, first}) {
    ASSERT_TRUE(world().step(slot, {1, 0, 0}));
    ASSERT_TRUE(world().step(slot, {kSteps, leaf_, sp}));
    EXPECT_EQ(sp_of(*slot), sp);
    EXPECT_EQ(pc_of(*slot), leaf_);
  }
}

TEST_F(WorldStepTest, StopsAtTheFirstInstructionOutsideWhereItIsToStay) {
  ThreadSlot* slot = halt();
  ASSERT_TRUE(world().step(slot, {kSteps, leaf_, 0}));
  ASSERT_TRUE(world().step(slot, {.steps = kSteps, .stay_in = {leaf_, leaf_ + 1}}));
  EXPECT_EQ(slot->phase, ThreadPhase::parked);
  EXPECT_NE(pc_of(*slot), leaf_);
  EXPECT_EQ(slot->goal.steps, kSteps - 1);
  ASSERT_TRUE(world().step(slot, {.steps = 50, .stay_in = {1, UINTPTR_MAX}}));
  EXPECT_EQ(slot->goal.steps, 0U) << "it is in there everywhere";
}

TEST_F(WorldStepTest, GivesUpAfterItsStepsAndIsParkedThen) {
  ThreadSlot* slot = halt();
  EXPECT_FALSE(world().step(slot, {500, leaf_, 8}));
  EXPECT_EQ(slot->phase, ThreadPhase::parked);
  EXPECT_FALSE(slot->stepping);
}

TEST_F(WorldStepTest, RunsFreelyAfterwards) {
  ThreadSlot* slot = halt();
  ASSERT_TRUE(world().step(slot, {kSteps, leaf_, 0}));
  world().release(slot);
  const uint64_t calls = leaf_calls;
  while (leaf_calls < calls + 10'000) std::this_thread::yield();
  EXPECT_EQ(slot->phase, ThreadPhase::running);
}

TEST_F(WorldTest, AThreadStepsItself) {
  std::atomic<bool> done{false};
  std::atomic<bool> go{false};
  TestThread victim([&](const std::atomic<bool>&) {
    while (!go) std::this_thread::yield();
    World::get().step_self({300, 0, 0});
    for (volatile int i = 0; i < 1000; i = i + 1) {
    }
    done = true;
  });
  go = true;
  ThreadSlot* slot = world().wait_parked(victim.tid(), 60'000);
  ASSERT_NE(slot, nullptr);
  EXPECT_FALSE(done);
  EXPECT_TRUE(slot->goal_met);
  EXPECT_TRUE(victim.stack().holds(sp_of(*slot)));
  world().release(slot);
  victim.join();
  EXPECT_TRUE(done);
}

// Calls it and restores the flags from before.
extern "C" void world_test_with_flags_restored(void (*callee)());
asm(".text\n"
    "world_test_with_flags_restored:\n"
    "  pushfq\n"
    "  callq *%rdi\n"
    "  popfq\n"
    "  retq\n");

TEST_F(WorldTest, AThreadThatRestoresItsFlagsIsSteppedOn) {
  std::atomic<bool> done{false};
  TestThread victim([&](const std::atomic<bool>&) {
    world_test_with_flags_restored([] { World::get().step_self({300, 0, 0}); });
    for (volatile int i = 0; i < 1000; i = i + 1) {
    }
    done = true;
  });
  ThreadSlot* slot = nullptr;
  while (!done && slot == nullptr) slot = world().wait_parked(victim.tid(), 10);
  ASSERT_NE(slot, nullptr) << "it ran on";
  EXPECT_FALSE(done);
  EXPECT_TRUE(slot->goal_met);
  world().release(slot);
}

TEST_F(WorldTest, AThreadDoesNotParkAtAGoalThatWasGivenUp) {
  constexpr int kSteps = 200'000;
  std::atomic<bool> steps{false};
  std::atomic<bool> given_up{false};
  TestThread victim([&](const std::atomic<bool>&) {
    World::get().step_self({kSteps, 0, 0});
    steps = true;
    while (!given_up) {
    }
    for (volatile int i = 0; i < kSteps; i = i + 1) {
    }
  });
  while (!steps) std::this_thread::yield();
  world().end_step(victim.tid());
  given_up = true;
  victim.join();  // ctest ends it if that thread has parked
}

TEST_F(WorldTest, StepsOverTheAllocator) {
  constexpr size_t kSize = size_t{100} << 10;  // cleared byte by byte, more than the goal's steps
  std::atomic<bool> go{false};
  void* volatile block = nullptr;
  volatile int progress = 0;
  TestThread victim([&](const std::atomic<bool>&) {
    while (!go) std::this_thread::yield();
    // So that calloc has to clear what it gives.
    block = malloc(kSize);
    std::memset(block, 1, kSize);
    free(block);
    World::get().step_self({5000, 0, 0});
    block = calloc(1, kSize);
    while (progress < 10'000) progress = progress + 1;
    free(block);
  });
  go = true;
  ThreadSlot* slot = world().wait_parked(victim.tid(), 60'000);
  ASSERT_NE(slot, nullptr);
  EXPECT_TRUE(slot->goal_met);
  EXPECT_GT(progress, 100) << "the goal's steps were spent in calloc";
  world().release(slot);
  victim.join();
}

TEST_F(WorldTest, WaitsForNoThreadThatDoesNotPark) {
  CountingThread victim;
  EXPECT_EQ(world().wait_parked(victim->tid(), 1), nullptr);
  EXPECT_EQ(world().wait_parked(0x7ffffff0, 1), nullptr) << "no such thread";
}

std::atomic<int> started_tid{0};

TEST_F(WorldTest, ParksAThreadBeforeItsStartRoutine) {
  std::atomic<bool> routine_ran{false};
  started_tid = 0;
  World::set_start_action([] {
    started_tid = current_tid();
    World::get().step_self({4, 0, 0});
  });
  std::thread victim([&] { routine_ran = true; });
  while (started_tid == 0) std::this_thread::yield();
  ThreadSlot* slot = world().wait_parked(started_tid, 60'000);
  World::set_start_action(nullptr);
  EXPECT_NE(slot, nullptr);
  if (slot != nullptr) {
    EXPECT_FALSE(routine_ran);
    EXPECT_NE(slot->frames_top, 0U);
    world().release(slot);
  }
  victim.join();
  EXPECT_TRUE(routine_ran);
}

}  // namespace
}  // namespace framestorm
