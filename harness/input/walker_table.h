// The table of walkers: what each is, what its API promises, what it stops at by design, and what of
// an Input it reads. Everything that differs between walkers is a property here; nothing else asks
// for a walker by its id. A new one: an enumerator, a row, and its adapter (CONTRIBUTING.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "harness/input/walker_errors.h"

namespace framestorm {

enum class Mode : uint8_t { same_thread, separate_thread, count };

// Stable numbers: they are in artifacts. Append only, at most 16.
enum class WalkerId : uint8_t {
  asgct,
  gst,
  plugin,        // the .so given with --walker-plugin
  asgst,         // AsyncGetStackTrace: the victim found by the context's sp
  asgst_env,     // the same, the victim given by its JNIEnv
  asgst_thread,  // the same, the victim given by its OS thread id
  asgct2,
  asgst_iterator,  // ASGST_RunWithIterator
  asgst_frame,     // ASGST_RunWithIteratorFromFrame, with sp, fp and pc of the context
  jfr_request,     // JfrSampleRequestBuilder: what JFR notes of an interrupted thread
  jfr_trace,       // JfrThreadSampling and JfrStackTrace: the trace it makes of that at a poll
  profiler,        // the signal handler of the one given with --profiler
  asgst_queue,     // what ASGST_Enqueue notes, told as at a poll
  asgst_mark,      // iterators that end at a marked frame, and the callers that were kept of it
  asgct2_packed,   // AsyncGetCallTrace2Packed: the same walk as asgct2
  count
};

// What a frame is, whatever number the walker's API has for it.
enum class FrameType : uint8_t {
  none,  // the walker does not say
  java,  // interpreted or compiled
  interpreted,
  compiled,
  inlined,  // into the frame that follows
  native,   // a native method
  cpp,      // C, C++; code that the VM made, where the walker does not tell it from these
  stub,     // code that the VM made
  invalid   // a number that the API does not have
};

// Whether it is a frame of no Java method.
constexpr bool is_machine(FrameType type) {
  return type == FrameType::cpp || type == FrameType::stub;
}

// Where a walker's frames keep what oracles look at: byte offsets in one frame, -1 when absent.
struct FrameLayout {
  size_t stride = 0;
  int method = -1;  // jmethodID
  int bci = -1;     // int32, or uint16 of which 65535 means none
  int pc = -1;      // pointer
  int sp = -1;      // pointer
  int bcp = -1;     // pointer
  int type = -1;    // uint8
  int tier = -1;    // int8
  int name = -1;    // pointer to the text that stands for a method
  size_t bci_size = sizeof(int32_t);
  // Frames of native methods have a pc and no method.
  bool unnamed_natives = false;
  std::array<FrameType, 9> types = {};  // by the number that the API has for it

  // Frames are a union: those of C, C++ and stubs have a pc and nothing else, and so have those of native
  // methods where these are unnamed; all others have none.
  constexpr bool is_union() const { return method >= 0 && method == pc; }
  constexpr bool names(FrameType of) const {
    return !is_machine(of) && !(of == FrameType::native && unnamed_natives);
  }
  bool operator==(const FrameLayout&) const = default;
};

inline constexpr int32_t kNoBci = -1;

// Where a walker comes from.
enum class WalkerOrigin : uint8_t {
  jdk,            // every JDK has it
  added,          // harness/hotspot adds it to the instrumented JDK
  shared_object,  // somebody else's, behind framestorm_walker.h
  agent           // an agent library's or a JVM option's signal handler
};

// How a walker that another thread calls is told whom to walk.
enum class FindsVictim : uint8_t {
  as_caller,  // not at all: it has to be called under the victim's identity (ThreadIdentity::Scoped)
  by_sp,      // the context's
  by_env,     // its JNIEnv; without one it walks the calling thread
  by_tid
};

struct WalkerTraits {
  WalkerId id = WalkerId::count;
  std::string_view name;         // in text, on the command line, in reports
  std::string_view description;  // for `framestorm walkers`
  std::string_view symbol;       // its entry point in libjvm; empty: it needs none
  WalkerOrigin origin = WalkerOrigin::jdk;
  FrameLayout layout;  // as its adapter gives frames

