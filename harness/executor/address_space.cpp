#include "harness/executor/address_space.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "harness/base/memory_map.h"
#include "harness/input/text.h"
#include "harness/jvm/modules.h"

namespace framestorm {
namespace {

constexpr size_t kGuardBytes = size_t{1} << 20;

// Middle of the widest hole in the address space: nothing will be mapped there.
uintptr_t find_unmapped() {
  uintptr_t last_end = 0x10000;
  uintptr_t best = 0;
  uintptr_t best_size = 0;
  for (const MemoryMapping& one : read_memory_map()) {
    if (one.begin >= uintptr_t{1} << 47) break;
    if (one.begin > last_end && one.begin - last_end > best_size) {
      best_size = one.begin - last_end;
      best = last_end + best_size / 2;
    }
    last_end = one.end;
  }
  return best & ~uintptr_t{0xfff};
}

uintptr_t find_java_heap(const VmStructs& vm, uintptr_t fallback) {
  void* heap_static = vm.static_address("Universe", "_collectedHeap");
  const auto reserved = vm.offset("CollectedHeap", "_reserved");
  const auto start = vm.offset("MemRegion", "_start");
  if (heap_static == nullptr || !reserved || !start) return fallback;
  const auto* heap = read_at<const std::byte*>(heap_static);
  if (heap == nullptr) return fallback;
  const auto address = read_at<uintptr_t>(heap, *reserved + *start);
  return address == 0 ? fallback : address;  // ZGC reserves no single range
}

}  // namespace

AddressSpace::AddressSpace(Jvm& jvm) : jvm_(jvm) {
  void* guard = mmap(nullptr, kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (guard == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping the guard page");
  }
  guard_page_ = reinterpret_cast<uintptr_t>(guard);
  if (const Module* libc = modules_.by_name("libc.so")) libc_text_ = libc->text_begin;
  if (const Module* libjvm = modules_.by_name("libjvm.so")) libjvm_text_ = libjvm->text_begin;
  unmapped_ = find_unmapped();
  java_heap_ = find_java_heap(jvm.structs(), unmapped_);
}

std::optional<uint64_t> AddressSpace::resolve(const SymbolicValue& value, const Victim& victim,
                                              const std::vector<Victim*>& halted,
                                              uint64_t own) const {
  const auto delta = static_cast<uint64_t>(static_cast<int64_t>(value.delta));
  switch (value.kind) {
    case ValueKind::real:
      return own + delta;
    case ValueKind::real_sp:
      return victim.sp + delta;
    case ValueKind::real_fp:
      return victim.fp + delta;
    case ValueKind::real_pc:
      return victim.pc + delta;
    case ValueKind::stack_base:
      return victim.stack_base + delta;
    case ValueKind::stack_end:
      return victim.stack_end + delta;
    case ValueKind::guard_page:
      return guard_page_ + kGuardBytes / 2 + delta;
    case ValueKind::other_sp:
    case ValueKind::other_pc: {
      if (halted.size() < 2) return std::nullopt;
      const Victim* other = halted[value.index % halted.size()];
      if (other == &victim) other = halted[(value.index + 1) % halted.size()];
      return (value.kind == ValueKind::other_sp ? other->sp : other->pc) + delta;
    }
    case ValueKind::slot: {
      const uintptr_t address = victim.sp + uintptr_t{8} * value.index;
      if (address > victim.frames_top - 8) return std::nullopt;
      const uintptr_t at = address - victim.stack_copy_begin;
      return at + 8 <= victim.stack_copy.size()
                 ? read_at<uint64_t>(victim.stack_copy.data(), at) + delta
                 : read_at<uint64_t>(reinterpret_cast<const void*>(address)) + delta;
    }
    case ValueKind::code: {
      const auto address = jvm_.code_map().resolve(value.code);
      if (!address) return std::nullopt;
      return *address + delta;
    }
    case ValueKind::libc_text:
      return libc_text_ + delta;
    case ValueKind::libjvm_text:
      return libjvm_text_ + delta;
    case ValueKind::java_heap:
      return java_heap_ + delta;
    case ValueKind::unmapped:
      return unmapped_ + delta;
    case ValueKind::misaligned:
      return (own & ~uint64_t{7}) + 1 + (delta & 3);
    case ValueKind::raw:
      return value.raw;
    case ValueKind::count:
      break;
  }
  return std::nullopt;
}

std::optional<SymbolicValue> AddressSpace::symbolic(uintptr_t address, const Victim& victim) const {
  if (auto position = jvm_.code_map().describe(address)) {
    return SymbolicValue{
        .kind = ValueKind::code, .delta = position->delta, .code = std::move(position->ref)};
  }
  if (!victim.has_on_stack(address)) return std::nullopt;
  return SymbolicValue{.kind = ValueKind::real_sp,
                       .delta = static_cast<int32_t>(address - victim.sp)};
}

std::string AddressSpace::describe(uintptr_t address, const Victim& victim) const {
  const auto value = symbolic(address, victim);
  return value ? to_text(*value) : modules_.describe(address);
}

}  // namespace framestorm
