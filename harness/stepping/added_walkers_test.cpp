// What only added walkers say: that a trace is cut, and where its frames are.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "harness/stepping/stepper_fixture.h"

namespace framestorm::stepping {
namespace {

// AsyncGetCallTrace's frames as those of an added walker.
class AsAdded : public Walker {
 public:
  AsAdded(Walker* real, const WalkerTraits& added) : Walker(added), real_(real) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    struct RealFrame {
      jint bci;
      jmethodID method;
    };
    static std::array<RealFrame, 256> real;
    const int32_t count = real_->walk(target, reinterpret_cast<std::byte*>(real.data()),
                                      std::min<int32_t>(depth, real.size()), ucontext);
    constexpr uint8_t kCompiled = 1;
    for (int32_t i = 0; i < count; ++i) {
      std::byte* const to = frames + static_cast<size_t>(i) * layout().stride;
      std::memset(to, 0, layout().stride);
      std::memcpy(to + layout().method,
                  static_cast<const void*>(&real[static_cast<size_t>(i)].method),
                  sizeof(jmethodID));
      std::memcpy(to + layout().bci, &real[static_cast<size_t>(i)].bci, sizeof(jint));
      std::memcpy(to + layout().type, &kCompiled, sizeof kCompiled);
    }
    return count;
  }

 private:
  Walker* real_;
};

// Always said to be cut, and `missing` frames are.
class SaysCut final : public AsAdded {
 public:
  SaysCut(Walker* real, const WalkerTraits& traits, int32_t missing)
      : AsAdded(real, traits), missing_(missing) {
    facts_.stopped = "a frame that cannot be walked";
  }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const int32_t count = AsAdded::walk(target, frames, depth, ucontext);
    return count > missing_ ? count - missing_ : count;
  }
  const WalkFacts* facts() const override { return &facts_; }

 private:
  const int32_t missing_;
  WalkFacts facts_;
};

TEST_F(StepperTest, AWholeTraceIsNotSaidToBeCut) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  SaysCut walker(asgct(), traits_of(WalkerId::asgct2), 0);
  Stepper stepper(session().jvm(), {&walker}, {.most_steps = 2000});
  ASSERT_EQ(step(stepper, ScenarioId::c1), "");
  EXPECT_TRUE(clauses_of(stepper).contains("wrong says-cut-where-whole"))
      << testing::PrintToString(clauses_of(stepper));
}

TEST_F(StepperTest, ACutTraceThatSaysSoIsAFindingWhereItMayNotBeCut) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  WalkerTraits traits = traits_of(WalkerId::asgct2);
  for (const bool may_be_cut : {false, true}) {
    traits.says_when_cut = may_be_cut;
    SaysCut walker(asgct(), traits, 1);
    Stepper stepper(session().jvm(), {&walker}, {.most_steps = 2000});
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    size_t cut = 0;
    for (const auto& [key, found] : stepper.findings()) {
      if (found.finding.clause != "trace-ends-early") continue;
      ++cut;
      EXPECT_EQ(found.promised, !may_be_cut) << found.position;
    }
    EXPECT_GT(cut, 0U);
  }
}

// In the loop of C1.spin it tells where that frame and its caller's are, as asgst-iterator does.
class TellsPlaces final : public AsAdded {
 public:
  enum class Error : uint8_t { none, innermost_sp, caller_pc, caller_sp };

  TellsPlaces(Walker* real, Jvm& jvm, Error error)
      : AsAdded(real, traits_of(WalkerId::asgst_iterator)), jvm_(jvm), error_(error) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const int32_t count = AsAdded::walk(target, frames, depth, ucontext);
    const auto& context = *static_cast<const ucontext_t*>(ucontext);
    const uintptr_t pc = get_register(context, Register::pc);
    uintptr_t sp = get_register(context, Register::sp);
    const CodeEntry* const spin = jvm_.code_map().find(pc);
    if (spin == nullptr || spin->name != "framestorm/C1.spin" || pc < spin->frame_complete ||
        pc >= spin->stubs) {
      return count;
    }
    ++told_;
    // What is inlined stands where it does.
    const auto is_spin = [&](size_t i) {
      return jvm_.methods().find(read_frame(layout(), frames, i).method)->name == spin->name;
    };
    size_t own = 0;
    while (!is_spin(own)) ++own;
    for (size_t i = 0; i <= own; ++i) {
      place(frames, i, pc, sp + (error_ == Error::innermost_sp ? 8 : 0));
    }
    const auto word = [&] { return *reinterpret_cast<const uintptr_t*>(sp); };
    const auto is_return = [&] {
      const CodeEntry* const caller = jvm_.code_map().find(word());
      return caller != nullptr && caller->name == "framestorm/C1.middle";
    };
    while (!is_return()) sp += sizeof(uintptr_t);
    place(frames, own + 1, word() + (error_ == Error::caller_pc ? 1 : 0),
          sp + (error_ == Error::caller_sp ? 24 : 8));
    return count;
  }
  uint64_t told() const { return told_; }

 private:
  void place(std::byte* frames, size_t index, uintptr_t pc, uintptr_t sp) const {
    std::byte* const frame = frames + index * layout().stride;
    std::memcpy(frame + layout().pc, &pc, sizeof pc);
    std::memcpy(frame + layout().sp, &sp, sizeof sp);
  }

  Jvm& jvm_;
  Error error_;
  uint64_t told_ = 0;
};

TEST_F(StepperTest, AFrameIsSaidToBeWhereItIs) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  using Error = TellsPlaces::Error;
  for (const Error error : {Error::none, Error::innermost_sp, Error::caller_pc, Error::caller_sp}) {
    TellsPlaces walker(asgct(), session().jvm(), error);
    Stepper stepper(session().jvm(), {&walker}, kSteps);
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    EXPECT_GT(walker.told(), 1000U);
    EXPECT_EQ(clauses_of(stepper).contains("wrong frame-elsewhere"), error != Error::none)
        << static_cast<int>(error) << ": " << testing::PrintToString(clauses_of(stepper));
  }
}

}  // namespace
}  // namespace framestorm::stepping
