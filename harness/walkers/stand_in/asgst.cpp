#include <profile.h>

#include <array>

#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::stand_in {
namespace {

constexpr size_t kCapacity = 4096;

jlong contained_faults = 0;

struct Call {
  ASGST_CallTrace* trace;
  jint depth;
  uint32_t options;
  uint8_t kinds;
  jint states;
};

void put(const Frame& frame, Defect defect, ASGST_CallFrame* to) {
  if (frame.type == Type::cpp) {
    to->non_java_frame.type = ASGST_FRAME_CPP;
    to->non_java_frame.pc = frame.stub ? nullptr : reinterpret_cast<void*>(frame.pc);
    return;
  }
  to->java_frame.type = static_cast<uint8_t>(frame.type);
  to->java_frame.comp_level = static_cast<int8_t>(frame.tier);
  to->java_frame.bci = frame.bci < 0 ? 65535 : static_cast<uint16_t>(frame.bci);
  to->java_frame.method_id = frame.method;
  if (defect == Defect::unknown_type) to->java_frame.type = 7;
  if (defect == Defect::tier_out_of_range) to->java_frame.comp_level = 5;
  if (defect == Defect::tier_missing) to->java_frame.comp_level = -1;
  if (defect == Defect::bci_missing) to->java_frame.bci = 65535;
  if (defect == Defect::java_as_native) {
    to->java_frame.type = ASGST_FRAME_JAVA_NATIVE;
    to->java_frame.bci = 65535;
  }
  if (defect == Defect::native_bci_zero && frame.type == Type::native) to->java_frame.bci = 0;
}

void copy(const Call& call, Defect defect, void* context) {
  static std::array<Frame, kCapacity> stack;
  const size_t size = framestorm_stand_in()->stack(context, stack.data(), stack.size());
  bool c_frames = (call.options & ASGST_INCLUDE_C_FRAMES) != 0;
  const bool with_c_frames = c_frames;
  if (defect == Defect::c_frames_unasked) c_frames = true;
  jint count = 0;
  size_t java_frames = 0;
  for (size_t i = 0; i < size && count < call.depth; ++i) {
    const Frame& frame = stack[i];
    if (frame.type == Type::cpp && !c_frames) continue;
    if (frame.type != Type::cpp) ++java_frames;
    if (java_frames == 2 && frame.type != Type::cpp &&
        (defect == Defect::leaves_out_a_frame ||
         (defect == Defect::c_frames_cost_a_java_frame && with_c_frames) ||
         (defect == Defect::unknown_bit_matters && (call.options & 0x100) != 0))) {
      continue;
    }
    put(frame, defect, &call.trace->frames[count++]);
  }
  if (defect == Defect::inlined_into_native && count > 1) {
    call.trace->frames[0].type = ASGST_FRAME_JAVA_INLINED;
    call.trace->frames[1].type = ASGST_FRAME_JAVA_NATIVE;
    call.trace->frames[1].java_frame.bci = 65535;
  }
  if (defect == Defect::ends_with_inlined && count > 0 && count < call.depth) {
    call.trace->frames[count - 1].type = ASGST_FRAME_JAVA_INLINED;
    call.trace->frames[count - 1].java_frame.comp_level = 4;
  }
  call.trace->num_frames = count;
}

void walk(ASGST_CallTrace* trace, jint depth, void* context, uint32_t options) {
  Control& control = *framestorm_stand_in();
  const Defect defect = control.defect;
  const Call call = {trace, depth, options, trace->kind, trace->state};
  control.options = options;
  control.accepted_kinds = trace->kind;
  control.accepted_states = trace->state;
  if (defect == Defect::writes_nothing) return;
  trace->env_id = static_cast<JNIEnv*>(control.env);
  const bool stopped = defect == Defect::says_cut || defect == Defect::no_frame_and_stopped;
  const char* const info = stopped                         ? "the frame cannot be walked"
                           : defect == Defect::says_frozen ? ASGST_FRAMES_FROZEN
                                                           : nullptr;
  trace->frame_info = const_cast<char*>(info);
  trace->kind = static_cast<uint8_t>(control.kind);
  trace->state = control.state;
  switch (defect) {
    case Defect::two_kinds:
      trace->kind |= ASGST_GC_TRACE;
      break;
    case Defect::env_of_nobody:
      trace->env_id = nullptr;
      break;
    case Defect::state_with_parked:
      trace->state |= 0x200;
      break;
    case Defect::state_not_alive:
      trace->state = 4;
      break;
    case Defect::loses_the_thread:
      trace->num_frames = ASGST_NO_THREAD;
      return;
    case Defect::refuses:
      trace->num_frames = ASGST_UNKNOWN_JAVA;
      return;
    case Defect::says_collecting:
      trace->num_frames = ASGST_GC_ACTIVE;
      return;
    case Defect::needs_the_context:
      if (context != nullptr) break;
      trace->num_frames = ASGST_UNKNOWN_JAVA;
      return;
    case Defect::not_walkable_without_reason:
      trace->num_frames = ASGST_NOT_WALKABLE_JAVA;
      return;
    case Defect::no_frame_and_stopped:
      trace->num_frames = ASGST_NO_JAVA_FRAME;
      return;
    case Defect::contains_a_fault:
      ++contained_faults;
      trace->num_frames = ASGST_CONTAINED_FAULT;
      return;
    case Defect::contains_and_does_not_tell:
      ++contained_faults;
      break;
    default:
      break;
  }
  bool kind_wanted = call.kinds == 0 || (call.kinds & trace->kind) != 0;
  if (defect == Defect::kind_not_accepted) kind_wanted = true;
  if (defect == Defect::wrong_kind_without_cause) kind_wanted = false;
  bool state_wanted = call.states == 0 || (call.states & trace->state) != 0;
  if (defect == Defect::state_not_accepted) state_wanted = true;
  if (defect == Defect::wrong_state_without_cause) state_wanted = false;
  if (!kind_wanted) {
    trace->num_frames = ASGST_WRONG_KIND;
  } else if (!state_wanted) {
    trace->num_frames = ASGST_WRONG_STATE;
  } else {
    copy(call, defect, context);
  }
}

}  // namespace
}  // namespace framestorm::stand_in

extern "C" {

void AsyncGetStackTrace(ASGST_CallTrace* trace, jint depth, void* ucontext, uint32_t options) {
  framestorm::stand_in::walk(trace, depth, ucontext, options);
}

void AsyncGetStackTraceOfEnv(ASGST_CallTrace* trace, jint depth, void* ucontext, uint32_t options) {
  framestorm_stand_in()->asked_env = trace->env_id;
  framestorm::stand_in::walk(trace, depth, ucontext, options);
}

void AsyncGetStackTraceOfThread(ASGST_CallTrace* trace, jint depth, void* ucontext,
                                uint32_t options, jlong os_thread_id) {
  framestorm_stand_in()->os_thread_id = os_thread_id;
  framestorm::stand_in::walk(trace, depth, ucontext, options);
}

jlong AsyncGetStackTraceContainedFaults() { return framestorm::stand_in::contained_faults; }
}
