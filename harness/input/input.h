// The decoded form of one fuzz input. Every driver (fuzz targets, replay, tests, bench) hands one
// of these to the executor; nothing else describes a walk.
//
//   bytes ──decode───┐             ┌──encode───> bytes    every byte string decodes: binary.h
//                    ├──> Input ───┼──executor─> walk
//   text ───parse────┘             └──to_text──> text     text -> Input -> text: identity, text.h
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/input/scenario_table.h"
#include "harness/input/walker_table.h"

namespace framestorm {

inline constexpr uint8_t kInputVersion = 1;
inline constexpr size_t kMaxMutations = 16;
inline constexpr size_t kMaxIteratorCalls = 32;
inline constexpr size_t kMaxQueueCalls = kMaxIteratorCalls;
inline constexpr size_t kMaxSymbolName = 96;  // bytes of a blob name in an artifact

// What a location is set to, said so that it means the same in another process, under ASLR and in
// another JDK build. `delta` is in bytes and is added to whatever the kind yields.
enum class ValueKind : uint8_t {
  real,     // the location's own unmutated value
  real_sp,  // the victim's unmutated sp / fp / pc
  real_fp,
  real_pc,
  stack_base,  // highest address of the victim's stack (its first frame is below it)
  stack_end,   // lowest usable address of the victim's stack
  guard_page,  // an unreadable page of the harness
  other_sp,    // sp / pc of another halted victim; `index` picks it, modulo how many there are
  other_pc,
  slot,       // the 8 bytes on the victim's stack at real sp + 8 * index (unmutated)
  code,       // in the code cache: `code` says where
  libc_text,  // start of libc's / libjvm's executable segment
  libjvm_text,
  java_heap,   // lowest mapped address of the Java heap
  unmapped,    // an address that nothing maps
  misaligned,  // the location's own value with the low three bits set to 1 + (delta & 3)
  raw,         // `raw` itself
  count
};

// A place in the code cache, or in libjvm, by name.
enum class CodeKind : uint8_t { nmethod, stub, codelet, function, count };
enum class CodeAnchor : uint8_t { entry, verified_entry, deopt_handler, end, count };

struct CodeRef {
  CodeKind kind = CodeKind::stub;
  uint8_t tier = 0;  // nmethod only: 1..4, 0 for any
  CodeAnchor anchor = CodeAnchor::entry;
  // nmethod: "framestorm/C1.spin"; stub and codelet: the name HotSpot gives it ("call_stub");
  // function: libjvm's symbol, mangled as in the file ("_ZN11OptoRuntime9rethrow_CE...").
  // At most kMaxSymbolName bytes, printable ASCII without double quotes and backslashes.
  std::string name;
  bool operator==(const CodeRef&) const = default;
};

struct SymbolicValue {
  ValueKind kind = ValueKind::real;
  int32_t delta = 0;   // bytes; unused by raw
  uint16_t index = 0;  // other_*, slot
  uint64_t raw = 0;    // raw
  CodeRef code;        // code
  bool operator==(const SymbolicValue&) const = default;
};

// General registers in the order of the architecture's context interface, see
// victim/context.h; pc, sp and fp are named so that an artifact can be read on any architecture.
enum class Register : uint8_t {
  pc,
  sp,
  fp,
  r0,  // names: names_<architecture>.cpp
  r1,
  r2,
  r3,
  r4,
  r5,
  r6,
  r7,
  r8,
  r9,
  r10,
  r11,
  r12,
  r13,
  flags,
  count
};

// Fields of the victim's JavaThread.
enum class ThreadField : uint8_t { state, last_java_sp, last_java_pc, last_java_fp, count };

// Where a stack word is addressed from. The word is at base + 8 * offset.
enum class StackAnchor : uint8_t {
  sp,
  fp,
  stack_base,
  last_java_sp,
  saved_anchor,  // what the innermost call of C++ into Java keeps of its thread's anchor: sp, pc, fp
  count
};

enum class MutationKind : uint8_t { set_register, set_stack_word, set_thread_field, count };

struct Mutation {
  MutationKind kind = MutationKind::set_register;
  Register reg = Register::pc;             // set_register
  StackAnchor anchor = StackAnchor::sp;    // set_stack_word
  int16_t offset = 0;                      // set_stack_word, in words
  ThreadField field = ThreadField::state;  // set_thread_field
  SymbolicValue value;
  bool operator==(const Mutation&) const = default;
};

// Depth passed to the walker, relative to the victim's unmutated trace where it says `exact`.
enum class DepthKind : uint8_t {
  normal,
  zero,
  one,
  exact,
  exact_minus_1,
  exact_plus_1,
  huge,
  raw,
  count
};
enum class ContextArg : uint8_t { victim, null, misaligned, count };
enum class EnvArg : uint8_t { victim, null, other_victim, count };

struct CallArgs {
  DepthKind depth = DepthKind::normal;
  int32_t raw_depth = 0;  // DepthKind::raw
  ContextArg context = ContextArg::victim;
  EnvArg env = EnvArg::victim;
  // For walkers that have them (walker_table.h). The masks are AsyncGetStackTrace's: 0 accepts
  // all.
  uint32_t options = 0;
  uint8_t accepted_kinds = 0;
  uint32_t accepted_states = 0;
  bool operator==(const CallArgs&) const = default;
};

// One call of a sequence of calls to the iterator API. The sequence runs in the handler of an
// iterator; `open` goes into the handler of a nested one, which `leave`, `jump` and the sequence's
// end leave.
enum class IteratorCallKind : uint8_t {
  next,          // NextFrame, `argument` + 1 times
  drain,         // NextFrame until there is none
  rewind,        // RewindIterator
  state,         // State
  thread_state,  // ThreadState
  open,          // RunWithIterator (asgst-frame: ...FromFrame), with the options of the call
  open_frame,    // RunWithIteratorFromFrame, from the frame that NextFrame gave last
  leave,         // return from the handler
  jump,          // longjmp out of `argument` + 1 handlers
  select,        // the calls that follow get iterator `argument` of those opened so far, also when
                 // it is not valid any more; modulo how many there are plus 1, which is null
  next_null,     // NextFrame with a null frame
  open_null,     // RunWithIterator with a null handler
  open_to_java,  // as `open`, with ASGST_END_ON_FIRST_JAVA_FRAME
  count
};

// One call of a sequence of calls to safepoint queues and frame marks. `poll` and what leaves frames
// go into the handlers that are called there, one after the other; `leave` and the sequence's end leave
// one. Calls are about the chosen queue or mark, which is the one registered last, or that of the last
// `select` or `select_mark`. Text counts arguments as first_argument() says. Stable numbers.
enum class QueueCallKind : uint8_t {
  register_queue,  // RegisterQueue, of so many elements: -1 to 14
  deregister,      // DeregisterQueue
  enqueue,         // Enqueue: with the walk's context, or with the registers of its n-th frame
  enqueue_null,    // Enqueue without a context
  element,         // GetQueueElement: -8 to 7
  change,          // the same, and another arg in it
  resize,          // ResizeQueue: -1 to 14
  enqueuable,      // GetEnqueuableElement
  on_start,        // SetOnQueueProcessingStart: 0 removes it, 1 without an iterator, else with one
  on_end,          // SetOnQueueProcessingEnd, the same
  poll,            // the thread comes to a safepoint poll
  leave,           // return from the handler
  select,          // queue n of those registered so far, also when it has ended; modulo how many
                   // there are plus 2, which are one that there never was and null
  no_memory,       // the n-th allocation from here on fails, from 0
  exit,  // the thread ends, outside handlers; then it is as before, without queues and marks
  register_mark,  // RegisterFrameMark
  remove_mark,    // RemoveFrameMark
  move_mark,      // MoveFrameMark: to the n-th frame of the walk, from 1; 0: to none
  select_mark,    // as select, of marks
  walk_to_mark,   // RunWithIterator, ASGST_END_AT_FRAME_MARK
  // Outside handlers; then the thread is where it was before, and marks are as they are:
  return_frame,  // it has come down to the n-th frame, from 1, which polls for its return
  unwind,        // the same, and an exception comes to that frame
  freeze,        // its virtual thread yields
  throw_frozen,  // an exception is on its way to frames that are frozen
  count
};

// Of both.
inline constexpr uint8_t kMaxIteratorArgument = 15;

template <typename Kind>
struct ApiCall {
  Kind kind = {};
  uint8_t argument = 0;  // where uses_argument()
  bool operator==(const ApiCall&) const = default;
};
using IteratorCall = ApiCall<IteratorCallKind>;
using QueueCall = ApiCall<QueueCallKind>;

// What happens to a stepped victim while it stands at its halt point, before it is walked. Stable
// numbers.
enum class StepEvent : uint8_t {
  none,
  signal,  // another signal interrupts the walk, and its handler walks too
  gc,      // the others are asked of the VM by another thread, and happen at one of the next polls
  deoptimise,  // of the running methods' code
  redefine,    // of a running method's class
  unload,      // of a class that does not run
  sigsegv,     // HotSpot's own handler of a fault there is interrupted, and the walk is made in it
  pop_frame,   // the running method's, by JVMTI; the VM's, as those before `sigsegv`
  exit,        // of the thread: an exception that is thrown into it from outside
  count
};

// Where the victim is to be halted. `any`: wherever it is when its halt signal arrives.
// Otherwise the halt is sought by pc (code or libjvm position) and, with has_frame_offset, by the
// distance in bytes from sp up to the victim's stack base, as is_as_deep() (victim/world.h) compares it.
// With `occurrence` it is stepped there.
struct HaltPoint {
  bool any = true;
  CodeRef code;  // a position in the code cache: anchor + delta
  int32_t delta = 0;
  bool has_frame_offset = false;
  uint32_t frame_offset = 0;
  // When the victim, stepped from its first instruction, is there for the n-th time; 0: at any time,
  // while it runs.
  uint32_t occurrence = 0;
  StepEvent event = StepEvent::none;  // of one with an occurrence
  bool operator==(const HaltPoint&) const = default;
};

struct Input {
  ScenarioId scenario = ScenarioId::interpreted_recursion;
  Mode mode = Mode::same_thread;
  WalkerId walker = kDefaultWalker;
  HaltPoint halt;
  CallArgs call;
  std::vector<Mutation> mutations;  // at most kMaxMutations; applied in order
  // At most kMaxIteratorCalls; walkers that are no iterators do without.
  std::vector<IteratorCall> iterator_calls;
  // At most kMaxQueueCalls; of the walkers that read them, which have no iterator calls.
  std::vector<QueueCall> queue_calls;
  bool has_calls() const { return !iterator_calls.empty() || !queue_calls.empty(); }
  bool operator==(const Input&) const = default;
};

// The name of an enumerator, of names in the order of their numbers. The size check makes an
// enumerator without a name a compile error.
template <typename Enum, size_t Size>
constexpr std::string_view name_in(const std::string_view (&names)[Size], Enum value) {
  static_assert(Size == static_cast<size_t>(Enum::count));
  const auto index = static_cast<size_t>(value);
  return index < Size ? names[index] : std::string_view("invalid");
}

// All enumerators but `count`.
template <typename Enum>
consteval auto all_of() {
  std::array<Enum, static_cast<size_t>(Enum::count)> all = {};
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): below `count`
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

// Names as they appear in text, on the command line and in reports ("c2-inlined", "same-thread",
// "real-sp"). The spans are indexed by the enum's number.
std::string_view name_of(ScenarioId);
std::string_view name_of(Mode);
std::string_view name_of(WalkerId);
std::string_view name_of(ValueKind);
std::string_view name_of(CodeKind);
std::string_view name_of(CodeAnchor);
std::string_view name_of(Register);
std::string_view name_of(ThreadField);
std::string_view name_of(StackAnchor);
std::string_view name_of(MutationKind);
std::string_view name_of(DepthKind);
std::string_view name_of(ContextArg);
std::string_view name_of(EnvArg);
std::string_view name_of(IteratorCallKind);
std::string_view name_of(QueueCallKind);
std::string_view name_of(StepEvent);

// The enumerator of that name; false when there is none.
template <typename Enum>
bool parse_name(std::string_view name, Enum* out) {
  constexpr auto kAll = all_of<Enum>();
  const auto found = std::ranges::find_if(kAll, [&](Enum one) { return name_of(one) == name; });
  if (found == kAll.end()) return false;
  *out = *found;
  return true;
}

}  // namespace framestorm
