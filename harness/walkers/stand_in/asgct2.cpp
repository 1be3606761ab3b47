#include <asgct2.h>

#include <array>

#include "harness/walkers/stand_in/stand_in.h"

namespace {

using framestorm::stand_in::Defect;
using framestorm::stand_in::Type;

uint8_t type_of(const framestorm::stand_in::Frame& frame) {
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

}  // namespace

extern "C" [[gnu::visibility("default")]] void AsyncGetCallTrace2(asgct2::CallTrace* trace,
                                                                  jint depth, void* ucontext) {
  static std::array<framestorm::stand_in::Frame, 4096> stack;
  framestorm::stand_in::Control& control = *framestorm_stand_in();
  control.asked_env = trace->env_id;
  trace->frame_info = nullptr;
  if (control.defect == Defect::refuses) {
    trace->num_frames = -5;
    return;
  }
  const size_t size = control.stack(ucontext, stack.data(), stack.size());
  jint count = 0;
  for (size_t i = 0; i < size && count < depth; ++i) {
    const auto& frame = stack[i];
    if (i == 1 && control.defect == Defect::leaves_out_a_frame) continue;
    const bool cpp = frame.type == Type::cpp;
    const bool native = frame.type == Type::native;
    asgct2::CallFrame& to = trace->frames[count++];
    to.machine_pc = cpp || native ? reinterpret_cast<void*>(frame.pc) : nullptr;
    to.type = type_of(frame);
    to.comp_level = static_cast<uint8_t>(cpp ? -1 : frame.tier);
    to.bci = native ? -3 : frame.bci;
    if (i == 2 && control.defect == Defect::gives_another_bci) ++to.bci;
    to.method_id = cpp ? nullptr : frame.method;
    if (cpp && control.defect == Defect::cpp_frame_with_method) {
      to.method_id = reinterpret_cast<jmethodID>(16);
    }
    if (to.type == asgct2::FRAME_INTERPRETED && control.defect == Defect::interpreted_with_tier) {
      to.comp_level = 1;
    }
  }
  trace->num_frames = count;
}
