// Oracle `places`, by traces that no walker has made.
#include <algorithm>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/jvm/call_site.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::JvmTest;

constexpr uint8_t kJava = 1, kInlined = 2, kC = 4;

// As the iterators give it (walker_table.h).
struct Given {
  jmethodID method = nullptr;
  uintptr_t pc = 0, sp = 0;
  int32_t bci = -1;
  int8_t tier = 0;
  uint8_t type = kJava;
};
static_assert(sizeof(Given) == traits_of(WalkerId::asgst_iterator).layout.stride);

class NoWalker final : public Walker {
 public:
  NoWalker() : Walker(WalkerId::asgst_iterator) {}
  int32_t walk(const WalkTarget&, std::byte*, int32_t, void*) noexcept override { return 0; }
};

class NoFurtherWalks final : public WalkMaker {
 public:
  const Walker* walker(WalkerId) const override { return nullptr; }
  bool offers(const FurtherWalk&) const override { return false; }
  const WalkRecord* make(const FurtherWalk&) override { return nullptr; }
};

class PlacesTest : public JvmTest {
 protected:
  void SetUp() override {
    start({ScenarioId::c2_inlined});
    if (HasFatalFailure()) return;
    halt_in_java(ScenarioId::c2_inlined);
    if (HasFatalFailure()) return;
    find_inlined();
  }

  // The Java frames of a place in compiled code that has something inlined, and no place next to it.
  void find_inlined() {
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.kind != CodeKind::nmethod || entry.debug == nullptr) continue;
      for (uintptr_t pc = entry.begin + 8; pc + 1 < entry.end; ++pc) {
        const bool alone = entry.debug->at(pc + 1).empty() && !entry.debug->after(pc + 1).empty() &&
                           !follows_call(pc + 1, entry.begin);
        if (entry.debug->at(pc).size() < 2 || !alone) continue;
        pc_ = pc;
        debug_ = entry.debug;
        return;
      }
    }
    FAIL() << "nothing is inlined anywhere";
  }

  const Victim& spinning() { return victim(ScenarioId::c2_inlined); }

  // An interpreted frame on top, and what is compiled as the place at `pc`.
  std::vector<Given> trace_at(uintptr_t pc, std::span<const DebugInfo::JavaFrame> compiled) {
    std::vector<Given> trace = {{.method = debug_->method(),
                                 .pc = session().jvm().code_map().code_cache().first,
                                 .sp = spinning().sp,
                                 .bci = 0}};
    const auto tier = static_cast<int8_t>(session().jvm().code_map().find(pc)->tier);
    for (const auto& frame : compiled) {
      trace.push_back({frame.method, pc, spinning().sp + 64, frame.bci, tier, kInlined});
    }
    trace.back().type = kJava;
    return trace;
  }

  std::vector<std::string> judge(const std::vector<Given>& trace, bool unmutated = false,
                                 uint32_t options = 0, const char* stopped = nullptr) {
    Input input;
    input.scenario = ScenarioId::c2_inlined;
    const NoWalker walker;
    WalkRecord record;
    record.result = static_cast<int32_t>(trace.size());
    record.depth = record.result + 1;
    record.frames = reinterpret_cast<const std::byte*>(trace.data());
    record.options = options;
    record.thread_state = state_;
    record.expected_context = &spinning().context_copy;
    record.has_facts = true;
    record.facts.stopped = stopped;
    Jvm& jvm = session().jvm();
    const Subject subject = {.input = &input,
                             .victim = &spinning(),
                             .walker = &walker,
                             .jvm = &jvm,
                             .methods = &jvm.methods(),
                             .unmutated = unmutated,
                             .mutated = !unmutated};
    const WalkView view = {record, subject};
    const auto every = OracleRegistration::all();
    const OracleRegistration& places = **std::ranges::find(
        every, "places", [](const auto* each) { return each->declaration.name; });
    NoFurtherWalks none;
    Further further(places.declaration, view, none);
    Violations violations;
    places.make()->check(view, further, &violations);
    return clauses_of(violations.findings());
  }

  // Behind it, and what is compiled next.
  std::pair<uintptr_t, std::span<const DebugInfo::JavaFrame>> call_of_a_leaf() {
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.kind != CodeKind::nmethod || entry.debug == nullptr) continue;
      for (uintptr_t pc = entry.begin + 8; pc < entry.end; ++pc) {
        if (entry.debug->at(pc).empty() && !entry.debug->after(pc).empty() &&
            follows_call(pc, entry.begin)) {
          return {pc, entry.debug->after(pc)};
        }
      }
    }
    return {};
  }

  using Clauses = std::vector<std::string>;
  uintptr_t pc_ = 0;
  std::shared_ptr<const DebugInfo> debug_;
  uint32_t state_ = 0;
};

TEST_F(PlacesTest, ACompiledFrameIsWhatIsCompiledThere) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  EXPECT_EQ(judge(trace), Clauses{});
  trace[1].bci += 1;
  EXPECT_EQ(judge(trace), Clauses{"contract:not-what-is-compiled-there"}) << "another bci";
  trace = trace_at(pc_, debug_->at(pc_).last(1));
  EXPECT_EQ(judge(trace), Clauses{"contract:not-what-is-compiled-there"}) << "inlined ones lost";
}

TEST_F(PlacesTest, ACompiledFrameHasTheTierOfItsCode) {
  ASSERT_FALSE(HasFatalFailure());
  for (const size_t frame : {1U, 2U}) {  // inlined or not
    std::vector<Given> trace = trace_at(pc_, debug_->at(pc_).last(2));
    trace[frame].tier ^= 1;
    EXPECT_EQ(judge(trace), Clauses{"contract:tier-of-other-code"});
  }
}

