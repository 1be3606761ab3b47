#include "stress/agent/interrupted_call.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#if !defined(__x86_64__)
#error "another architecture needs its own interrupted_call_<arch>.cpp: syscall instruction, clones"
#endif

namespace framestorm::stress {
namespace {

bool is_waiting(const ucontext_t& context) {
  constexpr uint8_t kSystemCall[] = {0x0f, 0x05};
  const auto pc = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto is_call = [&](uintptr_t at) {
    return at / 4096 == pc / 4096 &&
           std::memcmp(reinterpret_cast<const void*>(at), kSystemCall, 2) == 0;
  };
  if (pc % 4096 <= 4094 && is_call(pc)) return true;
  return context.uc_mcontext.gregs[REG_RAX] == -EINTR && is_call(pc - 2);
}

}  // namespace

InterruptedCall interrupted_call(const ucontext_t& context) {
  constexpr greg_t kCloneCalls[] = {56, 57, 58, 435};
  InterruptedCall call;
  call.waiting = is_waiting(context);
  call.creating =
      call.waiting && std::ranges::count(kCloneCalls, context.uc_mcontext.gregs[REG_RAX]) > 0;
  return call;
}

}  // namespace framestorm::stress
