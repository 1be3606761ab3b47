#include "harness/guard/signal_table.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <system_error>

// glibc's own name of sigaction, which nobody interposes.
extern "C" int __sigaction(int signo, const struct sigaction* action, struct sigaction* previous);

namespace framestorm::signals {
namespace {

constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
// The kernel's sigset_t; libc's has room for more signals than there are.
constexpr size_t kSignalSetBytes = 8;

struct Entry {
  std::atomic<Handler> owner{nullptr};
  int owner_flags = 0;
  sigset_t owner_mask = {};
  // The newest of a few: a handler that reads one keeps a whole one while the next is written.
  std::array<struct sigaction, 4> actions = {};
  std::atomic<uint32_t> newest{0};
  std::atomic<Handler> jvms{nullptr};
  struct sigaction jvms_action = {};
  siginfo_t muted = {};
  std::atomic<int> muted_state{0};  // 1: being written, 2: there

  struct sigaction action() const {
    return actions[newest.load(std::memory_order_acquire) % actions.size()];
  }
  void set_action(const struct sigaction& action) {
    const uint32_t next = newest.load(std::memory_order_relaxed) + 1;
    actions[next % actions.size()] = action;
    newest.store(next, std::memory_order_release);
  }
};
constinit std::array<Entry, NSIG> entries{};

bool is_signal(int signo) { return signo > 0 && signo < NSIG; }
Entry& entry_of(int signo) { return entries[static_cast<size_t>(signo)]; }
bool is_fault(int signo) { return std::ranges::find(kFaults, signo) != kFaults.end(); }

bool is_default(const struct sigaction& action) {
  return action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN;
}

// Of what is set: HotSpot's is the first handler of a fault, and comes back as itself.
struct sigaction note_jvms(int signo, const struct sigaction& action) {
  Entry& entry = entry_of(signo);
  if (!is_fault(signo) || is_default(action)) return action;
  if (action.sa_sigaction == &stand_for_jvm) return entry.jvms_action;
  if (entry.jvms.load(std::memory_order_acquire) == nullptr) {
    entry.jvms_action = action;
    entry.jvms.store(action.sa_sigaction, std::memory_order_release);
  }
  return action;
}

// Of what somebody replaces or asks for.
void give_previous(int signo, struct sigaction previous, struct sigaction* out) {
  const Handler jvms = entry_of(signo).jvms.load(std::memory_order_acquire);
  if (jvms != nullptr && previous.sa_sigaction == jvms) previous.sa_sigaction = &stand_for_jvm;
  *out = previous;
}

int set_action(int signo, const struct sigaction* action, struct sigaction* previous) {
  if (!is_signal(signo)) return __sigaction(signo, action, previous);
  Entry& entry = entry_of(signo);
  struct sigaction wanted = {};
  if (action != nullptr) wanted = note_jvms(signo, *action);
  struct sigaction before = {};
  if (entry.owner.load(std::memory_order_acquire) != nullptr) {
    before = entry.action();
    if (action != nullptr) entry.set_action(wanted);
  } else if (__sigaction(signo, action == nullptr ? nullptr : &wanted, &before) != 0) {
    return -1;
  }
  if (previous != nullptr) give_previous(signo, before, previous);
  return 0;
}

void install(int signo, const Entry& entry, struct sigaction* previous) {
  struct sigaction action = {};
  action.sa_sigaction = entry.owner.load(std::memory_order_acquire);
  action.sa_flags = entry.owner_flags;
  action.sa_mask = entry.owner_mask;
  if (__sigaction(signo, &action, previous) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "installing a handler for signal " + std::to_string(signo));
  }
}

void on_muted(int signo, siginfo_t* info, void*) {
  Entry& entry = entry_of(signo);
  int expected = 0;
  if (!entry.muted_state.compare_exchange_strong(expected, 1)) return;
  entry.muted = *info;
  entry.muted_state.store(2, std::memory_order_release);
}

}  // namespace