  // --- what of an input it reads; mutators leave the rest at its default
  bool same_thread = true;
  bool separate_thread = true;
  // It needs the victim at a safepoint: called with the world released, on the control thread, and
  // nothing is mutated.
  bool needs_running_vm = false;
  // It gets the context's pc, sp and fp and nothing else. These do not say where Java begins, that
  // a frame is being built or taken down, nor whether pc is a return address.
  bool needs_registers_only = false;
  // It is code that runs at a safepoint poll: walks halted threads in native code and blocked ones,
  // nobody else running, and takes their stack and anchor for sound, which then are not mutated.
  bool at_polls_only = false;
  uint32_t options = 0;  // the bits of CallArgs::options that mean something; 0: it has none
  bool masks = false;    // accepted_kinds, accepted_states
  bool iterator_calls = false;
  bool queue_calls = false;
  // It asks for polls of the threads it walks and has their frames marked, so that they run
  // otherwise than without it: only where it is asked for.
  bool acts_on_threads = false;
  // It is called as the kernel calls a handler: the context is always whole, and there is no depth.
  bool called_as_handler = false;
  FindsVictim finds_victim = FindsVictim::as_caller;

  // --- what its API promises
  bool keeps_its_traces = false;  // and gives none; its own count says that it has walked
  std::span<const WalkerError> errors;
  std::string_view other_errors;  // the name of all that are not listed; empty: undocumented
  std::optional<int32_t>
      contained_error;                // the result of a walk whose fault the VM contained itself
  int32_t lowest_bci = kNoBci;        // of a Java frame
  std::optional<int32_t> native_bci;  // what stands for the bci in frames of native methods
  bool tells_whose_trace = false;     // WalkFacts::env is that of the thread it walked
  bool checks_ids = true;  // looks behind a method's ID before it gives it: it was good then
  bool gives_java_frames = true;
  bool sees_frozen_frames = false;     // of a continuation, in the heap
  bool says_frozen = false;            // of a trace without them, that they are left out
  bool may_see_frozen_frames = false;  // it is not known whether it does
  // A virtual thread's trace is its own: its carrier's frames are not in it.
  bool ends_at_a_continuation = false;
  // It goes on into them, at Continuation.enterSpecial.
  bool walks_carriers = false;

  // --- what it stops at, or guesses, by design
  // Ends where frame::safe_for_sender does not hold, and refuses stubs without a frame size,
  // prologues and VM calls without a last Java pc (vframeStreamForte, forte.cpp).
  bool ends_where_it_distrusts_a_frame = false;
  // Outside Java it refuses a thread whose anchor has no pc (JavaThread::pd_get_top_frame).
  bool needs_pc_of_anchor = false;
  // May end anywhere, and then says so (WalkFacts::stopped).
  bool says_when_cut = false;
  // May end where a continuation begins, whether it says so or not.
  bool stops_at_continuations = false;
  // Has no bytecode pointer of the innermost frame, or takes an old one.
  bool guesses_innermost_bci = false;
  // Looks debug information up by the return address only where that is the anchor's pc
  // (is_decipherable_compiled_frame, forte.cpp).
  bool looks_up_inlining_by_return_address = false;
  // Walks a thread in the VM by way of its C frames when there is no anchor.
  bool walks_without_an_anchor = false;
  // Begins below method handles' intrinsics, which jump on and never poll.
  bool begins_below_intrinsics = false;
  // Says nothing of threads in states of its choice, and may know no frame of the others.
  bool chooses_its_threads = false;

