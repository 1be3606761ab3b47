// AsyncGetStackTrace, called from the control thread on halted victims.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "harness/base/poke.h"
#include "harness/executor/jvm_fixture.h"
#include "profile.h"

namespace framestorm::asgst_test {

constexpr uint8_t kEveryKind = 0;

struct Traced {
  ASGST_CallTrace trace;
  std::vector<ASGST_CallFrame> frames;

  size_t count(uint8_t type) const {
    return static_cast<size_t>(std::count_if(
        frames.begin(), frames.end(), [&](const auto& frame) { return frame.type == type; }));
  }
  bool has_tier(int tier) const {
    return std::any_of(frames.begin(), frames.end(), [&](const auto& frame) {
      return frame.type != ASGST_FRAME_CPP && frame.java_frame.comp_level == tier;
    });
  }
  std::vector<jmethodID> methods() const {
    std::vector<jmethodID> ids;
    for (const auto& frame : frames) {
      if (frame.type != ASGST_FRAME_CPP) ids.push_back(frame.java_frame.method_id);
    }
    return ids;
  }
  std::string why() const {
    const auto* text = static_cast<const char*>(trace.frame_info);
    return "result " + std::to_string(trace.num_frames) + " kind " + std::to_string(trace.kind) +
           (text == nullptr ? "" : std::string(": ") + text);
  }
};

class AsgstTest : public jvm_test::JvmTest {
 protected:
  using Function = void (*)(ASGST_CallTrace*, jint, void*, uint32_t);
  using OfThread = void (*)(ASGST_CallTrace*, jint, void*, uint32_t, jlong);
  using Count = jlong (*)();

  template <typename T>
  T function(const char* name) {
    void* const address = session().jvm().symbol(name);
    EXPECT_NE(address, nullptr) << session().jvm().library_path() << " has no " << name
                                << ": test with a JDK that `framestorm jdk build` made";
    return reinterpret_cast<T>(address);
  }
  jlong contained() { return function<Count>("AsyncGetStackTraceContainedFaults")(); }

  // A walk of a halted victim from the control thread.
  Traced walk(ScenarioId scenario, uint32_t options, uint8_t kinds = kEveryKind, jint states = 0,
              jint depth = 512) {
    return walk_context(victim(scenario).slot->context, options, kinds, states, depth);
  }
  Traced walk_context(void* context, uint32_t options, uint8_t kinds = kEveryKind, jint states = 0,
                      jint depth = 512) {
    return traced(kinds, states, depth, [&](ASGST_CallTrace* trace) {
      function<Function>("AsyncGetStackTrace")(trace, depth, context, options);
    });
  }
  Traced walk_thread(jlong tid, void* context, uint32_t options) {
    return traced(kEveryKind, 0, 512, [&](ASGST_CallTrace* trace) {
      function<OfThread>("AsyncGetStackTraceOfThread")(trace, 512, context, options, tid);
    });
  }
  template <typename Walk>
  static Traced traced(uint8_t kinds, jint states, jint depth, Walk walk) {
    Traced result;
    result.frames.resize(static_cast<size_t>(std::max(depth, 0)) + 1);
    std::memset(&result.trace, 0xa5, sizeof(result.trace));
    result.trace.kind = kinds;
    result.trace.state = states;
    result.trace.frames = result.frames.data();
    walk(&result.trace);
    result.frames.resize(static_cast<size_t>(std::max(result.trace.num_frames, 0)));
    return result;
  }

  // Sets a field of the victim's JavaThread for one walk.
  template <typename T>
  Traced walk_with_field(ScenarioId scenario, size_t offset, T value, uint32_t options = 0) {
    const Poke field(static_cast<char*>(victim(scenario).java_thread) + offset, value);
    return walk(scenario, options);
  }
  const ThreadLayout& layout() { return session().jvm().layout(); }
};

}  // namespace framestorm::asgst_test
