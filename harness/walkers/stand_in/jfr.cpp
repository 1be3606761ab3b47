#include <jfrwalk.h>

#include <array>

#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::stand_in {
namespace {

uint8_t type_of(const Frame& frame) {
  switch (frame.type) {
    case Type::inlined:
      return JFR_WALK_FRAME_INLINE;
    case Type::native:
      return JFR_WALK_FRAME_NATIVE;
    default:
      return frame.tier == 0 ? JFR_WALK_FRAME_INTERPRETER : JFR_WALK_FRAME_JIT;
  }
}

bool initialized = false;

}  // namespace
}  // namespace framestorm::stand_in

extern "C" {

using namespace framestorm::stand_in;

// The first Java frame; one without a frame pointer as if it were compiled.
jint JfrWalk_BuildRequest(void* ucontext, int sampler, JfrWalk_Request* request) {
  Control& control = *framestorm_stand_in();
  control.options = static_cast<uint32_t>(sampler);
  if (control.defect == Defect::refuses) return JFR_WALK_WRONG_STATE;
  if (control.defect == Defect::request_is_biased) return JFR_WALK_BIASED;
  static std::array<Frame, 4096> stack;
  const size_t size = control.stack(ucontext, stack.data(), stack.size());
  for (size_t i = control.request_from; i < size; ++i) {
    if (stack[i].type == Type::cpp) continue;
    const bool interpreted = stack[i].tier == 0 && stack[i].fp != 0;
    const bool native =
        stack[i].type == Type::native || control.defect == Defect::request_says_native;
    *request = {reinterpret_cast<void*>(interpreted ? stack[i].fp : stack[i].sp),
                reinterpret_cast<void*>(stack[i].pc),
                !interpreted ? nullptr
                : native     ? reinterpret_cast<void*>(1)
                             : static_cast<void*>(&stack[i]),
                interpreted && !native ? stack[i].bci : -1};
    if (control.defect == Defect::request_of_no_frame) request->pc = request->sp;
    if (control.defect == Defect::request_has_another_bci) ++request->bci;
    return 1;
  }
  return JFR_WALK_BIASED;
}

void JfrWalk_Initialize() { initialized = true; }

jint JfrWalk_RecordTrace(void* ucontext, int stale, JfrWalk_Frame* frames, jint depth) {
  Control& control = *framestorm_stand_in();
  control.options = static_cast<uint32_t>(stale);
  if (!initialized) return JFR_WALK_NOT_INITIALIZED;
  if (control.defect == Defect::refuses) return JFR_WALK_WRONG_STATE;
  static std::array<Frame, 4096> stack;
  const size_t size = control.stack(ucontext, stack.data(), stack.size());
  jint count = 0;
  for (size_t i = 0; i < size && count < depth; ++i) {
    const Frame& frame = stack[i];
    if (frame.type == Type::cpp) continue;
    const bool native = frame.type == Type::native;
    frames[count++] = {frame.method, native || frame.bci < 0 ? 0 : frame.bci, type_of(frame)};
  }
  if (control.defect == Defect::trace_of_no_frames) return 0;
  return count > 0 || depth <= 0 ? count : JFR_WALK_INVALID_STACK_TRACE;
}

jint JfrWalk_AnswerAtPoll(JNIEnv*, void*, const JfrWalk_Request*, JfrWalk_Frame* frames,
                          jint depth) {
  return JfrWalk_RecordTrace(nullptr, 1, frames, depth);
}
}
