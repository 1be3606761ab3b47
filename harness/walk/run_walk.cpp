#include "harness/walk/run_walk.h"

#include <cerrno>
#include <cwchar>
#include <iterator>

#include "harness/base/clock.h"
#include "harness/guard/signal_table.h"

namespace framestorm {
namespace {

// AsyncGetCallTrace and what it calls take 6 kB.
constexpr size_t kStaleBytes = 8192;
// HotSpot's guard pages at a stack's end are less.
constexpr size_t kGuardBytes = size_t{32} << 10;

struct Invocation {
  const WalkCall& call;
  int32_t result = 0;
};

// noinline: the caller's next call has its frames where this one has its array.
[[gnu::noinline]] void write_stale_words(uint32_t value) {
  wchar_t words[kStaleBytes / sizeof(wchar_t)];
  // libc's has the processor's widest stores: half the time of a loop.
  std::wmemset(words, static_cast<wchar_t>(value), std::size(words));
  asm volatile("" : : "r"(words) : "memory");  // nobody reads them by this name
}

bool has_room_for_stale_words(const WalkTarget& target) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here < target.stack_end || here >= target.stack_base ||
         here - target.stack_end > kStaleBytes + kGuardBytes;
}

// In the guard.
void invoke(void* argument) {
  auto* invocation = static_cast<Invocation*>(argument);
  const WalkCall& call = invocation->call;
  if (call.stale_words && has_room_for_stale_words(*call.target)) {
    write_stale_words(*call.stale_words);
  }
  invocation->result = call.walker->walk(*call.target, call.frames, call.depth, call.context);
}

// The walker hears that its walk was abandoned. What it does wrong there takes the place of what the
// walk did.
void tell_abandoned(const WalkCall& call, WalkRecord* record, Incidents* incidents) {
  FaultRecord fault;
  UnsafeCalls unsafe;
  const auto tell = [](void* argument) {
    const auto* const of = static_cast<const WalkCall*>(argument);
    of->walker->abandoned(*of->target);
  };
  const WalkEnd end = Guard::call(tell, const_cast<WalkCall*>(&call), &fault, &unsafe);
  if (end == WalkEnd::returned) return;
  record->end = end;
  incidents->fault = fault;
}

WalkEnd run_contained(Invocation* invocation, Incidents* incidents) {
  const WalkCall& call = invocation->call;
  const auto guarded = [&] {
    return Guard::call(&invoke, invocation, &incidents->fault, &incidents->unsafe,
                       &incidents->reports,
                       call.walker->contains_faults() ? &incidents->contained : nullptr);
  };
  if (call.residue == nullptr) return guarded();
  const auto marks = call.residue->read(call.target->java_thread);
  const WalkEnd end = guarded();
  if (end != WalkEnd::returned) call.residue->restore(call.target->java_thread, marks);
  return end;
}

// The same walk, in a copy of the process: what it writes is not there for the walk that counts.
void watch_writes(Invocation* invocation, Incidents* incidents) {
  struct Both {
    Invocation* invocation;
    Incidents* incidents;
  } both = {invocation, incidents};
  WriteWatch& watch = *invocation->call.write_watch;
  watch.make(
      [](void* argument) {
        const auto* const of = static_cast<const Both*>(argument);
        run_contained(of->invocation, of->incidents);
      },
      &both);
  incidents->writes = watch.writes();
}

}  // namespace

void run_walk(const WalkCall& call, WalkRecord* record, Incidents* incidents) {
  Invocation invocation = {call};
  std::optional<ThreadIdentity::Scoped> as_target;
  if (!call.target->same_thread && call.walker->traits().borrows_identity()) {
    as_target.emplace(*call.identity, call.target->java_thread);
  }
  incidents->writes.count = 0;
  if (call.write_watch != nullptr) watch_writes(&invocation, incidents);
  const uint64_t begin = call.timed ? monotonic_ns() : 0;
  incidents->unsafe.mask_changed = false;
  incidents->contained = {};
  const bool knows = call.collections != nullptr && call.collections->are_known();
  const bool collected = knows && call.collections->stopped_the_world();
  errno = kErrnoMarker;
  if (call.contained) {
    record->end = run_contained(&invocation, incidents);
    if (record->end != WalkEnd::returned) tell_abandoned(call, record, incidents);
  } else {
    incidents->fault.end = record->end = WalkEnd::returned;
    incidents->unsafe.count = incidents->unsafe.locks_held = incidents->reports.count = 0;
    invoke(&invocation);
  }
  record->errno_after = errno;
  record->ns = call.timed ? monotonic_ns() - begin : 0;
  const bool collects = knows && call.collections->stopped_the_world();
  record->in_collection = collected && collects;
  record->outside_collection = knows && !collected && !collects;
  as_target.reset();
  record->signal_mask_changed = incidents->unsafe.mask_changed;
  if (call.mask != nullptr && signals::mask() != *call.mask) {
    record->signal_mask_changed = true;
    signals::set_mask(*call.mask);
  }
  record->walker = call.walker->id();
  record->depth = call.depth;
  record->options = call.target->options;
  record->stale_words = call.stale_words;
  record->result = invocation.result;
  const WalkFacts* const facts = call.walker->facts();
  record->has_facts = facts != nullptr;
  if (facts != nullptr) record->facts = *facts;
  record->frames = call.frames;
  record->context = call.context;
  record->incidents = incidents;
}

}  // namespace framestorm
