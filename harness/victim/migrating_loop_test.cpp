#include "harness/victim/migrating_loop.h"

#include <cstdlib>
#include <memory>
#include <vector>

#include "harness/victim/context.h"
#include "harness/victim/world_fixture.h"

namespace framestorm {
namespace {

using world_test::CountingThread;
using world_test::current_stack;
using world_test::current_tid;
using world_test::TestThread;
using world_test::WorldTest;

// Where something ran. Collected on the loop, judged by the test when the loop is over.
struct Place {
  int tid = 0;
  uintptr_t frame = 0;
};

void note(void* place) {
  *static_cast<Place*>(place) = {current_tid(),
                                 reinterpret_cast<uintptr_t>(__builtin_frame_address(0))};
}

Place note_on_host() {
  Place place;
  MigratingLoop::get().call_on_host(&note, &place);
  return place;
}

class MigratingLoopTest : public WorldTest {
 protected:
  ThreadSlot* halt(CountingThread& victim) {
    EXPECT_TRUE(world().halt(victim->tid()));
    return world().find(victim->tid());
  }
  void TearDown() override { world().release_all(); }
  MigratingLoop& loop_ = MigratingLoop::get();
};

TEST_F(MigratingLoopTest, RunsOnAStackOfItsOwn) {
  Place body;
  Place host;
  loop_.run([&] {
    note(&body);
    host = note_on_host();
  });
  EXPECT_EQ(body.tid, current_tid());
  EXPECT_FALSE(current_stack().holds(body.frame));
  EXPECT_EQ(host.tid, current_tid());
  EXPECT_TRUE(current_stack().holds(host.frame));
  EXPECT_EQ(loop_.host(), nullptr);
}

TEST_F(MigratingLoopTest, CallsOnTheStackOfTheVictimItMovedTo) {
  CountingThread victim;
  ThreadSlot* slot = halt(victim);
  const uintptr_t sp = get_register(*slot->context, Register::sp);
  Place before;
  Place on_victim;
  Place body;
  Place after;
  ThreadSlot* host = nullptr;
  loop_.run([&] {
    before = note_on_host();
    loop_.move_to(slot);
    note(&body);
    host = loop_.host();
    on_victim = note_on_host();
    loop_.move_to(nullptr);
    after = note_on_host();
  });
  EXPECT_EQ(before.tid, current_tid());
  EXPECT_EQ(host, slot);
  EXPECT_EQ(body.tid, victim->tid());
  EXPECT_FALSE(victim->stack().holds(body.frame)) << "the loop keeps its own stack";
  EXPECT_EQ(on_victim.tid, victim->tid());
  EXPECT_TRUE(victim->stack().holds(on_victim.frame));
  EXPECT_LT(on_victim.frame, sp - kRedZone) << "below what the victim was using";
  EXPECT_GT(on_victim.frame, sp - 32768) << "where a profiler's walk runs: in the handler's frame";
  EXPECT_EQ(after.tid, current_tid());
  EXPECT_TRUE(current_stack().holds(after.frame));
}

TEST_F(MigratingLoopTest, LeavesTheVictimHaltedAndWhole) {
  CountingThread victim;
  ThreadSlot* slot = halt(victim);
  const uint64_t count = victim.count();
  ucontext_t before = {};
  copy_context(*slot->context, &before);
  loop_.run([&] {
    loop_.move_to(slot);
    note_on_host();
    loop_.move_to(nullptr);
  });
  EXPECT_EQ(slot->phase, ThreadPhase::parked);
  EXPECT_TRUE(same_context(*slot->context, before));
  EXPECT_EQ(victim.count(), count);
  world().release(slot);
  victim.await_progress();
}

TEST_F(MigratingLoopTest, MovesBetweenVictimsManyTimes) {
  constexpr size_t kVictims = 3;
  constexpr size_t kMoves = 500;
  std::vector<std::unique_ptr<CountingThread>> victims;
  std::vector<ThreadSlot*> slots = {nullptr};
  std::vector<int> tids = {current_tid()};
  for (size_t i = 0; i < kVictims; ++i) {
    victims.push_back(std::make_unique<CountingThread>());
    slots.push_back(halt(*victims.back()));
    tids.push_back((*victims.back())->tid());
  }
  std::vector<Place> places(kMoves);
  loop_.run([&] {
    for (size_t i = 0; i < kMoves; ++i) {
      loop_.move_to(slots[i * 7 % slots.size()]);
      places[i] = note_on_host();
    }
    loop_.move_to(nullptr);
  });
  for (size_t i = 0; i < kMoves; ++i) {
    ASSERT_EQ(places[i].tid, tids[i * 7 % tids.size()]) << "move " << i;
  }
}

TEST_F(MigratingLoopTest, StaysWhereItIsWhenToldToMoveThere) {
  CountingThread victim;
  ThreadSlot* slot = halt(victim);
  std::vector<Place> places;
  loop_.run([&] {
    loop_.move_to(nullptr);
    places.push_back(note_on_host());
    loop_.move_to(slot);
    loop_.move_to(slot);
    places.push_back(note_on_host());
    loop_.move_to(nullptr);
  });
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].tid, current_tid());
  EXPECT_EQ(places[1].tid, victim->tid());
}

TEST_F(MigratingLoopTest, AllocatesOnAVictimThatWasAllocating) {
  TestThread victim([](const std::atomic<bool>& stop) {
    void* volatile block = nullptr;
    while (!stop) {
      block = malloc(5000);
      free(block);
    }
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(world().halt(victim.tid()));
    ThreadSlot* slot = world().find(victim.tid());
    size_t sum = 0;
    loop_.run([&] {
      loop_.move_to(slot);
      for (size_t size = 1; size < 10'000; size += 777) sum += std::vector<char>(size).size();
      loop_.move_to(nullptr);
    });
    ASSERT_GT(sum, 0U);
    world().release(slot);
  }
}

TEST_F(MigratingLoopTest, RunsAgainFromTheStart) {
  int runs = 0;
  for (int i = 0; i < 3; ++i) loop_.run([&] { ++runs; });
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace framestorm
