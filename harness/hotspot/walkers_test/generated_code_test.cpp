// What walks make of generated code in states that are seldom met: of stubs of polls that return, of nmethods
// that are being made, and of frames that are not all there.
#include <sys/mman.h>

#include <algorithm>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same;

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

class GeneratedCodeTest : public IteratorTest {
 protected:
  struct Walked {
    int result = 0;
    std::vector<ASGST_Frame> frames;
    int end = 0;
  };
  Handler into(Walked* walked) {
    return [this, walked](ASGST_Iterator* it) {
      walked->frames = rest(it);
      walked->end = state_(it);
    };
  }
  Walked walk_from(const ASGST_Frame& frame, int options = 0) {
    Walked walked;
    walked.result = run_from(frame, into(&walked), options);
    return walked;
  }
  // As if it was interrupted with these registers.
  Walked walk_interrupted(const void* pc, const void* sp, const void* fp) {
    ucontext_t context = *victim(scenario_).slot->context;
    set_register(&context, Register::pc, number(pc));
    set_register(&context, Register::sp, number(sp));
    set_register(&context, Register::fp, number(fp));
    Walked walked;
    walked.result = run_context(&context, into(&walked));
    return walked;
  }
  Walked walk_interrupted(const ASGST_Frame& frame) {
    return walk_interrupted(frame.pc, frame.sp, frame.fp);
  }

  const CodeEntry& code_of(const ASGST_Frame& frame) {
    return *session().jvm().code_map().find(number(frame.pc));
  }
  template <typename T>
  T& field(void* object, const char* type, const char* name) {
    return *reinterpret_cast<T*>(static_cast<char*>(object) +
                                 session().jvm().structs().required_offset(type, name));
  }
};

// A poll is described nowhere. Its thread notes where it is.
TEST_F(GeneratedCodeTest, AStubOfAPollReturnsRightBehindTheOneThatIsNoted) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  const auto entries = session().jvm().code_map().entries();
  const auto found = std::ranges::find_if(entries, [](const CodeEntry& code) {
    return code.kind == CodeKind::stub && code.name.starts_with("SafepointBlob");
  });
  ASSERT_NE(found, entries.end());
  const CodeEntry& stub = *found;
  const auto* behind_call = reinterpret_cast<const uint8_t*>(stub.begin) + 5;
  while (behind_call[-5] != 0xe8 && (behind_call[-2] != 0xff || (behind_call[-1] & 0xf8) != 0xd0)) {
    ASSERT_LT(number(++behind_call), stub.end);
  }
  const auto words =
      static_cast<size_t>(field<int32_t>(blob_of(stub.begin), "CodeBlob", "_frame_size"));
  auto& noted =
      field<uintptr_t>(victim(scenario_).java_thread, "JavaThread", "_saved_exception_pc");

  constexpr ptrdiff_t kLongestPoll = 16;
  size_t longest = 0, too_long = 0, not_described = 0;
  for (auto caller = callers.begin(); caller != callers.end(); ++caller) {
    if (caller->comp_level <= 0 || caller->type == ASGST_FRAME_JAVA_NATIVE ||
        (caller != callers.begin() && caller->sp == caller[-1].sp)) {
      continue;
    }
    auto* const sp = static_cast<uintptr_t*>(caller->sp);
    const uintptr_t pc = number(caller->pc);
    const Poke<uintptr_t> link(&sp[-2], number(caller->fp));
    const auto walked = [&](uintptr_t returns_to, uintptr_t polled) {
      const Poke<uintptr_t> word(&sp[-1], returns_to), poll(&noted, polled);
      return walk_from({.pc = const_cast<uint8_t*>(behind_call), .sp = sp - words});
    };
    for (ptrdiff_t behind = -1; behind < kLongestPoll + 8; ++behind) {
      const uintptr_t returns_to = pc + static_cast<uintptr_t>(behind);
      // Return addresses by themselves, and other code.
      if (returns_to >= code_of(*caller).end || !walked(returns_to, 0).frames.empty()) continue;
      const Walked of_poll = walked(returns_to, pc);
      if (behind > 0 && behind <= kLongestPoll) {
        EXPECT_TRUE(same(of_poll.frames, {caller, callers.end()})) << behind;
      } else {
        EXPECT_EQ(of_poll.frames.size(), 0U) << behind;
        EXPECT_EQ(of_poll.end, ASGST_STOPPED_BAD_PC) << behind;
      }
      longest += behind == kLongestPoll;
      too_long += behind > kLongestPoll;
      if (behind != 1) continue;
      ++not_described;
      EXPECT_EQ(walked(returns_to + 1, returns_to).end, ASGST_STOPPED_BAD_PC);
    }
  }
  EXPECT_GT(longest, 0U);
  EXPECT_GT(too_long, 0U);
  EXPECT_GT(not_described, 0U);
}