TEST_F(PlacesTest, ACallerHasCalled) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_ + 1, debug_->after(pc_ + 1));
  EXPECT_EQ(judge(trace), Clauses{"contract:caller-behind-no-call"});
  trace.erase(trace.begin());
  EXPECT_EQ(judge(trace), Clauses{}) << "on top it is anywhere";
}

TEST_F(PlacesTest, AStubIsBetweenCAndJava) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  const uintptr_t c = reinterpret_cast<uintptr_t>(&abort) + 1;
  trace.push_back({.pc = c, .sp = trace.back().sp + 64, .tier = -1, .type = kC});
  EXPECT_EQ(judge(trace), Clauses{"contract:java-called-from-c"});
  trace.insert(trace.end() - 1, Given{.pc = entry_of(CodeKind::stub, "call_stub"),
                                      .sp = trace.back().sp,
                                      .tier = -1,
                                      .type = kC});
  EXPECT_EQ(judge(trace), Clauses{});
}

TEST_F(PlacesTest, ATraceThatEndsAtAnEntryIsNotWhole) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  trace.push_back({.pc = entry_of(CodeKind::stub, "call_stub"),
                   .sp = trace.back().sp + 64,
                   .tier = -1,
                   .type = kC});
  EXPECT_EQ(judge(trace, false, kIncludeCFrames), Clauses{"contract:ends-at-an-entry"});
  EXPECT_EQ(judge(trace, false, kIncludeCFrames, "and says why"), Clauses{});
  EXPECT_EQ(judge(trace), Clauses{}) << "no frames of C are asked for";
}

// A call of a leaf is not described, and no Java method is a leaf.
TEST_F(PlacesTest, ACallerOfJavaIsDescribed) {
  ASSERT_FALSE(HasFatalFailure());
  const auto [pc, compiled] = call_of_a_leaf();
  ASSERT_NE(pc, 0U) << "no compiled code calls a leaf";
  std::vector<Given> trace = trace_at(pc, compiled);
  EXPECT_EQ(judge(trace, false, kIncludeCFrames), Clauses{"contract:caller-not-described"});
  EXPECT_EQ(judge(trace), Clauses{}) << "a stub may be between that is not in the trace";
  trace.front().type = kC;
  EXPECT_EQ(judge(trace, false, kIncludeCFrames), Clauses{}) << "the leaf";
}

TEST_F(PlacesTest, AFrameIsOnItsThreadsStack) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  for (const uintptr_t sp : {spinning().stack_base, spinning().stack_end - 8, trace[0].sp + 4}) {
    trace[0].sp = sp;
    EXPECT_EQ(judge(trace), Clauses{"contract:sp-off-the-stack"}) << sp;
  }
}

TEST_F(PlacesTest, OnlyAFrameWithNothingOnTheStackIsBelowTheThreadsSp) {
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  EXPECT_EQ(judge(trace, /*unmutated=*/true), Clauses{});
  trace[0].sp -= 8;
  EXPECT_EQ(judge(trace, /*unmutated=*/true), Clauses{"contract:sp-below-the-threads"});
  EXPECT_EQ(judge(trace), Clauses{}) << "a mutated sp is another one";
  for (size_t i = 1; i < trace.size(); ++i) trace[i].sp = spinning().sp;
  EXPECT_EQ(judge(trace, /*unmutated=*/true), Clauses{}) << "its caller is there";
}

// In Java the thread's own sp says what it has left, whatever is mutated. Where that is the frame pointer, the
// trace may end at a method that is being entered.
TEST_F(PlacesTest, AMutatedFramePointerLosesTheCallerOfAFrameWithNothingOnTheStack) {
  ASSERT_FALSE(HasFatalFailure());
  state_ = kThreadInJava;
  std::vector<Given> trace = trace_at(pc_, debug_->at(pc_));
  ASSERT_GT(trace.size(), 1U);
  trace.back().sp = spinning().sp - 8;
  EXPECT_EQ(judge(trace), Clauses{});
  EXPECT_EQ(judge(trace, /*unmutated=*/true), Clauses{"contract:sp-below-the-threads"});
  for (Given& frame : trace) frame.sp = spinning().sp + 64;
  trace.front().sp = spinning().sp - 8;
  EXPECT_EQ(judge(trace), Clauses{"contract:sp-below-the-threads"}) << "its caller is elsewhere";
}

TEST(CallSite, IsBehindACall) {
  struct Case {
    std::vector<uint8_t> code;
    bool calls;
  };
  for (const Case& one : {
           Case{{0xe8, 1, 2, 3, 4}, true},              // call rel32
           Case{{0x90, 0xff, 0xd0}, true},              // call rax
           Case{{0x41, 0xff, 0xd2}, true},              // call r10
           Case{{0xff, 0x50, 0x18}, true},              // call [rax + 24]
           Case{{0xff, 0x14, 0xc8}, true},              // call [rax + rcx * 8]
           Case{{0xff, 0x15, 1, 2, 3, 4}, true},        // call [rip + 0x4030201]
           Case{{0xff, 0x94, 0x24, 1, 2, 3, 4}, true},  // call [rsp + 0x4030201]
           Case{{0xff, 0xe0}, false},                   // jmp rax
           Case{{0xe9, 1, 2, 3, 4}, false},             // jmp rel32
           Case{{0x48, 0x89, 0xe5}, false},             // mov rbp, rsp
           Case{{0xd0}, false},
       }) {
    const auto begin = reinterpret_cast<uintptr_t>(one.code.data());
    EXPECT_EQ(follows_call(begin + one.code.size(), begin), one.calls)
        << std::hex << +one.code.front();
  }
}

}  // namespace
}  // namespace framestorm
