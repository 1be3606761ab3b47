#include "harness/victim/native_unwinder.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include "harness/guard/signal_table.h"
#include "harness/victim/context.h"
#include "harness/victim/untabled.h"

namespace framestorm {
namespace {

// Not one of those that halt, step or watch.
int unwind_signal() { return SIGRTMAX - 9; }

// Read by the handler, on the thread that sets it.
std::atomic<NativeUnwinder*> unwinding{nullptr};

}  // namespace

std::span<const NativeFrame> NativeUnwinder::unwind(const ucontext_t& context,
                                                    bool (*ends)(const void* with, uintptr_t pc),
                                                    const void* with) {
  [[maybe_unused]] static const bool owned = [] {
    sigset_t none;
    sigemptyset(&none);
    signals::own(unwind_signal(), &NativeUnwinder::on_signal, SA_RESTART, none);
    return true;
  }();
  copy_context(context, &context_);
  ends_ = ends;
  with_ = with;
  ended_ = false;
  count_ = 0;
  for (;;) {
    unwind_tabled();
    if (untabled_fp_ == 0) return std::span(frames_).first(count_);
    //   fp ──> caller's fp, return address
    const auto* const link = reinterpret_cast<const uintptr_t*>(untabled_fp_);
    set_register(&context_, Register::fp, link[0]);
    set_register(&context_, Register::pc, link[1]);
    set_register(&context_, Register::sp, reinterpret_cast<uintptr_t>(link + 2));
  }
}

void NativeUnwinder::unwind_tabled() {
  inside_ = false;
  untabled_fp_ = 0;
  unwinding.store(this);
  if (syscall(SYS_tgkill, getpid(), gettid(), unwind_signal()) != 0) {
    throw std::system_error(errno, std::generic_category(), "tgkill");
  }
  unwinding.store(nullptr);
}

// Signal context. The unwinder takes no lock: glibc finds the tables without one (_dl_find_object).
void NativeUnwinder::on_signal(int, siginfo_t*, void* raw_context) {
  if (unwinding.load() == nullptr) return;
  auto* const own = static_cast<ucontext_t*>(raw_context);
  const mcontext_t kept = own->uc_mcontext;
  for (size_t i = 0; i < static_cast<size_t>(Register::count); ++i) {
    const auto reg = static_cast<Register>(i);
    set_register(own, reg, get_register(unwinding.load()->context_, reg));
  }
  _Unwind_Backtrace(
      [](_Unwind_Context* at, void*) {
        NativeUnwinder& self = *unwinding.load();
        int interrupted = 0;
        const uintptr_t pc = _Unwind_GetIPInfo(at, &interrupted);
        // This handler, and what the kernel has it return to, come first.
        self.inside_ = self.inside_ || interrupted != 0;
        if (!self.inside_) return _URC_NO_REASON;
        self.ended_ = self.ends_(self.with_, pc);
        if (self.ended_ || pc == 0 || self.count_ == kMostFrames) return _URC_END_OF_STACK;
        self.frames_[self.count_++] = {.pc = pc, .sp = _Unwind_GetCFA(at)};
        if (is_untabled(pc)) self.untabled_fp_ = _Unwind_GetGR(at, kDwarfFramePointer);
        return _URC_NO_REASON;
      },
      nullptr);
  own->uc_mcontext = kept;
}

}  // namespace framestorm
