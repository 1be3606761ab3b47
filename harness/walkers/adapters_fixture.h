// The adapters of the instrumented JDK's walkers on stand-ins, which walk a stack that is made up.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "harness/input/walker_table.h"
#include "harness/walkers/stand_in/stand_in.h"
#include "harness/walkers/walker.h"

namespace framestorm::adapters_test {

using stand_in::Control;
using stand_in::Defect;
using StandInFrame = stand_in::Frame;
using stand_in::Type;

inline jmethodID method(uintptr_t number) { return reinterpret_cast<jmethodID>(number * 16); }

// C code, a native method, Java with two calls inlined, and the call stub at the bottom.
inline const std::array kStack = {
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x10, 0x1000, 0x1008},
    StandInFrame{method(1), -1, 0, Type::native, 0x20, 0x1010, 0x1018},
    StandInFrame{method(2), 7, 4, Type::inlined, 0x30, 0x1020, 0x1028},
    StandInFrame{method(3), 8, 4, Type::inlined, 0x30, 0x1020, 0x1028},
    StandInFrame{method(4), 9, 4, Type::java, 0x30, 0x1020, 0x1028},
    StandInFrame{method(5), 65534, 0, Type::java, 0x50, 0x1050, 0x1058},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x60, 0x1060, 0x1068},
};
inline constexpr size_t kCapacity = 16;

class AdaptersTest : public testing::Test {
 protected:
  AdaptersTest()
      : library_(dlopen(FRAMESTORM_STAND_IN, RTLD_NOW | RTLD_LOCAL)),
        exports_("stand-in", [this](const char* name) { return dlsym(library_, name); }),
        control_(reinterpret_cast<Control* (*)()>(dlsym(library_, "framestorm_stand_in"))()) {
    *control_ = {};
    control_->stack = [](void*, StandInFrame* out, size_t room) {
      std::copy_n(kStack.begin(), std::min(room, kStack.size()), out);
      return kStack.size();
    };
    target_.jni_env = this;
    target_.same_thread = true;
  }

  std::vector<Frame> walk(Walker& walker, int32_t depth = kCapacity) {
    alignas(16) std::array<std::byte, kCapacity * 64> memory;
    result_ = walker.walk(target_, memory.data(), depth, &context_);
    std::vector<Frame> frames;
    frames.reserve(static_cast<size_t>(std::max(result_, 0)));
    for (int32_t i = 0; i < result_; ++i) {
      frames.push_back(read_frame(walker.layout(), memory.data(), static_cast<size_t>(i)));
    }
    return frames;
  }

  void* library_;
  Exports exports_;
  Control* control_;
  WalkTarget target_;
  ucontext_t context_ = {};
  int32_t result_ = 0;
};

}  // namespace framestorm::adapters_test