  constexpr bool walks_in(Mode mode) const {
    return mode == Mode::same_thread ? same_thread : separate_thread;
  }
  // Whether it speaks an ABI that tells frames and ends of traces apart.
  constexpr bool is_declared() const {
    return origin == WalkerOrigin::shared_object && layout.type >= 0;
  }
  constexpr bool is_added() const { return origin == WalkerOrigin::added; }
  constexpr bool is_in_libjvm() const { return origin == WalkerOrigin::jdk || is_added(); }
  // Whether it is HotSpot's and walks halted victims: a target may try it on any input, and what
  // another one gives can be held against it.
  constexpr bool is_fuzzed() const { return is_in_libjvm() && !needs_running_vm; }
  constexpr bool gives_traces() const { return layout.method >= 0; }
  // Whether it may walk beside others, in a program that runs on.
  constexpr bool is_comparable() const { return is_fuzzed() && gives_traces() && !at_polls_only; }
  // Whether it does so for the sake of others that walk there.
  constexpr bool is_compared() const { return is_comparable() && !acts_on_threads; }
  constexpr bool borrows_identity() const { return finds_victim == FindsVictim::as_caller; }
  constexpr bool refuses_collections() const {
    return std::ranges::any_of(errors, &WalkerError::collecting);
  }
  constexpr bool refuses_exiting_threads() const {
    return std::ranges::any_of(errors, &WalkerError::exiting);
  }
  // Null for a code that is not listed.
  constexpr const WalkerError* find_error(int32_t code) const {
    const auto found = std::ranges::find(errors, code, &WalkerError::code);
    return found == errors.end() ? nullptr : &*found;
  }
};

// The options of profile.h and profile2.h that an input may set. ASGST_WALK_SAME_THREAD is not one
// of them: the mode says that.
inline constexpr uint32_t kIncludeCFrames = 1;
inline constexpr uint32_t kIncludeNonJavaThreads = 2;
inline constexpr uint32_t kWalkDuringUnsafeStates = 4;
inline constexpr uint32_t kWalkSameThread = 8;
inline constexpr uint32_t kEndAtContinuation = 0x40;
inline constexpr uint32_t kAsgstOptions =
    kIncludeCFrames | kIncludeNonJavaThreads | kWalkDuringUnsafeStates | kEndAtContinuation;

// Options of the harness's own, none of them a bit of those.
inline constexpr uint32_t kJavaSampler = 0x10;  // jfr-request: of jdk.ExecutionSample's sampler
inline constexpr uint32_t kStaleSample = 0x20;  // jfr-trace: the request is the context's registers

namespace walker_table {

inline constexpr FrameLayout kAsgstLayout = {
    .stride = 16,
    .method = 8,
    .bci = 2,
    .pc = 8,
    .type = 0,
    .tier = 1,
    .bci_size = 2,
    .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
              FrameType::cpp, FrameType::native, FrameType::native}};
inline constexpr FrameLayout kIteratorLayout = {
    .stride = 32,
    .method = 0,
    .bci = 24,
    .pc = 8,
    .sp = 16,
    .type = 29,
    .tier = 28,
    .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
              FrameType::cpp, FrameType::native, FrameType::native}};

// AsyncGetStackTrace of profile.h; its variants differ in how they are told whom to walk.
inline constexpr WalkerTraits kAsgst = {
    .id = WalkerId::asgst,
    .name = "asgst",
    .description = "AsyncGetStackTrace (JEP 435), by the context",
    .symbol = "AsyncGetStackTrace",
    .origin = WalkerOrigin::added,
    .layout = kAsgstLayout,
    .options = kAsgstOptions,
    .masks = true,
    .finds_victim = FindsVictim::by_sp,
    .errors = kAsgstErrors,
    .contained_error = -31,
    .native_bci = kNoBci,
    .tells_whose_trace = true,
    .says_frozen = true,
    .walks_carriers = true};
constexpr WalkerTraits asgst_told(WalkerId id, std::string_view name, std::string_view description,
                                  std::string_view symbol, FindsVictim how) {
  WalkerTraits row = kAsgst;
  row.id = id;
  row.name = name;
  row.description = description;
  row.symbol = symbol;
  row.same_thread = false;
  row.finds_victim = how;
  return row;
}

