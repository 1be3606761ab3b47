// The error codes that walkers document, for the table of walkers (walker_table.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace framestorm {

// HotSpot's states of a victim in which an error may be returned (harness/input/thread_state.h).
enum class ErrorState : uint8_t { any, in_java, outside_java, illegal };

struct WalkerError {
  std::string_view name;  // short: "unknown_Java"; a string literal
  int32_t code = 0;       // 0 or negative
  ErrorState state = ErrorState::any;
  bool not_safe = false;    // the VM does what a walk must not meet; documented
  bool collecting = false;  // what is answered while a collection has stopped the world
  bool exiting = false;     // what is answered of a thread that is exiting

  constexpr bool says_not_walkable() const { return name.starts_with("not_walkable"); }
  constexpr bool says_unknown_in_java() const { return name == "unknown_Java"; }
};

namespace walker_table {

// ticks_* in forte.cpp, which has no header: those of AsyncGetCallTrace and AsyncGetCallTrace2. They
// are 0 to -10 and no others; a positive result is a count of frames.
inline constexpr WalkerError kTicks[] = {
    {"no_Java_frame", 0},
    {"no_class_load", -1},
    {"GC_active", -2, ErrorState::any, true, true},
    {"unknown_not_Java", -3, ErrorState::outside_java},
    {"not_walkable_not_Java", -4, ErrorState::outside_java},
    {"unknown_Java", -5, ErrorState::in_java},
    {"not_walkable_Java", -6, ErrorState::in_java},
    {"unknown_state", -7, ErrorState::illegal},
    {.name = "thread_exit", .code = -8, .exiting = true},
    {"deopt", -9, ErrorState::any, true},
    {"safepoint", -10, ErrorState::any, true},
};
// ASGST_Error of profile.h.
inline constexpr WalkerError kAsgstErrors[] = {
    {"no_Java_frame", 0},
    {"no_class_load", -1},
    {"GC_active", -2, ErrorState::any, true, true},
    {"unknown_not_Java", -3, ErrorState::outside_java},
    {"unknown_Java", -5, ErrorState::in_java},
    {"not_walkable_Java", -6, ErrorState::in_java},
    {"unknown_state", -7, ErrorState::illegal},
    {.name = "thread_exit", .code = -8, .exiting = true},
    {"deopt", -9, ErrorState::any, true},
    {"thread_not_Java", -10},
    {"no_thread", -11},
    {"unsafe_state", -12, ErrorState::any, true},
    {"wrong_state", -13},
    {"wrong_kind", -14},
    {"contained_fault", -31},
    {"faults_blocked", -32},
};
// Those of profile2.h that a walk may end with. ASGST_ENQUEUE_... are of queues; an invalid iterator
// or argument is the harness's doing, or the VM's mistake.
inline constexpr WalkerError kIteratorErrors[] = {
    {"no_frame", 0},
    {"no_thread", -1},
    {.name = "thread_exit", .code = -2, .exiting = true},
    {"unsafe_state", -3, ErrorState::any, true, true},
    {"no_top_Java_frame", -4},
    {"bad_stack", -17},
    {"bad_pc", -18},
    {"bad_frame", -19},
    {"no_unwind_info", -20},
    {"too_deep", -21},
    {"contained_fault", -23},
    {"sample_left", -25},
    {"faults_blocked", -26},
    {"frames_frozen", -27},
};
// JfrWalk_Result of jfrwalk.h.
inline constexpr WalkerError kJfrErrors[] = {
    {"biased", 0},
    {"no_thread", -1},
    {"no_context", -2},
    {"wrong_thread_state", -3},
    {"no_last_Java_frame", -4},
    {"invalid_stack_trace", -5},
    {"not_initialized", -6},
};
// Negated JVMTI errors.
inline constexpr WalkerError kGstErrors[] = {{"thread_not_alive", -15}, {"invalid_thread", -10}};
inline constexpr WalkerError kPluginErrors[] = {{"no_frame", 0}};
// sampler::Answer, of those that walk from a thread of their own.
inline constexpr WalkerError kProfilerErrors[] = {
    {"handler_returned", 0}, {"passed_over", -1}, {"late", -2}};

}  // namespace walker_table
}  // namespace framestorm
