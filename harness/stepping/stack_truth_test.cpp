// A StackTruth driven by hand: registers that go through real code, over a stack that is made up. No instruction
// of it is executed.
#include "harness/stepping/stack_truth.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/executor/jvm_fixture.h"

namespace framestorm::stepping {
namespace {

constexpr std::string_view kUntold = "code that JVMTI has not told of yet";
// Native code that only returns.
constexpr uint8_t kReturn = 0xc3;
constexpr size_t kCall = 5;  // of most calls, in bytes
constexpr int kVirtualThreads = 21;
const auto kNative = reinterpret_cast<uintptr_t>(&kReturn);

class StackTruthTest : public jvm_test::JvmTest {
 protected:
  // C1.outer calls C1.middle, and that C1.spin. None is inlined.
  void SetUp() override {
    JvmTest::start({ScenarioId::c1});
    if (HasFatalFailure()) return;
    map().absorb();
    session().jvm().methods().absorb();
    catalog_ = std::make_unique<CodeCatalog>(session().jvm());
    versions_ = std::make_unique<MethodVersions>(session().jvm());
    truth_ = std::make_unique<StackTruth>(session().jvm(), *catalog_, *versions_);
    outer_ = code(CodeKind::nmethod, "framestorm/C1.outer");
    middle_ = code(CodeKind::nmethod, "framestorm/C1.middle");
    spin_ = code(CodeKind::nmethod, "framestorm/C1.spin");
    adapter_ = code(CodeKind::stub, "I2C/C2I adapters");
    method_entry_ = code(CodeKind::codelet, "method entry point (kind = zerolocals)");
    return_entry_ = code(CodeKind::codelet, "return entry points");
    safepoint_ = code(CodeKind::stub, "SafepointBlob");
    deoptimization_ = code(CodeKind::stub, "DeoptimizationBlob");
    body_ = code(CodeKind::codelet, "nop");
  }
  CodeMap& map() { return session().jvm().code_map(); }

  CodeEntry code(CodeKind kind, std::string_view name) {
    for (const CodeEntry& entry : map().entries()) {
      if (entry.kind == kind && entry.name == name) return entry;
    }
    ADD_FAILURE() << "no code " << name;
    return {};
  }
  // Its name is another one in JDK 21.
  CodeEntry return_barrier() {
    for (const CodeEntry& entry : map().entries()) {
      if (catalog_->at(entry.begin)->role == Role::return_barrier) return entry;
    }
    ADD_FAILURE() << "no return barrier";
    return {};
  }
  void forget(const CodeEntry& entry) {
    map().remove(reinterpret_cast<const void*>(entry.begin));
    map().absorb();
  }
  void tell(const CodeEntry& entry, const std::string& name) {
    map().add_nmethod(reinterpret_cast<const void*>(entry.begin), entry.end - entry.begin, name,
                      entry.debug->method(), nullptr);
    map().absorb();
  }
  uintptr_t method_of(const CodeEntry& entry) {
    return reinterpret_cast<uintptr_t>(session().jvm().methods().method_at(entry.debug->method()));
  }
  // The first byte that is such an instruction's. It may be in the middle of another one.
  static uintptr_t first(const CodeEntry& entry, Flow flow) {
    for (uintptr_t pc = entry.begin; pc < entry.end; ++pc) {
      if (flow_at(pc) == flow) return pc;
    }
    ADD_FAILURE() << "no such instruction in " << entry.name;
    return 0;
  }

