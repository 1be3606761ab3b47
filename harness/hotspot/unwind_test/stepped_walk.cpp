#include "harness/hotspot/unwind_test/stepped_walk.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "harness/hotspot/unwind_test/victims.h"

namespace framestorm::unwind_test {
namespace {

using Step = AsyncUnwindTables::Step;

enum class Instruction : uint8_t { other, call, ret };

// What a shadow stack has to know of the instruction at pc.
Instruction instruction_at(uintptr_t pc) {
  const auto* byte = reinterpret_cast<const unsigned char*>(pc);
  while (*byte == 0x66 || *byte == 0x2e || *byte == 0x3e || *byte == 0xf2 || *byte == 0xf3 ||
         (*byte & 0xf0) == 0x40) {
    ++byte;
  }
  if (*byte == 0xe8 || (*byte == 0xff && ((byte[1] >> 3) & 7) == 2)) return Instruction::call;
  return *byte == 0xc3 || *byte == 0xc2 ? Instruction::ret : Instruction::other;
}

struct Stepping {
  SteppedWalks walks;
  StackBounds stack;
  bool started = false;
  Instruction executed = Instruction::other;
  int depth = 0;
  std::array<uintptr_t, 512> return_slots{};  // addresses of return addresses, outermost first
};

Stepping* stepping = nullptr;

uintptr_t word_at(uintptr_t address) { return *reinterpret_cast<const uintptr_t*>(address); }

void keep(std::array<SteppedWalks::Place, SteppedWalks::kKept>& places, uint64_t count,
          const SteppedWalks::Place& place) {
  if (count < places.size()) places[count] = place;
}

// Signal context.
void walk_and_compare(AsyncRegisters registers) {
  Stepping& state = *stepping;
  SteppedWalks& walks = state.walks;
  const uintptr_t pc = registers.pc;
  ++walks.instructions;
  walks.deepest = std::max(walks.deepest, state.depth);
  for (int i = state.depth - 1; i >= 0; --i) {
    const uintptr_t slot = state.return_slots[static_cast<size_t>(i)];
    SteppedWalks::Place place{.pc = pc, .frame_pc = registers.pc, .expected = word_at(slot)};
    place.step =
        AsyncUnwindTables::step(&registers, i == state.depth - 1, registers.sp, state.stack.high);
    if (place.step != Step::stepped) {
      keep(walks.given_up_places, walks.given_up++, place);
      return;
    }
    place.found = registers.pc;
    if (registers.pc != place.expected || registers.sp != slot + sizeof(uintptr_t)) {
      keep(walks.wrong_places, walks.wrong++, place);
      return;
    }
    ++walks.frames;
  }
}

void on_trap(int, siginfo_t*, void* context) {
  const greg_t* saved = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const AsyncRegisters registers = {static_cast<uintptr_t>(saved[REG_RIP]),
                                    static_cast<uintptr_t>(saved[REG_RSP]),
                                    static_cast<uintptr_t>(saved[REG_RBP])};
  Stepping& state = *stepping;
  if (!state.started) {  // the call in framestorm_run_stepped was executed
    state.started = true;
    state.return_slots[0] = registers.sp + 2 * sizeof(uintptr_t);
    state.return_slots[1] = registers.sp;
    state.depth = 2;
  } else if (state.executed == Instruction::call) {
    state.return_slots.at(static_cast<size_t>(state.depth++)) = registers.sp;
  } else if (state.executed == Instruction::ret) {
    --state.depth;
  }
  state.executed = instruction_at(registers.pc);
  walk_and_compare(registers);
}

std::string name_of(uintptr_t pc) {
  Dl_info info{};
  std::ostringstream text;
  if (dladdr(reinterpret_cast<void*>(pc), &info) != 0 && info.dli_fname != nullptr) {
    text << info.dli_fname << "+0x" << std::hex << pc - reinterpret_cast<uintptr_t>(info.dli_fbase);
    if (info.dli_sname != nullptr) text << " (" << info.dli_sname << ")";
  } else {
    text << "0x" << std::hex << pc;
  }
  return text.str();
}

std::string explain(const std::array<SteppedWalks::Place, SteppedWalks::kKept>& places,
                    uint64_t count) {
  std::ostringstream text;
  text << count << " walks";
  for (size_t i = 0; i < std::min<uint64_t>(count, places.size()); ++i) {
    text << "\n  at " << name_of(places[i].pc) << ", frame of " << name_of(places[i].frame_pc)
         << ": step " << static_cast<int>(places[i].step) << ", found " << name_of(places[i].found)
         << " instead of " << name_of(places[i].expected);
  }
  return text.str();
}

}  // namespace

StackBounds stack_bounds() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + size};
}

std::string SteppedWalks::explain_wrong() const { return explain(wrong_places, wrong); }
std::string SteppedWalks::explain_given_up() const { return explain(given_up_places, given_up); }

SteppedWalks walk_at_every_instruction(void (*function)()) {
  constexpr size_t kHandlerStack = 1 << 18;
  Stepping state;
  state.stack = stack_bounds();
  std::vector<char> handler_stack(kHandlerStack);
  stack_t alternate{};
  alternate.ss_sp = handler_stack.data();
  alternate.ss_size = handler_stack.size();
  stack_t previous{};
  sigaltstack(&alternate, &previous);
  struct sigaction action{};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  struct sigaction before{};
  sigaction(SIGTRAP, &action, &before);

  stepping = &state;
  framestorm_run_stepped(function);
  stepping = nullptr;

  sigaction(SIGTRAP, &before, nullptr);
  sigaltstack(&previous, nullptr);
  return state.walks;
}

}  // namespace framestorm::unwind_test