void own(int signo, Handler handler, int flags, const sigset_t& mask) {
  Entry& entry = entry_of(signo);
  const bool owned = entry.owner.load(std::memory_order_acquire) != nullptr;
  // What is behind is known before the handler can run and need it.
  struct sigaction previous = {};
  if (!owned && __sigaction(signo, nullptr, &previous) == 0) {
    entry.set_action(note_jvms(signo, previous));
  }
  entry.owner_flags = flags | SA_SIGINFO;
  entry.owner_mask = mask;
  entry.owner.store(handler, std::memory_order_release);
  install(signo, entry, nullptr);
}

int reclaim() {
  int taken = 0;
  for (int signo = 1; signo < NSIG; ++signo) {
    Entry& entry = entry_of(signo);
    const Handler owner = entry.owner.load(std::memory_order_acquire);
    struct sigaction now = {};
    if (owner == nullptr || __sigaction(signo, nullptr, &now) != 0) continue;
    if (now.sa_sigaction == owner) continue;
    entry.set_action(note_jvms(signo, now));
    install(signo, entry, nullptr);
    ++taken;
  }
  return taken;
}

struct sigaction behind(int signo) {
  Entry& entry = entry_of(signo);
  if (entry.owner.load(std::memory_order_acquire) != nullptr) return entry.action();
  struct sigaction action = {};
  __sigaction(signo, nullptr, &action);
  return action;
}

bool is_behind_jvms(int signo) {
  const struct sigaction action = behind(signo);
  return !is_default(action) && action.sa_sigaction != jvms_handler(signo);
}

uint64_t mask() {
  uint64_t now = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &now, kSignalSetBytes);
  return now;
}

uint64_t set_mask(uint64_t mask) {
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, kSignalSetBytes);
  return before;
}

Handler jvms_handler(int signo) { return entry_of(signo).jvms.load(std::memory_order_acquire); }

void set_default_action(int signo) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  __sigaction(signo, &action, nullptr);
}

void take_default_action(int signo, const siginfo_t* info) {
  set_default_action(signo);
  // A fault happens again when the handler returns and dies with its own context; a sent signal
  // does not.
  if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), gettid(), signo);
}

void forward(int signo, siginfo_t* info, void* context) {
  Entry& entry = entry_of(signo);
  struct sigaction action = entry.action();
  const bool has_siginfo = (action.sa_flags & SA_SIGINFO) != 0;
  if (!has_siginfo && action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (!has_siginfo && is_default(action)) {
    take_default_action(signo, info);
    return;
  }
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    struct sigaction reset = action;
    reset.sa_flags = 0;
    reset.sa_handler = SIG_DFL;
    entry.set_action(reset);
  }
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&action.sa_mask, signo);
  // Not by pthread_sigmask, which a walk may not call and which is interposed. Undone by the kernel
  // when the owner's handler returns.
  if (sigisemptyset(&action.sa_mask) == 0) {
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &action.sa_mask, nullptr, kSignalSetBytes);
  }
  if (has_siginfo) {
    action.sa_sigaction(signo, info, context);
  } else {
    action.sa_handler(signo);
  }
}

uintptr_t handlers_return_to() {
  // The kernel's own structure. Its last member but one is the C library's, who does not tell it.
  struct {
    void* handler;
    unsigned long flags;
    uintptr_t restorer;
    uint64_t mask;
  } action = {};
  syscall(SYS_rt_sigaction, SIGSEGV, nullptr, &action, kSignalSetBytes);
  return action.restorer;
}

void mute(int signo) {
  entry_of(signo).muted_state.store(0);
  sigset_t none;
  sigemptyset(&none);
  own(signo, &on_muted, SA_RESTART, none);
}

bool first_muted(int signo, siginfo_t* info) {
  const Entry& entry = entry_of(signo);
  if (entry.muted_state.load(std::memory_order_acquire) != 2) return false;
  *info = entry.muted;
  return true;
}

}  // namespace framestorm::signals

extern "C" {

[[gnu::visibility("default")]] int sigaction(int signo, const struct sigaction* action,
                                             struct sigaction* previous) noexcept {
  return framestorm::signals::set_action(signo, action, previous);
}

// As glibc has it: the signal is blocked meanwhile, system calls go on.
[[gnu::visibility("default")]] sighandler_t signal(int signo, sighandler_t handler) noexcept {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaddset(&action.sa_mask, signo);
  struct sigaction previous = {};
  if (sigaction(signo, &action, &previous) != 0) return SIG_ERR;
  return previous.sa_handler;
}
}