  uintptr_t& word(uintptr_t address) { return *reinterpret_cast<uintptr_t*>(address); }
  void go(uintptr_t pc) {
    now_.pc = pc;
    truth_->advance(now_);
  }
  void push(uintptr_t value) {
    now_.sp -= sizeof(uintptr_t);
    word(now_.sp) = value;
  }
  void call(uintptr_t from, uintptr_t return_to, uintptr_t to) {
    go(from);
    push(return_to);
    go(to);
  }
  void call(const CodeEntry& from, uintptr_t to) {
    const uintptr_t at = first(from, Flow::call);
    call(at, at + kCall, to);
  }
  void return_by(uintptr_t ret) {
    if (now_.pc != ret) go(ret);
    const uintptr_t to = word(now_.sp);
    now_.sp += sizeof(uintptr_t);
    go(to);
  }
  void return_from(const CodeEntry& entry) { return_by(first(entry, Flow::ret)); }
  // Of what was called.
  void make_compiled_frame(const CodeEntry& entry) {
    now_.sp -= entry.frame_bytes - sizeof(uintptr_t);
    go(entry.frame_complete);
  }
  void take_down_compiled_frame(const CodeEntry& entry) {
    now_.sp += entry.frame_bytes - sizeof(uintptr_t);
  }
  void interpreter_calls(const CodeEntry& method, const CodeEntry& to) {
    now_.method = method_of(method);
    push(return_entry_.begin);
    go(to.begin);
  }
  void put_interpreted_frame(const CodeEntry& of) {
    push(now_.fp);
    now_.fp = now_.sp;
    now_.sp -= kInterpretedFrame + 4 * sizeof(uintptr_t);
    word(now_.fp - 3 * sizeof(uintptr_t)) = method_of(of);
  }
  void make_interpreted_frame(const CodeEntry& of) {
    put_interpreted_frame(of);
    go(body_.begin);
  }
  void interpreter_enters(const CodeEntry& method) {
    interpreter_calls(method, method_entry_);
    make_interpreted_frame(method);
  }
  void leave_interpreted_frame() {
    const InterpretedFrame frame = interpreted_frame(now_.fp);
    now_.sp = frame.return_slot + sizeof(uintptr_t);
    now_.fp = frame.caller_fp;
    go(frame.return_address);
  }

  // In C1.outer, behind a call.
  void begin_in_outer() {
    now_ = {.sp = address_of(3 * kWords / 4), .fp = address_of(kWords - 8)};
    for (call_of_outer_ = outer_.begin; call_of_outer_ < outer_.end; ++call_of_outer_) {
      returns_to_outer_ = call_of_outer_ + kCall;
      if (flow_at(call_of_outer_) == Flow::call &&
          outer_.debug->at(returns_to_outer_).size() == 1) {
        break;
      }
    }
    ASSERT_LT(call_of_outer_, outer_.end);
    truth_->begin(outer_.debug->at(returns_to_outer_), address_of(kWords), now_.sp);
    go(returns_to_outer_);
    ASSERT_EQ(known(), frames({"outer"}));
  }
  // The interpreter runs C1.outer.
  void begin_in_interpreted_outer(const std::vector<DebugInfo::JavaFrame>& callers = {}) {
    now_ = {.sp = address_of(3 * kWords / 4), .fp = address_of(kWords - 8)};
    std::vector<DebugInfo::JavaFrame> base = {{outer_.debug->method(), 0}};
    base.insert(base.end(), callers.begin(), callers.end());
    truth_->begin(base, address_of(kWords), 0);
    push(0);
    make_interpreted_frame(outer_);
    ASSERT_EQ(truth_->knowledge(), Knowledge::known);
  }
  // From C1.outer; nobody has told of its code.
  void call_untold_middle() {
    begin_in_outer();
    forget(middle_);
    call(call_of_outer_, returns_to_outer_, middle_.begin);
    make_compiled_frame(middle_);
  }
  uintptr_t address_of(size_t index) { return reinterpret_cast<uintptr_t>(&stack_[index]); }

  // The methods that have a frame, innermost first; why they are not known.
  std::vector<std::string> known() {
    if (truth_->knowledge() != Knowledge::known) return {std::string(truth_->lost_why())};
    std::vector<std::string> methods;
    for (const TrueFrame& frame : truth_->expected()) {
      if (frame.sort == TrueFrame::Sort::frame) methods.push_back(name_of_id(frame.method));
    }
    return methods;
  }
  std::string name_of_id(jmethodID id) { return session().jvm().methods().find(id)->name; }
  static std::vector<std::string> frames(std::initializer_list<const char*> methods) {
    std::vector<std::string> names;
    for (const std::string method : methods) names.push_back("framestorm/C1." + method);
    return names;
  }
  static std::vector<std::string> lost(std::string_view why) { return {std::string(why)}; }