inline constexpr std::array kRows = {
    WalkerTraits{.id = WalkerId::asgct,
                 .name = "asgct",
                 .description = "AsyncGetCallTrace",
                 .symbol = "AsyncGetCallTrace",
                 .layout = {.stride = 16, .method = 8, .bci = 0},
                 .errors = kTicks,
                 .lowest_bci = -3,
                 .native_bci = -3,
                 .checks_ids = false,
                 .ends_where_it_distrusts_a_frame = true,
                 .needs_pc_of_anchor = true,
                 // It takes an interpreted frame's bytecode pointer from where the last call left
                 // it, not from the register.
                 .guesses_innermost_bci = true,
                 .looks_up_inlining_by_return_address = true},
    WalkerTraits{.id = WalkerId::gst,
                 .name = "gst",
                 .description = "JVMTI GetStackTrace, at safepoints only: the reference",
                 .layout = {.stride = 16, .method = 0, .bci = 8},
                 .needs_running_vm = true,
                 .errors = kGstErrors,
                 .sees_frozen_frames = true},
    WalkerTraits{.id = WalkerId::plugin,
                 .name = "plugin",
                 .description = "a .so with framestorm_walker.h's functions (--walker-plugin FILE)",
                 .origin = WalkerOrigin::shared_object,
                 .layout = {.stride = 32, .method = 16, .bci = 24, .pc = 0, .sp = 8},
                 .errors = kPluginErrors,
                 .other_errors = "plugin_error",
                 // It may be AsyncGetCallTrace underneath, and may end where it likes.
                 .checks_ids = false,
                 .ends_where_it_distrusts_a_frame = true,
                 .guesses_innermost_bci = true},
    kAsgst,
    asgst_told(WalkerId::asgst_env, "asgst-env", "the same by JNIEnv, from another thread only",
               "AsyncGetStackTraceOfEnv", FindsVictim::by_env),
    asgst_told(WalkerId::asgst_thread, "asgst-thread",
               "the same by OS thread id, from another thread only", "AsyncGetStackTraceOfThread",
               FindsVictim::by_tid),
    WalkerTraits{.id = WalkerId::asgct2,
                 .name = "asgct2",
                 .description = "AsyncGetCallTrace2",
                 .symbol = "AsyncGetCallTrace2",
                 .origin = WalkerOrigin::added,
                 .layout = {.stride = 24,
                            .method = 16,
                            .bci = 12,
                            .pc = 0,
                            .type = 8,
                            .tier = 9,
                            .types = {FrameType::interpreted, FrameType::compiled,
                                      FrameType::inlined, FrameType::native, FrameType::cpp}},
                 .errors = kTicks,
                 .lowest_bci = -3,
                 .native_bci = -3,
                 .walks_carriers = true,
                 .walks_without_an_anchor = true},
    WalkerTraits{.id = WalkerId::asgst_iterator,
                 .name = "asgst-iterator",
                 .description = "iterators from a context",
                 .symbol = "ASGST_RunWithIterator",
                 .origin = WalkerOrigin::added,
                 .layout = kIteratorLayout,
                 .options = kAsgstOptions,
                 .iterator_calls = true,
                 .errors = kIteratorErrors,
                 .native_bci = kNoBci,
                 .says_frozen = true,
                 .walks_carriers = true},
    WalkerTraits{.id = WalkerId::asgst_frame,
                 .name = "asgst-frame",
                 .description = "iterators from a frame's sp, fp and pc",
                 .symbol = "ASGST_RunWithIteratorFromFrame",
                 .origin = WalkerOrigin::added,
                 .layout = kIteratorLayout,
                 .needs_registers_only = true,
                 .options = kAsgstOptions,
                 .iterator_calls = true,
                 .finds_victim = FindsVictim::by_sp,
                 .errors = kIteratorErrors,
                 .native_bci = kNoBci,
                 .walks_carriers = true,
                 .guesses_innermost_bci = true},
    WalkerTraits{.id = WalkerId::jfr_request,
                 .name = "jfr-request",
                 .description = "what JFR's samplers note of an interrupted thread",
                 .symbol = "JfrWalk_BuildRequest",
                 .origin = WalkerOrigin::added,
                 .layout = {.stride = 32, .bci = 24, .pc = 8, .sp = 0, .bcp = 16},
                 .options = kJavaSampler,
                 .errors = kJfrErrors,
                 .chooses_its_threads = true},
    WalkerTraits{.id = WalkerId::jfr_trace,
                 .name = "jfr-trace",
                 .description = "the trace JFR makes of that, of threads outside Java",
                 .symbol = "JfrWalk_RecordTrace",
                 .origin = WalkerOrigin::added,
                 .layout = {.stride = 16,
                            .method = 0,
                            .bci = 8,
                            .type = 12,
                            .types = {FrameType::interpreted, FrameType::compiled,
                                      FrameType::inlined, FrameType::native}},
                 .at_polls_only = true,
                 .options = kStaleSample,
                 .errors = kJfrErrors,
                 .native_bci = 0,
                 .sees_frozen_frames = true,
                 .ends_at_a_continuation = true,
                 .chooses_its_threads = true},
    WalkerTraits{.id = WalkerId::profiler,
                 .name = "profiler",
                 .description = "a profiler as shipped, by its signal handler (--profiler FILE)",
                 .origin = WalkerOrigin::agent,
                 .layout = {.stride = 8},
                 .separate_thread = false,
                 .called_as_handler = true,
                 .keeps_its_traces = true,
                 .errors = kProfilerErrors},
    WalkerTraits{.id = WalkerId::asgst_queue,
                 .name = "asgst-queue",
                 .description = "what safepoint queues note of an interrupted thread, told there",
                 .symbol = "framestorm_run_with_sample",
                 .origin = WalkerOrigin::added,
                 .layout = kIteratorLayout,
                 .options = kAsgstOptions,
                 .queue_calls = true,
                 .errors = kIteratorErrors,
                 .native_bci = kNoBci,
                 .says_frozen = true,
                 .walks_carriers = true,
                 .begins_below_intrinsics = true},
    WalkerTraits{
        .id = WalkerId::asgst_mark,
        .name = "asgst-mark",
        .description = "iterators down to a marked frame, and what was kept of its callers",
        .symbol = "ASGST_RegisterFrameMark",
        .origin = WalkerOrigin::added,
        .layout = kIteratorLayout,
        .options = kAsgstOptions,
        .acts_on_threads = true,
        .errors = kIteratorErrors,
        .native_bci = kNoBci,
        .walks_carriers = true},
    WalkerTraits{.id = WalkerId::asgct2_packed,
                 .name = "asgct2-packed",
                 .description = "AsyncGetCallTrace2 with frames of 16 bytes",
                 .symbol = "AsyncGetCallTrace2Packed",
                 .origin = WalkerOrigin::added,
                 .layout = {.stride = 16,
                            .method = 8,
                            .bci = 2,
                            .pc = 8,
                            .type = 0,
                            .tier = 1,
                            .bci_size = 2,
                            .unnamed_natives = true,
                            .types = {FrameType::none, FrameType::java, FrameType::inlined,
                                      FrameType::native, FrameType::stub, FrameType::cpp}},
                 .errors = kTicks,
                 .native_bci = kNoBci,
                 .walks_carriers = true,
                 .walks_without_an_anchor = true},
};