// An nmethod is found from its constructor's beginning on.
TEST_F(GeneratedCodeTest, CodeThatHasNoMethodYetIsNoFrame) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  const ASGST_Frame& caller = callers.front();
  const ASGST_Frame top = all().front();
  ASSERT_NE(&code_of(top), &code_of(caller));
  void* const thread = victim(scenario_).java_thread;
  auto* const sp = static_cast<uintptr_t*>(caller.sp);
  const uintptr_t stub = entry_of(CodeKind::stub, "jbyte_disjoint_arraycopy");
  ASSERT_NE(stub, 0U);
  const Poke<void*> method(&field<void*>(blob_of(number(caller.pc)), "nmethod", "_method"),
                           nullptr);

  EXPECT_EQ(walk_interrupted(caller).result, ASGST_NO_TOP_JAVA_FRAME);
  {
    const Poke<uintptr_t> return_address(&sp[-1], number(caller.pc));
    const Walked called = walk_interrupted(reinterpret_cast<void*>(stub), sp - 1, caller.fp);
    EXPECT_EQ(called.frames.size(), 0U);
    EXPECT_EQ(called.end, ASGST_STOPPED_BAD_FRAME);
  }
  const ThreadLayout& layout = session().jvm().layout();
  const auto noted = [&](size_t offset) -> void*& {
    return *reinterpret_cast<void**>(static_cast<char*>(thread) + offset);
  };
  const Poke<void*> noted_sp(&noted(layout.last_java_sp), caller.sp);
  const Poke<void*> noted_fp(&noted(layout.last_java_fp), caller.fp);
  const Poke<void*> noted_pc(&noted(layout.last_java_pc), caller.pc);
  const std::vector<ASGST_Frame> frames = all();
  ASSERT_GT(frames.size(), 0U);
  EXPECT_TRUE(same(frames.front(), top)) << "walks begin at the context";
}

TEST_F(GeneratedCodeTest, CodeThatHasNoTablesYetIsAFrameWithoutBci) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  void* const code = blob_of(number(callers.front().pc));
  const Poke<void*> tables(&field<void*>(code, "nmethod", "_immutable_data"), nullptr);
  const Poke<int32_t> places(&field<int32_t>(code, "nmethod", "_scopes_pcs_offset"), 0);
  const Poke<int32_t> scopes(&field<int32_t>(code, "nmethod", "_scopes_data_offset"), 0);
  const Walked walked = walk_interrupted(callers.front());
  ASSERT_GT(walked.frames.size(), 0U);
  EXPECT_EQ(walked.frames.front().type, ASGST_FRAME_JAVA);
  EXPECT_EQ(walked.frames.front().method, field<void*>(code, "nmethod", "_method"));
  EXPECT_EQ(walked.frames.front().bci, -1);
}

