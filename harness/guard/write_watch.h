// Which instructions of a walk write to memory that others own: what its VM has allocated, and the
// code cache. The walk is made once more for it, in a copy of the process, where these pages are
// read-only and no other thread is that could write to them:
//
//   process        its copy: the calling thread alone       handler of SIGSEGV there
//   ───────────    ──────────────────────────────────────   ────────────────────────────────────────
//   copies    ──>  the walk writes, and faults         ──>  notes address and callers, makes the page
//   waits          writes once more                    <──  writable again
//   writes    <──  ends
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <vector>

#include "harness/base/address_range.h"
#include "harness/guard/guard.h"

namespace framestorm {

class WriteWatch {
 public:
  using Range = AddressRange;

  // Throws std::system_error.
  WriteWatch();

  // Reads from /proc what memory there is now. `writer`: of whose instructions writes are noted.
  // `owned`: memory that is watched beside what is allocated.
  void prepare(const Range& writer, const Range& owned);
  // Memory in there that the walk may write to.
  void exempt(const Range& memory) { exempt_ = memory; }

  // Makes walk(arg) in a copy of the process, and waits for its end; kMostSeconds at most, since locks
  // that other threads held stay so there. What it writes is noted in writes(), nothing where the
  // process cannot be copied. The copy has no file open, so that nothing is said twice.
  // Async-signal-safe, not in a walk.
  static constexpr long kMostSeconds = 1;
  void make(void (*walk)(void*), void* arg);
  // Of the last walk, and how long it took with its copy.
  const WalkWrites& writes() const { return *writes_; }
  uint64_t ns() const { return ns_; }
  // Of all walks: how many, and of how many there was no copy, or one that did not end by itself.
  struct Counts {
    uint64_t made = 0, not_watched = 0;
  };
  const Counts& counts() const { return counts_; }

  // In the handler, before anything that writes: whether the fault was one of those.
  static bool takes(int signo, const siginfo_t* info, const ucontext_t* context);

 private:
  struct Mapping : Range {
    int protection = 0;
  };
  struct Unmap {
    void operator()(WalkWrites* writes) const;
  };
  [[noreturn]] void make_in_copy(void (*walk)(void*), void* arg);
  void note(uintptr_t address, const ucontext_t* context) const;

  std::vector<Mapping> mappings_;
  std::ifstream memory_;  // of this process
  Range writer_, exempt_;
  std::unique_ptr<WalkWrites, Unmap> writes_;  // shared with the copies
  uint64_t ns_ = 0;
  Counts counts_;
};

}  // namespace framestorm
