// A libjvm for tests whose AsyncGetCallTrace has one defect of each kind, compiled as the walkers
// of the sanitized JDK are. A stock HotSpot's libjvm, which it is linked against, does everything
// else. Which one a walk meets is in its context: the low bits of sp and fp. No seed leads to one,
// as AFL++ walks the seeds in each new process: one that ends the process would end them all.
#include <dlfcn.h>
#include <jni.h>
#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

namespace {

constexpr size_t kSize = 16;

volatile char* block;
volatile char* freed;
volatile int largest = INT_MAX;
volatile int sink;

constexpr int kWalksBefore = 100;
std::atomic<int> walks{0};
std::atomic<bool> walked_enough{false};

void (*real_walk)(void* trace, jint depth, void* ucontext);

// The low bits of a register; 0 where there is no context, which may be misaligned itself.
uint64_t low_bits(const void* ucontext, size_t reg) {
  if (ucontext == nullptr) return 0;
  greg_t value = 0;
  const size_t offset = offsetof(ucontext_t, uc_mcontext.gregs) + reg * sizeof value;
  std::memcpy(&value, static_cast<const char*>(ucontext) + offset, sizeof value);
  return static_cast<uint64_t>(value) % 8;
}

}  // namespace

// By these names findings are told apart.
[[gnu::noinline, maybe_unused]] static void read_past_a_block() { sink = block[kSize]; }
[[gnu::noinline, maybe_unused]] static void read_a_freed_block() { sink = freed[0]; }
[[gnu::noinline, maybe_unused]] static void add_to_the_largest() { sink = largest + 1; }

extern "C" {

// What framestorm looks for in this library itself.
JNIEXPORT void* gHotSpotVMStructs;

JNIEXPORT void AsyncGetCallTrace(void* trace, jint depth, void* ucontext) {
#ifdef ELSEWHERE
  if (++walks == kWalksBefore) {
    walked_enough = true;
    walked_enough.notify_one();
  }
#else
  if (low_bits(ucontext, REG_RSP) == 2) read_past_a_block();
  if (low_bits(ucontext, REG_RBP) == 2) read_a_freed_block();
  if (low_bits(ucontext, REG_RSP) == 4) add_to_the_largest();
#endif
  real_walk(trace, depth, ucontext);
}
}

namespace {

[[gnu::constructor]] void prepare() {
  block = new char[kSize]{};
  freed = new char[kSize]{};
  delete[] freed;
  gHotSpotVMStructs = *static_cast<void**>(dlsym(RTLD_NEXT, "gHotSpotVMStructs"));
  real_walk = reinterpret_cast<decltype(real_walk)>(dlsym(RTLD_NEXT, "AsyncGetCallTrace"));
#ifdef ELSEWHERE
  std::thread([] {
    walked_enough.wait(false);
    // Until the process has written down that it walks. No sleep: its time stands still while the
    // world is halted.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < deadline) {
    }
    read_past_a_block();
  }).detach();
#endif
}

}  // namespace
