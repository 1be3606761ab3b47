// Which instructions of a walk write to memory that others own: what its VM has allocated, and the
// code cache. Those pages are read-only meanwhile. The first write to each is noted, and goes on:
//
//   walk                            handler of SIGSEGV
//   ─────────────────────────────   ──────────────────────────────────────────────────────────
//   writes, and faults        ──>   notes address and callers, makes the page writable again
//   writes once more          <──
//
// Whoever else writes there meanwhile, the guard among them, goes on in the same way and is not noted.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/guard/guard.h"

namespace framestorm {

class WriteWatch {
 public:
  struct Range {
    uintptr_t begin = 0, end = 0;
    bool has(uintptr_t address) const { return address >= begin && address < end; }
  };

  // Reads from /proc what memory there is now. `writer`: of whose instructions writes are noted.
  // `owned`: memory that is watched beside what is allocated.
  void prepare(const Range& writer, const Range& owned);
  // Memory in there that the walk may write to.
  void exempt(const Range& memory) { exempt_ = memory; }

  // The walk that follows on this thread is watched until end(); one at a time. Writes are noted in
  // *writes, from none on. Both async-signal-safe, neither in a walk.
  void begin(WalkWrites* writes);
  void end();

  // In the handler, before anything that writes: whether the fault was one of those.
  static bool takes(int signo, const siginfo_t* info, const ucontext_t* context);

 private:
  struct Mapping : Range {
    int protection = 0;
  };
  void note(uintptr_t address, const ucontext_t* context);

  std::vector<Mapping> mappings_;
  Range writer_, exempt_;
  WalkWrites* writes_ = nullptr;
};

}  // namespace framestorm
