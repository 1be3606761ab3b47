// The process AFL++ knows, in front of the one with the JVM.
//
// After every execution AFL++ stops its child (SIGSTOP) and continues it for the next, at a price
// per thread: 14 us for one thread, 456 us for the 80 of a JVM with its victims. So the child is a
// process of one thread that hands each input to another one, its worker, through shared memory:
//
//   afl-fuzz ── fork server ── front, one thread ══ futex ══ worker: JVM, victims, the walk
//              (pipes, SIGSTOP)                                └─> coverage map, shared by all
//
// The front lives and dies with its worker; AFL++ then forks the next one. A worker whose front is
// gone gets SIGTERM.
//
// A bundle is run with limits that a JVM's start does not keep (OSS-Fuzz: five seconds for an
// execution, thirty for the fork server), so there the workers come first, from a process of their
// own, and stay when a front goes:
//
//   afl-fuzz ── fork server ── front ══ futex ══ worker
//                    └─ keeper, one thread ────────┘
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace framestorm {

class AflFront {
 public:
  // Starts AFL++'s fork server, when there is an afl-fuzz, and forks the worker. In the worker:
  // returns with its output folder, a new one in `out`, to which its output goes; from then on
  // `this` is the worker's end. In the
  // front: does not return. Neither thread nor JVM yet. Throws SetupError.
  std::filesystem::path start(const std::filesystem::path& out, size_t map_size);

  // The same for a bundle: a worker is ready before the fork server says so. Returns in each
  // worker; nothing is written.
  void start_ahead(size_t map_size);

  // Worker -------------------------------------------------------------------------------------
  // Waits for the next input, at most kPatience. Valid until done(). False: none has come.
  bool wait(std::span<const uint8_t>* bytes);
  // The map is written.
  void done();
  static std::span<uint8_t> map();

 private:
  static constexpr size_t kMaxInput = size_t{64} << 10;
  struct Channel {
    std::atomic<uint32_t> given{0};  // inputs given, and futex word
    std::atomic<uint32_t> done{0};   // inputs executed, and futex word
    std::atomic<uint32_t> ready{0};  // whether there is a worker that waits or executes
    std::atomic<uint32_t> ends{0};   // workers that ended, start_ahead() only
    std::atomic<int> last_end{0};    // how the last of them did
    uint32_t size = 0;
    uint8_t data[kMaxInput];
  };

  void run_front(int worker, const std::filesystem::path& folder);
  void run_kept_front();
  void keep_workers();
  bool await_worker() const;
  void take_input();

  Channel* channel_ = nullptr;  // mapped for the life of both processes
};

}  // namespace framestorm
