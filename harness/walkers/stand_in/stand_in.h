// Stands for a libjvm with the walkers of profile.h, profile2.h, asgct2.h and jfrwalk.h: right ones, and wrong
// ones. The stack that they walk is made up by the test.
#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>

namespace framestorm::stand_in {

enum class Type : uint8_t { java = 1, inlined = 2, native = 3, cpp = 4 };

struct Frame {
  jmethodID method = nullptr;
  int32_t bci = -1;
  int32_t tier = 0;
  Type type = Type::java;
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  uintptr_t fp = 0;
  bool stub = false;  // cpp, and of code that the VM made
};

// What is wrong, one thing at a time.
enum class Defect : uint8_t {
  none,
  // AsyncGetStackTrace
  unknown_type,
  tier_out_of_range,
  tier_missing,
  bci_missing,
  native_bci_zero,
  ends_with_inlined,
  inlined_into_native,
  two_kinds,
  kind_not_accepted,
  wrong_kind_without_cause,
  state_not_accepted,
  wrong_state_without_cause,
  state_with_parked,
  state_not_alive,
  env_of_nobody,
  loses_the_thread,
  unknown_bit_matters,
  c_frames_cost_a_java_frame,
  c_frames_unasked,
  contains_a_fault,
  contains_and_does_not_tell,
  needs_the_context,
  // AsyncGetStackTrace and AsyncGetCallTrace2
  writes_nothing,
  leaves_out_a_frame,
  gives_another_bci,  // of the second Java frame; AsyncGetCallTrace2 and ...Packed only
  refuses,
  not_walkable_without_reason,
  no_frame_and_stopped,
  // AsyncGetCallTrace2
  cpp_frame_with_method,
  interpreted_with_tier,
  inlined_as_compiled,
  refuses_more_than_one_frame,
  walks_without_an_env,
  // AsyncGetCallTrace2Packed
  cpp_as_stub,
  java_as_native,  // AsyncGetStackTrace, too
  native_elsewhere,
  says_collecting,
  // iterators
  accepts_closed_iterators,
  accepts_left_iterators,
  accepts_null_iterators,
  accepts_null_frames,
  leaves_frames_of_errors,
  goes_on_into_java,
  gives_another_java_frame,
  gives_a_java_frame_at_the_end,
  accepts_null_handlers,
  rewinds_to_the_second,
  state_takes_a_frame,
  nested_share_their_position,
  calls_handlers_twice,
  calls_no_handler,
  ends_otherwise_later,
  from_frame_skips_it,
  thread_state_changes,
  frames_change,
  nested_give_another_kind,
  says_cut,
  says_frozen,
  native_without_pc,
  sp_of_inlined_differs,
  // safepoint queues
  queue_tells_the_last_first,
  queue_passes_one_over,
  queue_loses_one_by_resizing,
  queue_shrinks_over_elements,
  queue_takes_one_too_many,
  queue_keeps_attempts,
  queue_counts_back_from_the_second,
  queue_tells_what_handlers_enqueue,
  queue_calls_start_twice,
  queue_ends_after_its_end,
  queue_polls_in_handlers,
  queue_drops_at_the_end,
  queue_keeps_memory,
  queue_given_again,
  queue_element_of_an_error,
  queue_goes_on_after_the_end,
  // frame marks
  mark_outlives_its_frame,
  mark_of_nobody,
  mark_not_told,
  mark_tells_the_oldest_first,
  mark_tells_twice,
  mark_of_the_topmost_frame,
  mark_of_what_is_left,
  mark_kept_when_told,
  mark_goes_on_after_its_end,
  mark_tells_from_its_frame_on,
  mark_walks_go_on,
  mark_walks_end_at_the_oldest,
  mark_polls_at_the_oldest,
  // JFR
  request_of_no_frame,
  request_says_native,
  request_has_another_bci,
  request_is_biased,
  trace_of_no_frames
};

struct Control {
  Defect defect = Defect::none;
  // Fills `out` with the stack, callee first, C frames among them; returns how many frames.
  size_t (*stack)(void* context, Frame* out, size_t room) = nullptr;
  int32_t kind = 1;
  int32_t state = 5;
  void* env = nullptr;
  int end = 0;                 // what iterators return after the last frame
  bool leaves_frames = false;  // marked frames have been left
  bool in_sample = false;      // the stack is for framestorm_run_with_sample
  size_t request_from = 0;     // how many frames requests leave out

  // What the last call was given.
  uint32_t options = 0;
  uint8_t accepted_kinds = 0;
  int32_t accepted_states = 0;
  int64_t os_thread_id = 0;
  const void* asked_env = nullptr;
};

// For the library's own files: where the newest mark is, 0 when there is none; whether the thread of a
// sequence is ending.
uintptr_t marked_sp();
bool is_exiting();
// A sequence's marks, from its beginning to its end; its thread ends.
void begin_marks();
void exit_with_marks();
void end_marks();

}  // namespace framestorm::stand_in

extern "C" framestorm::stand_in::Control* framestorm_stand_in();
