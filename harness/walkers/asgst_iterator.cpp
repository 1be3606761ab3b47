// ASGST_RunWithIterator of profile2.h.
#include "harness/walkers/iterator_walker.h"

namespace framestorm {
namespace {

class AsgstIterator final : public IteratorWalker {
 public:
  using IteratorWalker::IteratorWalker;
  WalkerId id() const override { return WalkerId::asgst_iterator; }
  std::string_view description() const override {
    return "ASGST_RunWithIterator, and sequences of calls to its iterators";
  }

 private:
  IteratorStart start(const WalkTarget& target, void* ucontext) const override {
    return {.context = ucontext, .options = static_cast<int32_t>(target.options)};
  }
};

}  // namespace

std::unique_ptr<Walker> make_asgst_iterator(const Exports& exports) {
  return std::make_unique<AsgstIterator>(exports);
}

}  // namespace framestorm
