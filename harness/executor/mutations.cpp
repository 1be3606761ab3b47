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
    case StackAnchor::saved_anchor:
      return victim.saved_anchor(layout);
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
  // Where it goes, of how many bytes; false where it goes nowhere.
  const auto write = [&](const Mutation& mutation, uintptr_t address, uint64_t own, size_t size) {
    const auto value = addresses.resolve(mutation.value, victim, halted, own);
    if (value && undo->write(address, *value, size)) ++result.applied;
    return value.has_value();
  };
  const auto apply = [&](const Mutation& mutation) {
    switch (mutation.kind) {
      case MutationKind::set_register: {
        const uint64_t own = get_register(victim.context_copy, mutation.reg);
        const auto value = addresses.resolve(mutation.value, victim, halted, own);
        if (!value) return false;
        set_register(registers, mutation.reg, *value);
        ++result.applied;
        return true;
      }
      case MutationKind::set_stack_word: {
        const uintptr_t base = anchor_address(victim, layout, mutation.anchor);
        const uintptr_t address =
            base + static_cast<uintptr_t>(static_cast<intptr_t>(mutation.offset) * 8);
        // From the red zone up to the base: below it the handler's own frames live.
        return address % 8 == 0 && address >= victim.sp - kRedZone &&
               address <= victim.frames_top - 8 &&
               write(mutation, address, read_at<uint64_t>(reinterpret_cast<void*>(address)), 8);
      }
      case MutationKind::set_thread_field: {
        if (!victim.is_java_thread) return false;
        const bool state = mutation.field == ThreadField::state;
        const size_t offset = state                                         ? layout.state
                              : mutation.field == ThreadField::last_java_sp ? layout.last_java_sp
                              : mutation.field == ThreadField::last_java_pc ? layout.last_java_pc
                                                                            : layout.last_java_fp;
        const auto address = reinterpret_cast<uintptr_t>(victim.java_thread) + offset;
        const std::byte* const copy = victim.thread_copy.data();
        return state ? write(mutation, address, read_at<uint32_t>(copy, offset), 4)
                     : write(mutation, address, read_at<uint64_t>(copy, offset), 8);
      }
      case MutationKind::count:
        break;
    }
    return false;
  };
  for (const Mutation& mutation : input.mutations) {
    if (!apply(mutation)) ++result.unresolved;
  }
  return result;
}

}  // namespace framestorm
