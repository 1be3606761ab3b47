// A walk writes nothing to what its VM has allocated, nor to the code cache: the thread that it has
// interrupted may have been writing there, and others may. The victim's own JavaThread is compared by
// the executor.
#include <algorithm>
#include <span>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class WritesOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) { return view.record.incidents->writes.count > 0; }

  void check(const WalkView& view, Further&, Violations* out) override {
    const WalkWrites& writes = view.record.incidents->writes;
    for (const WalkWrite& write :
         std::span(writes.writes).first(std::min<size_t>(writes.count, kMaxWalkWrites))) {
      FaultRecord where = place_with({write.stack, write.stack_size});
      where.address = write.address;
      where.is_write = true;
      const bool in_code_cache = view.subject.jvm->code_map().in_code_cache(write.address);
      out->add(FindingKind::contract, "writes-to-the-vm",
               in_code_cache ? "the walk wrote to the code cache"
                             : "the walk wrote to memory that the VM has allocated",
               where);
    }
  }
};

const RegisteredOracle<WritesOracle> kRegistered({.name = "writes",
                                                  .order = 35,
                                                  .needs = {Need::incidents, Need::halted_world},
                                                  .suspects = &WritesOracle::suspects});

}  // namespace
}  // namespace framestorm
