#include "harness/executor/mutations.h"

namespace framestorm {
namespace {

uintptr_t anchor_address(const Victim& victim, const ThreadLayout& layout, StackAnchor anchor) {
  switch (anchor) {
    case StackAnchor::fp:
      return victim.fp;
    case StackAnchor::stack_base:
      // Above the first frame stand thread-local variables, which are not to be written.
      return victim.frames_top;
    case StackAnchor::last_java_sp:
      return victim.thread_copy.empty()
                 ? 0
                 : read_at<uintptr_t>(victim.thread_copy.data(), layout.last_java_sp);
    case StackAnchor::sp:
    case StackAnchor::count:
      break;
  }
  return victim.sp;
}

}  // namespace

AppliedMutations apply_mutations(const Input& input, const Victim& victim,
                                 const std::vector<Victim*>& halted, const AddressSpace& addresses,
                                 const ThreadLayout& layout, ucontext_t* registers, UndoLog* undo) {
  AppliedMutations result;
  for (const Mutation& mutation : input.mutations) {
    uint64_t value = 0;
    switch (mutation.kind) {
      case MutationKind::set_register: {
        const uint64_t own = get_register(victim.context_copy, mutation.reg);
        if (!addresses.resolve(mutation.value, victim, halted, own, &value)) break;
        set_register(registers, mutation.reg, value);
        ++result.applied;
        continue;
      }
      case MutationKind::set_stack_word: {
        const uintptr_t base = anchor_address(victim, layout, mutation.anchor);
        const uintptr_t address =
            base + static_cast<uintptr_t>(static_cast<intptr_t>(mutation.offset) * 8);
        // From the red zone up to the base: below it the handler's own frames live.
        if (address % 8 != 0 || address < victim.sp - kRedZone || address > victim.frames_top - 8) {
          break;
        }
        const auto own = read_at<uint64_t>(reinterpret_cast<const void*>(address));
        if (!addresses.resolve(mutation.value, victim, halted, own, &value)) break;
        if (undo->write(address, value, 8)) ++result.applied;
        continue;
      }
      case MutationKind::set_thread_field: {
        if (!victim.is_java_thread) break;
        const bool state = mutation.field == ThreadField::state;
        const size_t offset = state                                         ? layout.state
                              : mutation.field == ThreadField::last_java_sp ? layout.last_java_sp
                              : mutation.field == ThreadField::last_java_pc ? layout.last_java_pc
                                                                            : layout.last_java_fp;
        const auto address = reinterpret_cast<uintptr_t>(victim.java_thread) + offset;
        const uint64_t own = state ? read_at<uint32_t>(victim.thread_copy.data(), offset)
                                   : read_at<uint64_t>(victim.thread_copy.data(), offset);
        if (!addresses.resolve(mutation.value, victim, halted, own, &value)) break;
        if (undo->write(address, value, state ? 4 : 8)) ++result.applied;
        continue;
      }
      case MutationKind::count:
        break;
    }
    ++result.unresolved;
  }
  return result;
}

}  // namespace framestorm