  static constexpr size_t kWords = 1024;
  std::array<uintptr_t, kWords> stack_ = {};
  Registers now_;
  std::unique_ptr<CodeCatalog> catalog_;
  std::unique_ptr<MethodVersions> versions_;
  std::unique_ptr<StackTruth> truth_;
  CodeEntry outer_, middle_, spin_, adapter_, method_entry_, return_entry_, body_, safepoint_,
      deoptimization_;
  uintptr_t call_of_outer_ = 0, returns_to_outer_ = 0;
};

// HotSpot's handler of a poll's signal goes to a blob, which calls the VM. Its callers lack the code that polled.
TEST_F(StackTruthTest, ACallThatReturnsInCodeThatNobodyHasToldOfLeavesTheTruthLost) {
  call_untold_middle();
  push(middle_.frame_complete);
  call(safepoint_, kNative);
  return_by(kNative);
  EXPECT_EQ(known(), lost(kUntold));
  return_from(safepoint_);
  EXPECT_EQ(known(), lost(kUntold));
  take_down_compiled_frame(middle_);
  return_from(middle_);
  EXPECT_EQ(known(), frames({"outer"}));
}

TEST_F(StackTruthTest, CodeThatIsToldOfMeanwhileIsKnownWhereItsCallReturns) {
  call_untold_middle();
  call(middle_, spin_.begin);
  EXPECT_EQ(known(), lost(kUntold));
  tell(middle_, middle_.name);
  return_from(spin_);
  EXPECT_EQ(known(), frames({"middle", "outer"}));
}

// The interpreter's calls are not followed while the truth is lost.
TEST_F(StackTruthTest, CompiledCodeThatADeoptimisedFrameHasCalledIsNotInItsPlace) {
  call_untold_middle();
  go(deoptimization_.begin);
  take_down_compiled_frame(middle_);
  make_interpreted_frame(middle_);
  interpreter_calls(spin_, adapter_);
  go(spin_.begin);
  make_compiled_frame(spin_);
  call(spin_, kNative);
  return_by(kNative);
  EXPECT_EQ(known(), lost(kUntold));
  take_down_compiled_frame(spin_);
  return_from(spin_);
  EXPECT_EQ(known(), lost(kUntold));
  leave_interpreted_frame();
  EXPECT_EQ(known(), frames({"outer"}));
}

// Both calls return to the same address. The second one goes to an adapter that nobody has told of, and so is
// not seen; the code of a method stands for that here.
TEST_F(StackTruthTest, AReturnToTheInterpreterEndsNoCallOfAnotherFrame) {
  begin_in_interpreted_outer();
  interpreter_enters(middle_);
  EXPECT_EQ(known(), frames({"middle", "outer"}));
  go(return_entry_.begin);  // in the frame of the called method
  EXPECT_EQ(known(), frames({"middle", "outer"}));
  forget(spin_);
  interpreter_calls(spin_, spin_);
  return_from(spin_);
  EXPECT_EQ(known(), lost(kUntold));
  leave_interpreted_frame();
  EXPECT_EQ(known(), frames({"outer"}));
}

TEST_F(StackTruthTest, ADeoptimisedFrameIsReplacedByThoseOfItsOwnMethods) {
  for (const CodeEntry* const replaced_by : {&outer_, &spin_}) {
    begin_in_outer();
    call(call_of_outer_, returns_to_outer_, middle_.begin);
    word(now_.sp) = outer_.deopt_handler;
    return_from(middle_);
    EXPECT_EQ(known(), frames({"outer"}));
    go(deoptimization_.begin);
    take_down_compiled_frame(outer_);
    make_interpreted_frame(*replaced_by);
    EXPECT_EQ(
        known(),
        replaced_by == &outer_
            ? frames({"outer"})
            : lost("interpreted frames of other methods than those of the deoptimised frame"));
  }
}

// An exception in a stub that the frame has called leads to the blob, which then calls the VM.
TEST_F(StackTruthTest, ADeoptimisedFrameThatAnExceptionIsThrownToIsThereUntilItIsReplaced) {
  begin_in_outer();
  call(call_of_outer_, returns_to_outer_, safepoint_.begin);
  word(now_.sp) = deoptimization_.begin;
  return_from(safepoint_);
  EXPECT_EQ(known(), frames({"outer"}));
  call(deoptimization_, kNative);
  return_by(kNative);
  EXPECT_EQ(known(), frames({"outer"}));
  take_down_compiled_frame(outer_);
  make_interpreted_frame(outer_);
  EXPECT_EQ(known(), frames({"outer"}));
}

// It jumps, and so nothing returns from what the codelet has called in itself.
TEST_F(StackTruthTest, AFrameThatPopFrameTakesDownInACallOfTheVmIsGone) {
  const CodeEntry exceptions = code(CodeKind::codelet, "exception handling");
  begin_in_interpreted_outer();
  interpreter_enters(middle_);
  const InterpretedFrame popped = interpreted_frame(now_.fp);
  call(exceptions, exceptions.begin);
  call(exceptions, kNative);
  return_by(kNative);
  EXPECT_EQ(known(), frames({"middle", "outer"}));
  now_.sp += sizeof(uintptr_t);
  go(exceptions.begin);
  EXPECT_EQ(known(), frames({"middle", "outer"}));
  now_.sp = popped.return_slot;
  now_.fp = popped.caller_fp;
  go(exceptions.begin);
  EXPECT_EQ(known(), frames({"outer"}));
}

// It brings them back right above what has entered the continuation, one by one.
TEST_F(StackTruthTest, AFrameThatTheReturnBarrierBringsBackMayStandElsewhere) {
  if (session().jvm().feature() < kVirtualThreads) GTEST_SKIP() << "no continuations";
  const CodeEntry barrier = return_barrier();
  begin_in_interpreted_outer();
  interpreter_enters(middle_);
  word(interpreted_frame(now_.fp).return_slot) = barrier.begin;
  leave_interpreted_frame();
  now_.sp = now_.fp + 16 * sizeof(uintptr_t);
  push(0);
  put_interpreted_frame(outer_);
  push(return_entry_.begin);
  return_from(barrier);
  EXPECT_EQ(known(), frames({"outer"}));
  interpreter_enters(spin_);
  EXPECT_EQ(known(), frames({"spin", "outer"}));
  leave_interpreted_frame();
  EXPECT_EQ(known(), frames({"outer"}));
}

// What has called the interpreted frame is in the heap, and would stand deeper than what has entered the
// continuation.
TEST_F(StackTruthTest, AVirtualThreadMayYieldWhileCallersAreInTheHeap) {
  if (session().jvm().feature() < kVirtualThreads) GTEST_SKIP() << "no continuations";
  JNIEnv* const env = session().jvm().env();
  const jclass continuation = env->FindClass("jdk/internal/vm/Continuation");
  const jmethodID enter =
      env->GetStaticMethodID(continuation, "enter", "(Ljdk/internal/vm/Continuation;Z)V");
  session().jvm().methods().absorb();
  begin_in_interpreted_outer({{enter, 0}});
  interpreter_enters(middle_);
  tell(spin_, "jdk/internal/vm/Continuation.doYield");
  go(spin_.begin);
  call(spin_, kNative);
  return_by(kNative);
  EXPECT_EQ(truth_->knowledge(), Knowledge::known);
  now_.sp = interpreted_frame(now_.fp).return_slot + 2 * sizeof(uintptr_t);
  go(spin_.begin);
  EXPECT_EQ(truth_->knowledge(), Knowledge::outside);
}

}  // namespace
}  // namespace framestorm::stepping
