// Code that has no frame of its own, and pushes registers and calls for a collector's barrier: at each
// of its instructions the caller is found, whatever return addresses stand in what was pushed.
#include "profile2.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"

using u1 = uint8_t;
#include "asyncStraightCode_x86.hpp"

namespace framestorm {
namespace {

using jvm_test::JvmTest;
using Frames = std::vector<ASGST_Frame>;

class BarrierTest : public JvmTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    start({ScenarioId::exception_unwind, ScenarioId::method_handle}, {}, {GetParam()});
    ASSERT_FALSE(HasFatalFailure());
    run_ = reinterpret_cast<decltype(run_)>(session().jvm().symbol("ASGST_RunWithIterator"));
    next_ = reinterpret_cast<decltype(next_)>(session().jvm().symbol("ASGST_NextFrame"));
    ASSERT_TRUE(run_ != nullptr && next_ != nullptr);
    // Most halts meet it in HotSpot, where an exception looks for its handler.
    constexpr int kMostHalts = 200;
    for (int i = 0; i < kMostHalts && callers_.empty(); ++i) {
      halt_in_java(kScenario);
      ASSERT_FALSE(HasFatalFailure());
      // A stub that is about to call has noted where Java frames begin.
      if (read_at<uintptr_t>(victim(kScenario).java_thread,
                             session().jvm().layout().last_java_sp) != 0) {
        continue;
      }
      const Frames frames = walk(*victim(kScenario).slot->context);
      const auto caller = std::ranges::find_if(frames, [&](const ASGST_Frame& frame) {
        return frame.sp != frames.front().sp && frame.comp_level > 0;
      });
      callers_.assign(caller, frames.end());
    }
    ASSERT_FALSE(callers_.empty()) << "no compiled caller";
  }

  Frames walk(const ucontext_t& context) {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(kScenario).java_thread);
    struct Walk {
      decltype(next_) next;
      Frames frames;
    } walk = {next_, {}};
    const auto take = [](ASGST_Iterator* it, void* into) {
      ASGST_Frame frame;
      while (static_cast<Walk*>(into)->next(it, &frame) == 1) {
        static_cast<Walk*>(into)->frames.push_back(frame);
      }
    };
    run_(const_cast<ucontext_t*>(&context), 0, take, &walk);
    return walk.frames;
  }

  // As if the compiled caller had called this code, `room` words below its frame: how many instructions
  // were walked, and what was pushed where they stand at most.
  std::pair<int, ptrdiff_t> walk_all_of(const CodeEntry& code, size_t room) {
    const auto* const begin = reinterpret_cast<const u1*>(code.begin);
    const auto* const end = reinterpret_cast<const u1*>(code.end);
    int count = 0;
    ptrdiff_t most = 0;
    for (const u1* pc = begin; pc < end;) {
      ptrdiff_t pushed = 0;
      if (bytes_pushed(begin, pc, end, &pushed)) {
        most = std::max(most, pushed);
        ++count;
        check(pc, room, static_cast<size_t>(pushed) / sizeof(uintptr_t), false);
        const u1 call = 0xe8;
        if (pc - begin >= 5 && pc[-5] == call) {
          check(pc, room, static_cast<size_t>(pushed) / sizeof(uintptr_t), true);
        }
      }
      const size_t size = StraightInstruction(pc, end).size();
      if (size == 0) break;
      pc += size;
    }
    return {count, most};
  }

  void check(const u1* pc, size_t room, size_t pushed, bool from_c) {
    auto* const caller_sp = static_cast<uintptr_t*>(callers_.front().sp);
    const size_t words = room + 1 + pushed + (from_c ? 1 : 0);
    uintptr_t* const sp = caller_sp - words;
    const std::vector<uintptr_t> kept(sp, caller_sp);
    std::fill(sp, caller_sp, reinterpret_cast<uintptr_t>(callers_.back().pc));
    caller_sp[-static_cast<ptrdiff_t>(room) - 1] = reinterpret_cast<uintptr_t>(callers_.front().pc);
    if (from_c) *sp = reinterpret_cast<uintptr_t>(pc);
    ucontext_t context = *victim(kScenario).slot->context;
    // C has there what it likes, a method too.
    context.uc_mcontext.gregs[REG_RBX] =
        from_c ? reinterpret_cast<greg_t>(callers_.front().method) : 0;
    set_register(
        &context, Register::pc,
        from_c ? reinterpret_cast<uintptr_t>(&getpagesize) : reinterpret_cast<uintptr_t>(pc));
    set_register(&context, Register::sp, reinterpret_cast<uintptr_t>(sp));
    set_register(&context, Register::fp, reinterpret_cast<uintptr_t>(callers_.front().fp));
    Frames frames = walk(context);
    std::ranges::copy(kept, sp);
    if (!frames.empty() && frames.front().type == ASGST_FRAME_JAVA_NATIVE) {
      frames.erase(frames.begin());
    }
    const auto same = [](const ASGST_Frame& a, const ASGST_Frame& b) {
      return a.method == b.method && a.bci == b.bci && a.sp == b.sp;
    };
    EXPECT_TRUE(std::ranges::equal(frames, callers_, same))
        << frames.size() << " of " << callers_.size() << " frames, "
        << session().jvm().code_map().describe(reinterpret_cast<uintptr_t>(pc))->delta << ", "
        << pushed << " words pushed" << (from_c ? ", in a function that it calls" : "");
  }

  const CodeEntry* code(std::string_view name) {
    const CodeEntry* found = nullptr;
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.name.find(name) != std::string::npos) found = &entry;
    }
    return found;
  }

  static constexpr ScenarioId kScenario = ScenarioId::exception_unwind;
  decltype(&ASGST_RunWithIterator) run_ = nullptr;
  decltype(&ASGST_NextFrame) next_ = nullptr;
  Frames callers_;
};

INSTANTIATE_TEST_SUITE_P(Collector, BarrierTest,
                         testing::Values("-XX:+UseZGC", "-XX:+UseShenandoahGC"),
                         [](const auto& info) { return info.index == 0 ? "Z" : "Shenandoah"; });

TEST_P(BarrierTest, TheEntryOfReferenceGetHasItsCaller) {
  const CodeEntry* const entry = code("java_lang_ref_reference_get");
  ASSERT_NE(entry, nullptr);
  const auto [count, most] = walk_all_of(*entry, 2);
  EXPECT_GT(count, 10);
  EXPECT_GT(most, 64) << "no barrier";
}

TEST_P(BarrierTest, CodeOfAMethodHandleHasItsCaller) {
  const CodeEntry* const entry = code("MethodHandle.invokeBasic");
  ASSERT_NE(entry, nullptr);
  const auto [count, most] = walk_all_of(*entry, 0);
  EXPECT_GT(count, 10);
  EXPECT_GT(most, 64) << "no barrier";
}

}  // namespace
}  // namespace framestorm
