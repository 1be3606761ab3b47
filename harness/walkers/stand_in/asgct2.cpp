#include <asgct2.h>

#include <array>

#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::stand_in {
namespace {

namespace packed = asgct2::packed;

uint8_t type_of(const Frame& frame) {
  switch (frame.type) {
    case Type::inlined:
      return asgct2::FRAME_INLINE;
    case Type::native:
      return asgct2::FRAME_NATIVE;
    case Type::cpp:
      return asgct2::FRAME_CPP;
    default:
      return frame.tier == 0 ? asgct2::FRAME_INTERPRETED : asgct2::FRAME_JIT;
  }
}

void put(const Frame& frame, Defect defect, asgct2::CallFrame* to) {
  const bool cpp = frame.type == Type::cpp;
  const bool native = frame.type == Type::native;
  to->machine_pc = cpp || native ? reinterpret_cast<void*>(frame.pc) : nullptr;
  to->type = type_of(frame);
  to->comp_level = static_cast<uint8_t>(cpp ? -1 : frame.tier);
  to->bci = native ? -3 : frame.bci;
  to->method_id = cpp ? nullptr : frame.method;
  if (native && defect == Defect::native_without_pc) to->machine_pc = nullptr;
  if (cpp && defect == Defect::cpp_frame_with_method) {
    to->method_id = reinterpret_cast<jmethodID>(16);
  }
  if (to->type == asgct2::FRAME_INTERPRETED && defect == Defect::interpreted_with_tier) {
    to->comp_level = 1;
  }
  if (to->type == asgct2::FRAME_INLINE && defect == Defect::inlined_as_compiled) {
    to->type = asgct2::FRAME_JIT;
  }
}

void put(const Frame& frame, Defect defect, packed::CallFrame* to) {
  if (frame.type == Type::java || frame.type == Type::inlined) {
    const bool inlined = frame.type == Type::inlined;
    to->java_frame.type = inlined ? packed::FRAME_JAVA_INLINED : packed::FRAME_JAVA;
    to->java_frame.comp_level = static_cast<uint8_t>(frame.tier);
    to->java_frame.bci = frame.bci < 0 ? 65535 : static_cast<uint16_t>(frame.bci);
    to->java_frame.method_id = frame.method;
    if (defect != Defect::java_as_native) return;
  }
  const bool native = frame.type != Type::cpp;
  const bool stub = frame.stub || defect == Defect::cpp_as_stub;
  to->non_java_frame.type = native ? packed::FRAME_NATIVE
                            : stub ? packed::FRAME_STUB
                                   : packed::FRAME_CPP;
  const bool elsewhere = native && defect == Defect::native_elsewhere;
  to->non_java_frame.machine_pc = reinterpret_cast<void*>(frame.pc + (elsewhere ? 1 : 0));
}

template <typename CallTrace>
void walk(CallTrace* trace, jint depth, void* ucontext) {
  static std::array<Frame, 4096> stack;
  Control& control = *framestorm_stand_in();
  control.asked_env = trace->env_id;
  if (control.defect == Defect::writes_nothing) return;
  trace->frame_info = nullptr;
  if (trace->env_id == nullptr && control.defect != Defect::walks_without_an_env) {
    trace->num_frames = -8;
    return;
  }
  const bool refuses_this = control.defect == Defect::refuses_more_than_one_frame && depth > 1;
  if (control.defect == Defect::refuses || refuses_this) {
    trace->num_frames = refuses_this ? -6 : -5;
    return;
  }
  const size_t size = control.stack(ucontext, stack.data(), stack.size());
  jint count = 0;
  size_t java_frames = 0;
  for (size_t i = 0; i < size && count < depth; ++i) {
    Frame frame = stack[i];
    if (frame.type != Type::cpp) {
      ++java_frames;
      if (java_frames == 1 && control.defect == Defect::leaves_out_a_frame) continue;
      if (java_frames == 2 && control.defect == Defect::gives_another_bci) ++frame.bci;
    }
    put(frame, control.defect, &trace->frames[count++]);
  }
  trace->num_frames = count;
}

}  // namespace
}  // namespace framestorm::stand_in

extern "C" {

[[gnu::visibility("default")]] void AsyncGetCallTrace2(asgct2::CallTrace* trace, jint depth,
                                                       void* ucontext) {
  framestorm::stand_in::walk(trace, depth, ucontext);
}

[[gnu::visibility("default")]] void AsyncGetCallTrace2Packed(asgct2::packed::CallTrace* trace,
                                                             jint depth, void* ucontext) {
  framestorm::stand_in::walk(trace, depth, ucontext);
}
}
