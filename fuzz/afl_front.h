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
  // returns with its output folder, a new one in `out`, to which its output goes (without `out`,
  // none, and it goes where this process's does); from then on `this` is the worker's end. In the
  // front: does not return. Neither thread nor JVM yet. Throws SetupError.
  std::filesystem::path start(const std::filesystem::path& out, size_t map_size);

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
    uint32_t size = 0;
    uint8_t data[kMaxInput];
  };

  void run_front(int worker, const std::filesystem::path& folder);
  void take_input();

  Channel* channel_ = nullptr;  // mapped for the life of both processes
};

}  // namespace framestorm
