// No trace is given while a collection has stopped the world, by walkers whose API has an error for
// that (AsyncGetCallTrace, forte.cpp: ticks_GC_active), unless the call asks for one. And nobody who
// walks a thread as it is gives that error while there is no collection, which a halted world
// neither begins nor ends. The error of iterators says no more than that there is a safepoint.
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class CollectionOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) {
    const WalkRecord& record = view.record;
    return record.in_collection && record.end == WalkEnd::returned && record.result > 0 &&
           (record.options & kWalkDuringUnsafeStates) == 0 &&
           view.subject.walker->traits().refuses_collections() &&
           view.subject.victim->is_java_thread;
  }

  void check(const WalkView& view, Further&, Violations* out) override {
    if (!suspects(view)) return;
    out->broken("trace-during-collection",
                "a trace was given while a collection had stopped the world");
  }
};

const RegisteredOracle<CollectionOracle> kRegistered({.name = "collection",
                                                      .order = 55,
                                                      .needs = {Need::trace},
                                                      .suspects = &CollectionOracle::suspects});

class NoCollectionOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    const WalkRecord& record = view.record;
    const WalkerError* const error =
        record.result > 0 ? nullptr : view.subject.walker->traits().find_error(record.result);
    if (record.end == WalkEnd::returned && view.subject.unmutated && record.outside_collection &&
        error != nullptr && error->name == "GC_active") {
      out->broken("collection-without-cause",
                  "the walk was refused for a collection, and there is none");
    }
  }
};

const RegisteredOracle<NoCollectionOracle> kOfNone({.name = "no-collection",
                                                    .order = 56,
                                                    .needs = {Need::halted_world, Need::trace}});

}  // namespace
}  // namespace framestorm
