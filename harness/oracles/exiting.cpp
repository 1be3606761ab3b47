// A thread that is exiting is refused as such, and no other thread is, by walkers whose API has an error
// for that. It comes before all others (AsyncGetCallTrace, forte.cpp: ticks_thread_exit). A JNIEnv that is null
// is an exiting thread's to those that are told of no thread but by it.
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class ExitingOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    const WalkRecord& record = view.record;
    const WalkerTraits& walker = view.subject.walker->traits();
    const Victim& victim = *view.subject.victim;
    const ThreadLayout& layout = view.subject.jvm->layout();
    if (record.end != WalkEnd::returned || !walker.refuses_exiting_threads()) return;
    const WalkerError* const error = record.result > 0 ? nullptr : walker.find_error(record.result);
    const bool refused = error != nullptr && error->exiting;
    const bool is_told_by_env = walker.borrows_identity() && walker.options == 0;
    if (is_told_by_env && view.subject.input->call.env == EnvArg::null && !refused) {
      out->broken("walks-without-a-thread",
                  "result " + std::to_string(record.result) + " for a JNIEnv that is null");
    }
    if (!victim.is_java_thread || layout.terminated == 0 || !is_of_victim(view)) return;
    // A thread that has left the VM's list is no thread to whoever looks there, and a walk may fault.
    const bool not_found =
        error != nullptr && (error->name == "no_thread" || walker.contained_error == record.result);
    const bool exiting = victim.is_exiting(layout);
    if (exiting && !refused && !not_found) {
      out->broken("walks-an-exiting-thread",
                  "result " + std::to_string(record.result) + " of a thread that is exiting");
    } else if (refused && !exiting) {
      out->broken("exit-without-cause", "the thread that was refused as exiting is not");
    }
  }

 private:
  // Whether the walk was told of this thread, and of it as it is.
  static bool is_of_victim(const WalkView& view) {
    const CallArgs& call = view.subject.input->call;
    switch (view.subject.walker->traits().finds_victim) {
      case FindsVictim::by_sp:
        return !view.subject.mutated && call.context == ContextArg::victim;
      case FindsVictim::by_env:
        return call.env == EnvArg::victim && view.subject.victim->jni_env != nullptr;
      default:
        return call.env == EnvArg::victim;
    }
  }
};

const RegisteredOracle<ExitingOracle> kRegistered({.name = "exiting",
                                                   .order = 57,
                                                   .needs = {Need::halted_world, Need::trace}});

}  // namespace
}  // namespace framestorm