TEST_F(GeneratedCodeTest, AScopeThatIsItsOwnCallerIsGivenUp) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  const CodeEntry& entry = code_of(callers.front());
  void* const code = blob_of(entry.begin);
  auto* const tables = field<uint8_t*>(code, "nmethod", "_immutable_data");
  auto* const scopes = tables + field<int32_t>(code, "nmethod", "_scopes_data_offset");
  const size_t size = session().jvm().structs().size_of("PcDesc");
  // A number below 191 is a byte, one greater. A scope begins with the place of its caller's, 0 for none.
  constexpr int kFirstOfTwoBytes = 191;
  size_t count = 0;
  for (auto* place = tables + field<int32_t>(code, "nmethod", "_scopes_pcs_offset") + size;
       place + size < scopes; place += size) {
    const auto scope = field<int32_t>(place, "PcDesc", "_scope_decode_offset");
    const auto offset = static_cast<uint32_t>(field<int32_t>(place, "PcDesc", "_pc_offset"));
    if (scope <= 0 || scope >= kFirstOfTwoBytes || scopes[scope] != 1) continue;
    ++count;
    const Poke<uint8_t> calls_itself(&scopes[scope], static_cast<uint8_t>(1 + scope));
    const Walked walked = walk_interrupted(reinterpret_cast<void*>(entry.begin + offset - 1),
                                           callers.front().sp, callers.front().fp);
    EXPECT_EQ(walked.frames.size(), 4097U);
    EXPECT_EQ(walked.end, ASGST_STOPPED_TOO_DEEP);
  }
  EXPECT_GT(count, 0U);
}

TEST_F(GeneratedCodeTest, ACallWrapperIsAboveTheFrameOfItsCall) {
  begin(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  const VmStructs& structs = session().jvm().structs();
  auto* const entry_fp = *static_cast<uintptr_t**>(frames.back().fp);
  uintptr_t& wrapper = entry_fp[-6];
  // In a wrapper, it says whether there are Java frames before.
  uintptr_t& noted_sp = entry_fp[(structs.required_offset("JavaCallWrapper", "_anchor") +
                                  structs.required_offset("JavaFrameAnchor", "_last_Java_sp")) /
                                 sizeof(*entry_fp)];
  const Poke elsewhere(&wrapper, number(entry_fp));
  const Poke first(&noted_sp, uintptr_t{0});
  Walked walked;
  run(into(&walked));
  EXPECT_TRUE(same(walked.frames, frames));
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_FRAME);
}

// A return address has a description of its own. Where no whole frame can be it is a place like any other, of
// the next description.
TEST_F(GeneratedCodeTest, AFrameWhoseLinkCannotBeReadIsNotWhole) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  constexpr size_t kPage = 4096;
  auto* const pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  auto* const upper = reinterpret_cast<void**>(pages + kPage);
  std::fill_n(upper, kPage / sizeof(*upper), callers.front().pc);
  size_t count = 0;
  for (const CodeEntry& code : session().jvm().code_map().entries()) {
    if (!code.debug) continue;
    for (uintptr_t pc = code.begin + 5; pc < code.end; ++pc) {
      const auto at = code.debug->at(pc), after = code.debug->after(pc);
      const bool behind_call = read_at<uint8_t>(reinterpret_cast<void*>(pc - 5)) == 0xe8;
      if (!behind_call || at.empty() || after.empty() || at.front() == after.front()) continue;
      ++count;
      // The return address is the upper page's first word.
      const ASGST_Frame frame = {.pc = reinterpret_cast<void*>(pc),
                                 .sp = reinterpret_cast<char*>(upper + 1) - code.frame_bytes,
                                 .fp = static_cast<void*>(upper)};
      const auto expect_innermost = [&](const DebugInfo::JavaFrame& expected) {
        const Walked walked = walk_from(frame, ASGST_INCLUDE_NON_JAVA_THREADS);
        ASSERT_GT(walked.frames.size(), 0U);
        EXPECT_EQ(walked.frames.front().method, *reinterpret_cast<void**>(expected.method));
        EXPECT_EQ(walked.frames.front().bci, expected.bci);
      };
      expect_innermost(at.front());
      ASSERT_EQ(mprotect(pages, kPage, PROT_NONE), 0);
      expect_innermost(after.front());
      ASSERT_EQ(mprotect(pages, kPage, PROT_READ | PROT_WRITE), 0);
    }
  }
  munmap(pages, 2 * kPage);
  EXPECT_GT(count, 0U);
}

}  // namespace
}  // namespace framestorm
