#include "fuzz/afl_front.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "fuzz/options.h"
#include "harness/base/error.h"

// afl-compiler-rt.o (AFL++'s instrumentation/README.persistent_mode.md).
// NOLINTBEGIN(readability-identifier-naming): its names.
extern "C" {
extern uint8_t* __afl_area_ptr;
extern uint32_t __afl_map_size;
extern uint8_t* __afl_fuzz_ptr;
extern uint32_t* __afl_fuzz_len;
extern int __afl_sharedmem_fuzzing;
void __afl_manual_init();
int __afl_persistent_loop(unsigned int executions);
}
// NOLINTEND(readability-identifier-naming)

namespace framestorm {
namespace {

// afl-fuzz looks for these strings in the program's file.
[[gnu::used]] const char kPersistent[] = "##SIG_AFL_PERSISTENT##";
[[gnu::used]] const char kDeferred[] = "##SIG_AFL_DEFER_FORKSRV##";

constexpr long kPatienceNs = 50'000'000;
constexpr int kMostFolders = 1'000'000;

// Sleeps while *word is `value`, at most kPatienceNs.
void sleep_on(std::atomic<uint32_t>* word, uint32_t value) {
  const timespec patience = {0, kPatienceNs};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT, value, &patience, nullptr, 0);
}

void wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::filesystem::path new_folder(const std::filesystem::path& out) {
  for (int i = 0; i < kMostFolders; ++i) {
    char name[24];
    std::snprintf(name, sizeof name, "worker-%03d", i);
    if (std::filesystem::create_directory(out / name)) return out / name;
  }
  throw SetupError(out.string() + " holds too many workers");
}

void write_to(const std::filesystem::path& log) {
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw SetupError("cannot write " + log.string() + ": " + std::strerror(errno));
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  close(fd);
}

void die_with_parent(int signal, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);
}

void on_child(int) {}  // only to interrupt a sleep

void* shared_memory(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw SetupError("no memory to share with the process of the JVM");
  return memory;
}

pid_t forked() {
  const pid_t child = fork();
  if (child < 0) throw SetupError(std::string("cannot fork: ") + std::strerror(errno));
  return child;
}

// As Python's subprocess says it: the exit code, or the negative number of the signal.
int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

// What AFL++ is to see: a finding, in strict mode, is a crash.
[[noreturn]] void end_front(int code) {
  if (code == kExitFinding || code == kExitTimeout || code < 0) {
    signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  _exit(code == kExitSetup ? kExitSetup : kExitDone);
}

}  // namespace

std::filesystem::path AflFront::start(const std::filesystem::path& out, size_t map_size) {
  __afl_sharedmem_fuzzing = 1;
  const bool has_map = getenv("__AFL_SHM_ID") != nullptr;
  // Without afl-fuzz the runtime's own area is large enough for any map.
  if (has_map) __afl_map_size = static_cast<uint32_t>(map_size);
  const pid_t server = getpid();
  __afl_manual_init();
  // From here on in a child of the fork server, or where the program was started by hand.
  if (getpid() != server) die_with_parent(SIGKILL, server);

  channel_ = new (shared_memory(sizeof(Channel))) Channel;
  const std::filesystem::path folder = new_folder(out);
  const pid_t front = getpid();
  const pid_t worker = forked();
  if (worker != 0) run_front(worker, folder);
  die_with_parent(SIGTERM, front);
  write_to(folder / "log.txt");
  return folder;
}

void AflFront::take_input() {
  if (__afl_fuzz_ptr != nullptr) {
    channel_->size = static_cast<uint32_t>(std::min<size_t>(*__afl_fuzz_len, kMaxInput));
    std::memcpy(channel_->data, __afl_fuzz_ptr, channel_->size);
    return;
  }
  channel_->size = 0;
  lseek(STDIN_FILENO, 0, SEEK_SET);  // afl-tmin writes every candidate to the same file
  ssize_t got = 0;
  while (channel_->size < kMaxInput && (got = read(STDIN_FILENO, channel_->data + channel_->size,
                                                   kMaxInput - channel_->size)) > 0) {
    channel_->size += static_cast<uint32_t>(got);
  }
}

