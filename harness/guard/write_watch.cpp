#include "harness/guard/write_watch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "harness/guard/arch.h"
#include "harness/guard/walk_state.h"

namespace framestorm {
namespace {

// glibc's heaps, but for the first, begin at multiples of their largest size (malloc/arena.c,
// HEAP_MAX_SIZE). A Java heap, which begins so, too, is larger, and takes milliseconds to protect.
constexpr uintptr_t kMostOfArena = uintptr_t{64} << 20;
bool may_be_arena(const WriteWatch::Range& range) {
  return range.begin % kMostOfArena == 0 && range.end - range.begin <= kMostOfArena;
}
// ASan's allocator (sanitizer_common's kAllocatorSpace and size on x86-64).
constexpr WriteWatch::Range kAsanAllocated = {0x600000000000, 0x640000000000};

std::atomic<WriteWatch*> watching{nullptr};
std::atomic<bool> has_watched{false};
std::atomic<uintptr_t> last_late{0};

// Whether a write that faulted is to be made again: another thread's may be told of when the watch
// is over, and its page writable. At a page that is not, it faults there again.
bool may_be_late(uintptr_t address) {
  return has_watched.load() && last_late.exchange(address) != address;
}

uintptr_t page_of(uintptr_t address) {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return address & ~(size - 1);
}

bool is_allocated(const WriteWatch::Range& range, const char* name) {
  return std::strcmp(name, "[heap]") == 0 ||
         (name[0] == '\0' && (may_be_arena(range) || kAsanAllocated.has(range.begin)));
}

}  // namespace

void WriteWatch::prepare(const Range& writer, const Range& owned) {
  writer_ = writer;
  exempt_ = {};
  mappings_.clear();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping one;
    char access[5] = "", name[16] = "";
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %15s", &one.begin,
                    &one.end, access, name) < 3 ||
        access[0] != 'r' || access[1] != 'w' || access[3] != 'p') {
      continue;
    }
    if (!is_allocated(one, name)) {
      one.begin = std::max(one.begin, owned.begin);
      one.end = std::min(one.end, owned.end);
    }
    if (one.begin >= one.end) continue;
    one.protection = PROT_READ | (access[2] == 'x' ? PROT_EXEC : 0);
    mappings_.push_back(one);
  }
  page_of(0);  // a static variable is made here, not in the handler
}

void WriteWatch::begin(WalkWrites* writes) {
  writes->count = 0;
  writes_ = writes;
  // The kernel writes to it, and asks no handler.
  stack_t signal_stack = {};
  sigaltstack(nullptr, &signal_stack);
  watching.store(this);
  for (const Mapping& one : mappings_) {
    if (one.has(reinterpret_cast<uintptr_t>(signal_stack.ss_sp))) continue;
    mprotect(reinterpret_cast<void*>(one.begin), one.end - one.begin, one.protection);
  }
}

void WriteWatch::end() {
  for (const Mapping& one : mappings_) {
    mprotect(reinterpret_cast<void*>(one.begin), one.end - one.begin, one.protection | PROT_WRITE);
  }
  has_watched.store(true);
  watching.store(nullptr);
}

// Signal context, on any thread. Where it writes itself, it comes back here first.
bool WriteWatch::takes(int signo, const siginfo_t* info, const ucontext_t* context) {
  if (signo != SIGSEGV || info->si_code != SEGV_ACCERR || !arch::is_write_fault(context, signo)) {
    return false;
  }
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  WriteWatch* const watch = watching.load();
  if (watch == nullptr) return may_be_late(address);
  const auto mapping = std::ranges::find_if(
      watch->mappings_, [address](const Mapping& one) { return one.has(address); });
  if (mapping == watch->mappings_.end()) return false;
  const uintptr_t page = page_of(address);
  if (mprotect(reinterpret_cast<void*>(page), 1, mapping->protection | PROT_WRITE) != 0) {
    return false;
  }
  if (in_walk(walk_state) && watch->writer_.has(arch::pc_of(context)) &&
      !watch->exempt_.has(address)) {
    watch->note(address, context);
  }
  return true;
}

void WriteWatch::note(uintptr_t address, const ucontext_t* context) {
  const uint32_t number = writes_->count++;
  if (number >= kMaxWalkWrites) return;
  WalkWrite& write = writes_->writes[number];
  write.address = address;
  write.stack_size = static_cast<uint32_t>(
      frame_pointer_backtrace(arch::pc_of(context), arch::sp_of(context), arch::fp_of(context),
                              backtrace_limit(walk_state.recovery), write.stack, kMaxStack));
}

}  // namespace framestorm
