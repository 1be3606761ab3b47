// ASGST_RunWithIteratorFromFrame of profile2.h, with sp, fp and pc of the context.
#include "harness/victim/context.h"
#include "harness/walkers/iterator_walker.h"

namespace framestorm {
namespace {

class AsgstFrame final : public IteratorWalker {
 public:
  explicit AsgstFrame(const Exports& exports) : IteratorWalker(WalkerId::asgst_frame, exports) {}

 private:
  IteratorStart start(const WalkTarget& target, void* ucontext) const override {
    IteratorStart from = {.from_frame = true, .options = options_of(target)};
    if (ucontext == nullptr) return from;
    // At an odd address when the input says so.
    ucontext_t context;
    copy_context(*static_cast<const ucontext_t*>(ucontext), &context);
    const auto pointer = [&](Register reg) {
      return reinterpret_cast<void*>(get_register(context, reg));
    };
    from.sp = pointer(Register::sp);
    from.fp = pointer(Register::fp);
    from.pc = pointer(Register::pc);
    return from;
  }
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_frame>, const Exports& exports) {
  return std::make_unique<AsgstFrame>(exports);
}

}  // namespace framestorm
