#include "harness/guard/write_watch.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/base/memory_map.h"
#include "harness/guard/arch.h"
#include "harness/guard/signal_table.h"
#include "harness/guard/walk_state.h"

namespace framestorm {
namespace {

// glibc's heaps, but for the first, begin at multiples of their largest size (malloc/arena.c,
// HEAP_MAX_SIZE), and with a heap_info. Of other memory, such as the walk's own stack and the array of
// its frames, one mapping in 16,384 begins there by chance.
constexpr uintptr_t kMostOfHeap = uintptr_t{64} << 20;
constexpr size_t kMostOfHeapInfo = 64;
struct HeapInfo {
  uintptr_t arena, previous;
  size_t size, accessible_size;
};
bool is_heap_of_glibc(const WriteWatch::Range& range, std::ifstream* memory) {
  if (range.begin % kMostOfHeap != 0 || range.end - range.begin > kMostOfHeap) return false;
  HeapInfo info = {};
  // By the file, since a thread that ends may unmap it meanwhile.
  memory->clear();
  memory->seekg(static_cast<std::streamoff>(range.begin));
  if (!memory->read(reinterpret_cast<char*>(&info), sizeof info)) return false;
  // The arena is behind the heap_info of its first heap.
  const uintptr_t first = info.arena - info.arena % kMostOfHeap;
  return (info.previous == 0 ? first == range.begin : info.previous % kMostOfHeap == 0) &&
         first != 0 && info.arena - first >= sizeof info && info.arena - first <= kMostOfHeapInfo &&
         info.size != 0 && info.size <= info.accessible_size && info.accessible_size <= kMostOfHeap;
}
// The allocators of LLVM's and of GCC's ASan on x86-64 (sanitizer_common's kAllocatorSpace and size).
constexpr WriteWatch::Range kAsanAllocated = {0x500000000000, 0x540000000000};
constexpr WriteWatch::Range kGccAsanAllocated = {0x600000000000, 0x640000000000};

const WriteWatch* watching = nullptr;  // in a copy of the process

uintptr_t page_of(uintptr_t address) {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return address & ~(size - 1);
}

// Ends the process by then, whatever it waits for.
void end_after(long seconds) {
  signals::set_default_action(SIGALRM);
  signals::set_mask(signals::mask() & ~(uint64_t{1} << (SIGALRM - 1)));
  const itimerval limit = {.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_REAL, &limit, nullptr);
}

bool is_allocated(const WriteWatch::Range& range, const char* name, std::ifstream* memory) {
  return std::strcmp(name, "[heap]") == 0 ||
         (name[0] == '\0' &&
          (kAsanAllocated.has(range.begin) || kGccAsanAllocated.has(range.begin) ||
           is_heap_of_glibc(range, memory)));
}

}  // namespace

void WriteWatch::Unmap::operator()(WalkWrites* writes) const { munmap(writes, sizeof(WalkWrites)); }

WriteWatch::WriteWatch() {
  void* const shared =
      mmap(nullptr, sizeof(WalkWrites), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "memory for what walks write");
  }
  writes_.reset(new (shared) WalkWrites);
  memory_.rdbuf()->pubsetbuf(nullptr, 0);
  memory_.open("/proc/self/mem", std::ios::binary);
  if (!memory_) {
    throw std::system_error(errno, std::generic_category(), "opening /proc/self/mem");
  }
}

void WriteWatch::prepare(const Range& writer, const Range& owned) {
  writer_ = writer;
  exempt_ = {};
  mappings_.clear();
  for (const MemoryMapping& mapped : read_memory_map()) {
    const auto& access = mapped.access;
    if (access[0] != 'r' || access[1] != 'w' || access[3] != 'p') continue;
    Mapping one;
    one.begin = mapped.begin;
    one.end = mapped.end;
    if (!is_allocated(one, mapped.name, &memory_)) {
      one.begin = std::max(one.begin, owned.begin);
      one.end = std::min(one.end, owned.end);
    }
    if (one.begin >= one.end) continue;
    one.protection = PROT_READ | (access[2] == 'x' ? PROT_EXEC : 0);
    mappings_.push_back(one);
  }
  page_of(0);  // a static variable is made here, not in the handler
}

void WriteWatch::make(void (*walk)(void*), void* arg) {
  const uint64_t begin = monotonic_ns();
  writes_->count = 0;
  // CLONE_VFORK: this thread waits. fork() would run what others want to be run before, which
  // takes locks. Without a signal at its end, nobody's handler hears of it.
  const long copy = syscall(SYS_clone, CLONE_VFORK, nullptr, nullptr, nullptr, nullptr);
  if (copy == 0) make_in_copy(walk, arg);
  int status = -1;  // of no process that has exited
  while (copy > 0 && syscall(SYS_wait4, copy, &status, __WALL, nullptr) < 0 && errno == EINTR) {
  }
  ++counts_.made;
  if (!WIFEXITED(status)) ++counts_.not_watched;
  ns_ = monotonic_ns() - begin;
}

void WriteWatch::make_in_copy(void (*walk)(void*), void* arg) {
  syscall(SYS_close_range, 0U, ~0U, 0U);
  end_after(kMostSeconds);
  // The kernel writes to the stacks of signals, and asks no handler.
  stack_t signal_stack = {};
  sigaltstack(nullptr, &signal_stack);
  const auto stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  watching = this;
  for (const Mapping& one : mappings_) {
    if (one.has(reinterpret_cast<uintptr_t>(signal_stack.ss_sp)) || one.has(stack)) continue;
    mprotect(reinterpret_cast<void*>(one.begin), one.end - one.begin, one.protection);
  }
  walk(arg);
  for (;;) syscall(SYS_exit_group, 0);
}

// Signal context. Where it writes itself, it comes back here first.
bool WriteWatch::takes(int signo, const siginfo_t* info, const ucontext_t* context) {
  if (watching == nullptr || signo != SIGSEGV || info->si_code != SEGV_ACCERR ||
      !arch::is_write_fault(context, signo)) {
    return false;
  }
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto mapping = std::ranges::find_if(
      watching->mappings_, [address](const Mapping& one) { return one.has(address); });
  if (mapping == watching->mappings_.end()) return false;
  const uintptr_t page = page_of(address);
  if (mprotect(reinterpret_cast<void*>(page), 1, mapping->protection | PROT_WRITE) != 0) {
    return false;
  }
  if (in_walk(walk_state) && watching->writer_.has(arch::pc_of(context)) &&
      !watching->exempt_.has(address)) {
    watching->note(address, context);
  }
  return true;
}

void WriteWatch::note(uintptr_t address, const ucontext_t* context) const {
  const uint32_t number = writes_->count++;
  if (number >= kMaxWalkWrites) return;
  WalkWrite& write = writes_->writes[number];
  write.address = address;
  write.stack_size = static_cast<uint32_t>(
      frame_pointer_backtrace(arch::pc_of(context), arch::sp_of(context), arch::fp_of(context),
                              backtrace_limit(walk_state.recovery), write.stack, kMaxStack));
}

}  // namespace framestorm
