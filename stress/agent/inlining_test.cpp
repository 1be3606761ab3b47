#include "stress/agent/inlining.h"

#include <gtest/gtest.h>
#include <jvmti.h>
#include <jvmticmlr.h>

#include <cstdint>

namespace framestorm::stress {
namespace {

using Frames = std::vector<DebugInfo::JavaFrame>;

DebugInfo::JavaFrame frame(uintptr_t method, int32_t bci) {
  return {reinterpret_cast<jmethodID>(method), bci};
}

// Methods are their own numbers.
std::vector<TraceFrame> trace_of(std::span<const DebugInfo::JavaFrame> frames) {
  std::vector<TraceFrame> trace;
  for (const DebugInfo::JavaFrame& one : frames) {
    trace.push_back({static_cast<int32_t>(reinterpret_cast<uintptr_t>(one.method)), trace.size(),
                     false, trace.empty()});
  }
  return trace;
}

// Code of method 1, which has 2 inlined at one call and 3 at another, and 4 in that.
DebugInfo code() {
  static jmethodID methods[] = {frame(2, 0).method, frame(1, 0).method, frame(4, 0).method,
                                frame(3, 0).method, frame(1, 0).method};
  static jint bcis[] = {10, 20, 40, 30, 25};
  static PCStackInfo places[] = {{reinterpret_cast<void*>(0x100), 2, methods, bcis},
                                 {reinterpret_cast<void*>(0x200), 3, methods + 2, bcis + 2}};
  static jvmtiCompiledMethodLoadInlineRecord record = {
      {JVMTI_CMLR_INLINE_INFO, JVMTI_CMLR_MAJOR_VERSION_1, JVMTI_CMLR_MINOR_VERSION_0, nullptr},
      2,
      places};
  return {frame(1, 0).method, &record};
}

bool is_other(const Frames& frames, const std::vector<int32_t>& shadow) {
  return has_other_inlining(frames, code(), trace_of,
                            {shadow, static_cast<uint32_t>(shadow.size())});
}

TEST(Inlining, ATraceOfAnotherPlaceOfTheCodeIsToldApart) {
  EXPECT_TRUE(is_other({frame(2, 10), frame(1, 20), frame(9, 7)}, {4, 3, 1, 9}));
  EXPECT_TRUE(is_other({frame(4, 40), frame(3, 30), frame(1, 25), frame(9, 7)}, {2, 1, 9}));
}

TEST(Inlining, CallersHaveToBeTheThreadsOwn) {
  EXPECT_FALSE(is_other({frame(2, 10), frame(1, 20), frame(9, 7)}, {4, 3, 1, 8}));
  EXPECT_FALSE(is_other({frame(2, 10), frame(1, 20)}, {4, 3, 1, 9}));
}

TEST(Inlining, TheCodeHasToHaveWhatTheThreadRan) {
  EXPECT_FALSE(is_other({frame(2, 10), frame(1, 20), frame(9, 7)}, {5, 1, 9}));
  EXPECT_FALSE(is_other({frame(2, 10), frame(1, 20), frame(9, 7)}, {4, 4, 3, 1, 9}));
}

TEST(Inlining, AWalkerThatMakesUpItsFramesIsNotExcused) {
  EXPECT_FALSE(is_other({frame(2, 11), frame(1, 20), frame(9, 7)}, {4, 3, 1, 9}));
  EXPECT_FALSE(is_other({frame(2, 10), frame(3, 30), frame(1, 25), frame(9, 7)}, {4, 3, 1, 9}));
}

}  // namespace
}  // namespace framestorm::stress
