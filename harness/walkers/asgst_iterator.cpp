// ASGST_RunWithIterator of profile2.h.
#include "harness/walkers/iterator_walker.h"

namespace framestorm {
namespace {

class AsgstIterator final : public IteratorWalker {
 public:
  explicit AsgstIterator(const Exports& exports)
      : IteratorWalker(WalkerId::asgst_iterator, exports) {}

 private:
  IteratorStart start(const WalkTarget& target, void* ucontext) const override {
    return {.context = ucontext, .options = options_of(target)};
  }
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_iterator>, const Exports& exports) {
  return std::make_unique<AsgstIterator>(exports);
}

}  // namespace framestorm
