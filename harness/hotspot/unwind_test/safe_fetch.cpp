#include "harness/hotspot/unwind_test/safe_fetch.h"

#include <signal.h>
#include <ucontext.h>

#include "runtime/safefetch.hpp"

// The load and where a fault of it goes on.
asm(R"(
  .text
  .type framestorm_safe_load, @function
framestorm_safe_load:
  .cfi_startproc
framestorm_safe_load_fault:
  movq (%rdi), %rax
  ret
framestorm_safe_load_failed:
  movq %rsi, %rax
  ret
  .cfi_endproc
  .size framestorm_safe_load, . - framestorm_safe_load
)");

extern "C" intptr_t framestorm_safe_load(intptr_t* address, intptr_t error_value);
extern "C" char framestorm_safe_load_fault[];
extern "C" char framestorm_safe_load_failed[];

namespace framestorm::unwind_test {
namespace {

struct Watched {
  bool on = false;
  AddressRange ranges[2];
  uint64_t loads = 0;
  uint64_t strays = 0;
};

thread_local Watched watched;

void on_fault(int signo, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (registers[REG_RIP] == reinterpret_cast<greg_t>(framestorm_safe_load_fault)) {
    registers[REG_RIP] = reinterpret_cast<greg_t>(framestorm_safe_load_failed);
  } else {
    signal(signo, SIG_DFL);
  }
}

}  // namespace

void install_safe_fetch() {
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

LoadsWatch::LoadsWatch(AddressRange first, AddressRange second) {
  watched = {.on = true, .ranges = {first, second}};
}
LoadsWatch::~LoadsWatch() { watched.on = false; }
uint64_t LoadsWatch::loads() { return watched.loads; }
uint64_t LoadsWatch::strays() { return watched.strays; }

}  // namespace framestorm::unwind_test

intptr_t SafeFetchN(intptr_t* address, intptr_t error_value) {
  using framestorm::unwind_test::watched;
  if (watched.on) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    bool inside = false;
    for (const auto& range : watched.ranges) {
      inside = inside || (at < range.high && at + sizeof(uintptr_t) > range.low);
    }
    ++watched.loads;
    watched.strays += inside ? 0 : 1;
  }
  return framestorm_safe_load(address, error_value);
}
