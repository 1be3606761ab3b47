// What each scenario is: the one table that says where its victims are and what a right walk of
// them shows. The Java side of scenario "c2-inlined" is java/*/framestorm/C2Inlined.java.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/input/input.h"

namespace framestorm {

// How a victim of the scenario spends its time, and so how it is halted.
enum class Halt : uint8_t {
  busy,        // running; every halt is somewhere else in the program point
  blocked,     // waiting in the kernel; every halt is at the same place
  special,     // passes the point once: caught by a hook on its way
  vm_internal  // a thread of the VM, which runs no scenario of ours
};

// The code a halted victim's pc is most often in.
enum class TopCode : uint8_t {
  any,
  interpreter,
  nmethod,  // top_name is "pkg/Class.method", top_tier its tier
  stub,     // top_name is a part of the name HotSpot gives the stub, which differs by version
  native    // a shared object: libc, libjvm, the harness
};

struct ScenarioInfo {
  ScenarioId id = ScenarioId::count;
  std::string_view description;
  int min_feature = 17;  // oldest JDK that has it
  bool java = true;      // has Java frames; where false a right walk has none
  Halt halt = Halt::busy;
  // Frames of a right trace, innermost first: tokens separated by a space. A token is
  // "pkg/Class.method", in which * is any text and a|b are alternatives, for exactly one frame;
  // with ? for none or one, + for one or more, +? for any number. "..." is any number of any
  // frames.
  std::string_view trace;
  // What AsyncGetCallTrace gives instead, where it stops or skips by design. Empty: the same.
  std::string_view asgct_trace;
  // What is left of it on the stack where the outer frames of a continuation are frozen. Those are
  // in a stackChunkOop in the heap, which a walk in a signal handler cannot read
  // (docs/reference/stack-walkers.md). The walkers of the instrumented JDK give exactly this.
  // Empty: all frames are on the stack.
  std::string_view thawed_trace;
  // At least this share of halts of the scenario's first victim yields a trace on stock 17 and 25,
  // in percent, measured with AsyncGetCallTrace. Less than 100 where it refuses the pc by design:
  // stubs without a frame size, prologues, VM calls without a last Java pc. Where it is a matter of
  // luck (a fifth to a half of the halts), 1: some of 20 halts do.
  int asgct_percent = 100;
  TopCode top = TopCode::any;
  std::string_view top_name;
  int top_tier = 0;
  std::string_view note;

  // As on the command line and in artifacts: name_of(id).
  std::string_view name() const { return name_of(id); }
};

// All scenarios, in the order of ScenarioId. Static storage.
std::span<const ScenarioInfo> all_scenarios();

// id must not be ScenarioId::count.
const ScenarioInfo& scenario_info(ScenarioId id);

// Whether `frames` ("pkg/Class.method", innermost first) is what `pattern` says, see
// ScenarioInfo::trace. With `truncated` (the walk filled its depth) it may end early. On false,
// *why (unless null) says which frame is wrong and what was expected. Any thread; allocates.
bool matches_pattern(std::span<const std::string> frames, std::string_view pattern, bool truncated,
                     std::string* why);

// Whether a walk of a victim of `info` by `walker` is right: by asgct_trace only where it may be
// AsyncGetCallTrace's, itself or in a walker of somebody else's (plugin); by thawed_trace instead
// of trace for those that read nothing but the stack. A victim that is still in the call that
// registers it, or already in the one that ends it, may have those frames on top.
bool matches(std::span<const std::string> frames, const ScenarioInfo& info, WalkerId walker,
             std::string* why, bool truncated = false);

}  // namespace framestorm
