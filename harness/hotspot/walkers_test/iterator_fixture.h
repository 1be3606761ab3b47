// The iterators of profile2.h, on one halted victim.
#pragma once

#include <algorithm>
#include <csetjmp>
#include <functional>
#include <string>
#include <vector>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"
#include "profile2.h"

namespace framestorm::iterator_test {

inline bool same(const ASGST_Frame& a, const ASGST_Frame& b) {
  return a.type == b.type && a.comp_level == b.comp_level && a.bci == b.bci &&
         a.method == b.method && a.pc == b.pc && a.sp == b.sp && a.fp == b.fp;
}

inline bool same_place(const ASGST_Frame& a, const ASGST_Frame& b) {
  return a.method == b.method && a.bci == b.bci;
}

inline bool same(const std::vector<ASGST_Frame>& a, const std::vector<ASGST_Frame>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

class IteratorTest : public jvm_test::JvmTest {
 protected:
  using Handler = std::function<void(ASGST_Iterator*)>;

  // `first`: before the halt.
  void begin(ScenarioId scenario, const std::vector<std::string>& jvm_args = {},
             const std::function<void()>& first = {}) {
    start({scenario}, {}, jvm_args);
    ASSERT_FALSE(HasFatalFailure());
    if (first) first();
    ASSERT_FALSE(HasFatalFailure());
    find(&run_, "ASGST_RunWithIterator");
    find(&run_from_frame_, "ASGST_RunWithIteratorFromFrame");
    find(&next_, "ASGST_NextFrame");
    find(&rewind_, "ASGST_RewindIterator");
    find(&state_, "ASGST_State");
    find(&thread_state_, "ASGST_ThreadState");
    find(&capabilities_, "ASGST_Capabilities");
    ASSERT_FALSE(HasFatalFailure());
    scenario_ = scenario;
    halt_in_java(scenario);
  }

  // As the victim, from its context.
  int run(const Handler& handler, int options = 0) {
    return run_context(victim(scenario_).slot->context, handler, options);
  }
  int run_context(void* context, const Handler& handler, int options = 0) {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(scenario_).java_thread);
    return run_(context, options, &call, const_cast<Handler*>(&handler));
  }
  int run_from(const ASGST_Frame& frame, const Handler& handler, int options = 0) {
    return run_from_frame_(frame.sp, frame.fp, frame.pc, options, &call,
                           const_cast<Handler*>(&handler));
  }
  std::vector<ASGST_Frame> rest(ASGST_Iterator* iterator) {
    std::vector<ASGST_Frame> frames;
    ASGST_Frame frame;
    while (next_(iterator, &frame) == 1) frames.push_back(frame);
    return frames;
  }
  static ASGST_Frame registers_of(const ucontext_t& context) {
    const auto pointer = [&](Register reg) {
      return reinterpret_cast<void*>(get_register(context, reg));
    };
    return {.pc = pointer(Register::pc), .sp = pointer(Register::sp), .fp = pointer(Register::fp)};
  }
  std::vector<ASGST_Frame> all(int options = 0) {
    std::vector<ASGST_Frame> frames;
    EXPECT_EQ(run([&](ASGST_Iterator* it) { frames = rest(it); }, options), ASGST_JAVA_TRACE);
    return frames;
  }

  // Of a halt at which the thread has not noted where its Java frames begin.
  std::vector<ASGST_Frame> compiled_callers() {
    constexpr int kTries = 200;  // on a busy machine few are
    for (int i = 0; i < kTries && !HasFatalFailure(); ++i) {
      halt_in_java(scenario_);
      if (read_at<uintptr_t>(victim(scenario_).java_thread,
                             session().jvm().layout().last_java_sp) != 0) {
        continue;
      }
      std::vector<ASGST_Frame> frames;
      run([&](ASGST_Iterator* it) { frames = rest(it); });
      const auto caller = std::ranges::find_if(frames, [&](const ASGST_Frame& frame) {
        return frame.sp != frames.front().sp && frame.comp_level > 0;
      });
      frames.erase(frames.begin(), caller);
      if (frames.size() > 2) return frames;
    }
    return {};
  }

  void leave_by_longjmp(int times) {
    // Around all of it: nothing that a longjmp passes may have a destructor.
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(scenario_).java_thread);
    const auto leave = [](ASGST_Iterator*, void* out) {
      std::longjmp(*static_cast<jmp_buf*>(out), 1);
    };
    for (volatile int i = 0; i < times; i = i + 1) {
      jmp_buf out;
      if (setjmp(out) == 0) run_(victim(scenario_).slot->context, 0, leave, &out);
    }
  }

  std::string method_of(const ASGST_Frame& frame) {
    const auto id = reinterpret_cast<decltype(&ASGST_MethodToJMethodID)>(
        session().jvm().symbol("ASGST_MethodToJMethodID"));
    const MethodInfo* const info = session().jvm().methods().find(id(frame.method));
    return info == nullptr ? "?" : info->name;
  }

  ScenarioId scenario_ = ScenarioId::count;
  decltype(&ASGST_RunWithIterator) run_ = nullptr;
  decltype(&ASGST_RunWithIteratorFromFrame) run_from_frame_ = nullptr;
  decltype(&ASGST_NextFrame) next_ = nullptr;
  decltype(&ASGST_RewindIterator) rewind_ = nullptr;
  decltype(&ASGST_State) state_ = nullptr;
  decltype(&ASGST_ThreadState) thread_state_ = nullptr;
  decltype(&ASGST_Capabilities) capabilities_ = nullptr;

 private:
  template <typename T>
  void find(T* function, const char* name) {
    *function = reinterpret_cast<T>(session().jvm().symbol(name));
    ASSERT_NE(*function, nullptr) << session().jvm().library_path() << " has no " << name
                                  << ": test with a JDK that `framestorm jdk build` made";
  }
  static void call(ASGST_Iterator* iterator, void* handler) {
    (*static_cast<const Handler*>(handler))(iterator);
  }
};

}  // namespace framestorm::iterator_test
