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
#include "harness/jvm/error.h"

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

  void* memory =
      mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw SetupError("no memory to share with the process of the JVM");
  channel_ = new (memory) Channel;
  const std::filesystem::path folder = out.empty() ? out : new_folder(out);
  const pid_t front = getpid();
  const pid_t worker = fork();
  if (worker < 0) throw SetupError(std::string("cannot fork: ") + std::strerror(errno));
  if (worker != 0) run_front(worker, folder);
  die_with_parent(SIGTERM, front);
  if (!folder.empty()) write_to(folder / "log.txt");
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
  // As Python's subprocess says it: the exit code, or the negative number of the signal.
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  if (!folder.empty()) std::ofstream(folder / "exit") << code << '\n';
  // --strict: a finding is a crash, for AFL++ too.
  if (code == kExitFinding || code == kExitTimeout) {
    signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  _exit(code == kExitSetup ? kExitSetup : kExitDone);
}

bool AflFront::wait(std::span<const uint8_t>* bytes) {
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