constexpr bool is_in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].id) != i) return false;
  }
  return kRows.size() == static_cast<size_t>(WalkerId::count);
}
static_assert(is_in_order(), "traits_of() indexes the table by WalkerId");

template <bool (WalkerTraits::*which)() const>
constexpr auto ids_where() {
  std::array<WalkerId, std::ranges::count_if(kRows, which)> ids = {};
  size_t count = 0;
  for (const WalkerTraits& row : kRows) {
    if ((row.*which)()) ids[count++] = row.id;
  }
  return ids;
}

}  // namespace walker_table

inline constexpr std::span<const WalkerTraits> kWalkers = walker_table::kRows;
inline constexpr auto kAddedWalkers = walker_table::ids_where<&WalkerTraits::is_added>();
inline constexpr auto kFuzzedWalkers = walker_table::ids_where<&WalkerTraits::is_fuzzed>();

// What inputs and command lines mean that name no walker.
inline constexpr WalkerId kDefaultWalker = WalkerId::asgct;
// Whose word is taken of what another walker does not tell: where each frame is, and how it runs.
inline constexpr const WalkerTraits& kWitness =
    *std::ranges::find_if(kWalkers, [](const WalkerTraits& walker) {
      return walker.is_compared() && walker.layout.sp >= 0 && walker.layout.pc >= 0 &&
             walker.layout.tier >= 0 && !walker.needs_registers_only;
    });
// Whose trace is taken for right: HotSpot's own, of a thread that stands still for it.
inline constexpr WalkerId kReferenceWalker = WalkerId::gst;

// id must not be WalkerId::count. Any context.
constexpr const WalkerTraits& traits_of(WalkerId id) {
  return walker_table::kRows[static_cast<size_t>(id)];
}

}  // namespace framestorm