void AflFront::run_front(int worker, const std::filesystem::path& folder) {
  struct sigaction action = {};
  action.sa_handler = &on_child;
  sigaction(SIGCHLD, &action, nullptr);
  int status = 0;
  bool ended = false;
  while (!ended && __afl_persistent_loop(UINT_MAX) != 0) {
    take_input();
    const uint32_t number = channel_->given.fetch_add(1) + 1;
    wake(&channel_->given);
    for (;;) {
      const uint32_t done = channel_->done.load();
      if (done == number) break;
      sleep_on(&channel_->done, done);
      // It says what it reached before it ends, so a last look is not needed. Most often it does
      // not end, and is not asked about.
      if (channel_->done.load() != number && waitpid(worker, &status, WNOHANG) == worker) {
        ended = true;
        break;
      }
    }
  }
  if (!ended) {
    kill(worker, SIGTERM);
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
  }
  const int code = code_of(status);
  std::ofstream(folder / "exit") << code << '\n';
  // A worker that died is a finding of whoever looks at its folder.
  end_front(code < 0 ? kExitDone : code);
}

void AflFront::start_ahead(size_t map_size) {
  __afl_sharedmem_fuzzing = 1;
  if (getenv("__AFL_SHM_ID") != nullptr) __afl_map_size = static_cast<uint32_t>(map_size);
  channel_ = new (shared_memory(sizeof(Channel))) Channel;
  const pid_t server = getpid();
  const pid_t keeper = forked();
  if (keeper == 0) {
    die_with_parent(SIGKILL, server);
    keep_workers();
    return;
  }
  while (channel_->ready.load() == 0) {
    sleep_on(&channel_->ready, 0);
    // It ends when its first worker does, which has said why.
    if (waitpid(keeper, nullptr, WNOHANG) == keeper) _exit(kExitSetup);
  }
  __afl_manual_init();
  if (getpid() != server) die_with_parent(SIGKILL, server);
  run_kept_front();
}

// In the keeper. Returns in each worker.
void AflFront::keep_workers() {
  // A front that is gone in the midst of an execution took too long: its worker gets this many
  // more sleeps of kPatienceNs.
  constexpr int kMostSleeps = 200;
  const pid_t keeper = getpid();
  for (;;) {
    const pid_t worker = forked();
    if (worker == 0) {
      die_with_parent(SIGKILL, keeper);
      return;
    }
    int status = 0;
    uint32_t stuck_at = 0;
    int stuck = 0;
    while (waitpid(worker, &status, WNOHANG) != worker) {
      const uint32_t done = channel_->done.load();
      const bool busy = channel_->ready.load() != 0 && channel_->given.load() != done;
      stuck = busy && done == stuck_at ? stuck + 1 : 0;
      stuck_at = done;
      if (stuck > kMostSleeps) kill(worker, SIGKILL);
      const timespec moment = {0, kPatienceNs};
      nanosleep(&moment, nullptr);
    }
    const bool was_ready = channel_->ready.exchange(0) != 0;
    if (!was_ready) _exit(kExitSetup);
    channel_->last_end.store(code_of(status));
    // In this order: who sees that nothing is left to wait for also sees why.
    channel_->ends.fetch_add(1);
    channel_->done.store(channel_->given.load());
    wake(&channel_->done);
  }
}

// In a front: until there is a worker, and nothing that a front before this one gave it. False when
// there will be none.
bool AflFront::await_worker() const {
  const pid_t server = getppid();
  while (channel_->ready.load() == 0 || channel_->done.load() != channel_->given.load()) {
    const timespec moment = {0, kPatienceNs / 10};
    nanosleep(&moment, nullptr);
    if (getppid() != server) return false;
  }
  return true;
}

void AflFront::run_kept_front() {
  while (__afl_persistent_loop(UINT_MAX) != 0) {
    if (!await_worker()) _exit(kExitSetup);
    const uint32_t ends = channel_->ends.load();
    take_input();
    const uint32_t number = channel_->given.fetch_add(1) + 1;
    wake(&channel_->given);
    for (;;) {
      const uint32_t done = channel_->done.load();
      if (channel_->ends.load() != ends) end_front(channel_->last_end.load());
      if (done == number) break;
      sleep_on(&channel_->done, done);
    }
  }
  _exit(kExitDone);
}

bool AflFront::wait(std::span<const uint8_t>* bytes) {
  if (channel_->ready.load(std::memory_order_relaxed) == 0) {
    channel_->ready.store(1);
    wake(&channel_->ready);
  }
  const uint32_t done = channel_->done.load();
  if (channel_->given.load() == done) sleep_on(&channel_->given, done);
  if (channel_->given.load() == done) return false;
  *bytes = {channel_->data, channel_->size};
  return true;
}

void AflFront::done() {
  channel_->done.fetch_add(1);
  wake(&channel_->done);
}

std::span<uint8_t> AflFront::map() { return {__afl_area_ptr, __afl_map_size}; }

}  // namespace framestorm
