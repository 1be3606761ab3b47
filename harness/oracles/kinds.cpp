// Of walkers that say more than frames: kind and state of a trace, and whose it is, agree
// with the victim and with the masks that the call passed. The numbers are those of profile.h and
// profile2.h, which no file can include both.
#include <bit>

#include "harness/base/hex.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

constexpr uint32_t kJava = 1;
constexpr uint32_t kCpp = 2;
constexpr uint32_t kGc = 4;
constexpr uint32_t kDeopt = 8;
constexpr uint32_t kUnknown = 32;
constexpr uint32_t kKinds = kJava | kCpp | kGc | kDeopt | kUnknown;

// JVMTI thread states that the two APIs can tell: never INTERRUPTED, PARKED or the vendors' bits.
constexpr uint32_t kAlive = 0x1;
constexpr uint32_t kBlockedOnMonitor = 0x400;
constexpr uint32_t kSuspended = 0x100000;
constexpr uint32_t kStates =
    kAlive | 0x4 | kBlockedOnMonitor | 0x80 | 0x10 | 0x20 | 0x40 | 0x100 | kSuspended | 0x400000;

uint32_t kinds_of(const WalkView& view) {
  const Victim& victim = *view.subject.victim;
  switch (victim.scenario) {
    case ScenarioId::gc_thread:
      return kGc;
    case ScenarioId::vm_thread:  // it collects while a collection has stopped the world
      return (view.record.outside_collection ? 0 : kGc) | (view.record.in_collection ? 0 : kCpp);
    case ScenarioId::compiler_thread:
    // Known by their stack while they do not know themselves what they are.
    case ScenarioId::thread_starting:
    case ScenarioId::thread_exiting:
      return kJava | kCpp;
    default:
      return victim.is_java_thread ? kJava | kDeopt : kCpp;
  }
}

class KindsOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    const WalkFacts* facts = view.record.facts_if_any();
    if (view.record.end != WalkEnd::returned || facts == nullptr) return;
    const CallArgs& call = view.subject.input->call;
    const WalkerTraits& traits = view.subject.walker->traits();
    const bool masks = traits.masks;
    const Case walk = {
        view,
        *facts,
        view.record.result <= 0 ? view.subject.walker->error_name(view.record.result)
                                : std::string_view(),
        static_cast<uint32_t>(facts->kind),
        static_cast<uint32_t>(facts->state),
        masks ? call.accepted_kinds : 0U,
        masks ? call.accepted_states : 0U,
        // Neither the victim nor what the call says of it is changed.
        !view.subject.mutated && call.context == ContextArg::victim && call.env == EnvArg::victim &&
            // Without an env it is the calling thread that is walked.
            (traits.finds_victim != FindsVictim::by_env || view.subject.victim->jni_env != nullptr),
    };
    if (facts->has_kind) check_kind(walk, out);
    if (facts->has_state) check_state(walk, masks, out);
    if (walk.plain) {
      check_thread(walk, out);
    } else {
      check_given_sp(walk, out);
    }
  }

 private:
  struct Case {
    const WalkView& view;
    const WalkFacts& facts;
    std::string_view error;
    uint32_t kind;
    uint32_t state;
    uint32_t kinds;  // accepted; 0: all
    uint32_t states;
    bool plain;
  };

  static void check_kind(const Case& walk, Violations* out) {
    if (!std::has_single_bit(walk.kind) || (walk.kind & kKinds) == 0) {
      out->broken("kind-out-of-range", "kind " + hex(walk.kind));
      return;
    }
    const bool accepted = walk.kinds == 0 || (walk.kinds & walk.kind) != 0;
    const std::string values = "kind " + hex(walk.kind) + ", accepted " + hex(walk.kinds);
    if (walk.error == "wrong_kind" && accepted) {
      out->broken("wrong-kind-without-cause", values);
    } else if (walk.error != "wrong_kind" && !accepted) {
      out->broken("kind-not-accepted", values);
    }
    if (walk.plain && (walk.kind & kinds_of(walk.view)) == 0) {
      out->broken("kind-disagrees-with-victim", "kind " + hex(walk.kind));
    }
  }

  static void check_state(const Case& walk, bool masks, Violations* out) {
    if (walk.facts.has_kind && walk.kind != kJava) {
      // Always accepted.
      if (masks && walk.facts.state != -1) {
        out->broken("state-of-no-java-trace",
                    "kind " + hex(walk.kind) + ", state " + std::to_string(walk.facts.state));
      }
      return;
    }
    const Victim& victim = *walk.view.subject.victim;
    const bool java = masks || victim.is_java_thread;
    if (java && (walk.state & ~kStates) != 0) {
      out->broken("state-out-of-range", "state " + hex(walk.state));
      return;
    }
    const bool accepted = walk.states == 0 || (walk.states & walk.state) != 0;
    const std::string values = "state " + hex(walk.state) + ", accepted " + hex(walk.states);
    if (walk.error == "wrong_state" && accepted) {
      out->broken("wrong-state-without-cause", values);
    } else if (walk.error.empty() && !accepted) {
      out->broken("state-not-accepted", values);
    }
    check_suspended(walk, out);
    if (!walk.plain || !victim.is_java_thread || Victims::is_transient(victim.scenario)) return;
    const uint32_t wanted =
        victim.scenario == ScenarioId::monitor_blocked ? kAlive | kBlockedOnMonitor : kAlive;
    if ((walk.state & wanted) != wanted) {
      out->broken("state-disagrees-with-victim", "state " + hex(walk.state));
    }
  }

  // Of whom a walk was told by name, or by nothing that is mutated. A virtual thread is suspended, and not its
  // carrier.
  static void check_suspended(const Case& walk, Violations* out) {
    const Subject& subject = walk.view.subject;
    const FindsVictim finds = subject.walker->traits().finds_victim;
    const bool by_name = finds == FindsVictim::by_env || finds == FindsVictim::by_tid;
    const Victim* const whose = subject.asked;
    if (whose == nullptr || !(by_name || walk.plain) || !whose->is_java_thread ||
        Victims::is_transient(whose->scenario) ||
        !scenario_info(whose->scenario).thawed_trace.empty()) {
      return;
    }
    if (((walk.state & kSuspended) != 0) != whose->suspended) {
      out->broken("suspended-disagrees-with-victim", "state " + hex(walk.state));
    }
  }

  // Of a walk that is told by sp alone whom to walk, and by one that may be another's.
  static void check_given_sp(const Case& walk, Violations* out) {
    const Subject& subject = walk.view.subject;
    const Victim& victim = *subject.victim;
    if (subject.walker->traits().finds_victim != FindsVictim::by_sp ||
        walk.view.record.context == nullptr || subject.input->mode == Mode::same_thread ||
        !victim.is_java_thread || Victims::is_transient(victim.scenario)) {
      return;
    }
    const uintptr_t sp = get_register(*walk.view.record.expected_context, Register::sp);
    const bool is_victims = victim.has_on_stack(sp);
    if (is_victims && walk.error == "no_thread") {
      out->broken("thread-not-found", "the thread that has sp on its stack was not found");
    } else if (walk.facts.has_env && is_victims != (walk.facts.env == victim.jni_env)) {
      out->broken("env-of-another-thread",
                  is_victims ? "sp is on the victim's stack, and the JNIEnv is another's"
                             : "the JNIEnv is the victim's, and sp is not on its stack");
    }
  }

  static void check_thread(const Case& walk, Violations* out) {
    const Victim& victim = *walk.view.subject.victim;
    if (Victims::is_transient(victim.scenario) && !victim.is_java_thread) return;
    const void* const env = victim.is_java_thread ? victim.jni_env : nullptr;
    if (walk.facts.has_env && walk.facts.env != env) {
      out->broken("env-of-another-thread", walk.facts.env == nullptr
                                               ? "the trace has no JNIEnv, its thread has one"
                                               : "the trace has a JNIEnv that is not its thread's");
    }
    // kWalkSameThread: whoever walks himself is there.
    const WalkerTraits& walker = walk.view.subject.walker->traits();
    const bool is_itself = walker.masks && walk.view.subject.input->mode == Mode::same_thread;
    if (walk.error == "no_thread" && (victim.is_java_thread || is_itself) &&
        !Victims::is_transient(victim.scenario)) {
      out->broken("thread-not-found", "the victim was not found");
    }
  }
};

const RegisteredOracle<KindsOracle> kRegistered({.name = "kinds",
                                                 .order = 60,
                                                 .needs = {Need::trace}});

}  // namespace
}  // namespace framestorm
