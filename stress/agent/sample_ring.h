// Samples on their way from signal handlers to the judge: a bounded queue of many producers and one
// consumer, each cell with its own sequence number (Dmitry Vyukov, bounded MPMC queue). A producer
// writes its cell only between taking and publishing it, without waiting for anybody; one that is
// preempted there holds up the consumer at that cell, and nobody else until the ring is full.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stress/agent/sample.h"

namespace framestorm::stress {

// Producers' and consumer's positions stay on cache lines of their own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
class SampleRing {
 public:
  // `cells`: a power of two. `payload`: bytes for frames and stack in each. Throws
  // std::system_error.
  SampleRing(size_t cells, size_t payload);
  ~SampleRing();
  SampleRing(const SampleRing&) = delete;
  SampleRing& operator=(const SampleRing&) = delete;

  // Copies a sample with its frames, stack and shadow stack; false when the ring is full. Any thread;
  // async-signal-safe. The sizes are the sample's own.
  bool push(const Sample& sample, const std::byte* frames, const std::byte* stack,
            const ShadowEntry* shadow);

  struct Entry {
    const Sample* sample;
    std::byte* frames;
    const std::byte* stack;
    const std::byte* shadow_bytes = nullptr;  // not aligned
    std::vector<ShadowEntry> shadow() const;  // innermost first
  };
  // The oldest one, valid until pop(); false when there is none yet. The consumer.
  bool front(Entry* out) const;
  void pop();

 private:
  struct Header {
    std::atomic<uint64_t> sequence;
    Sample sample;
  };
  Header* cell(uint64_t position) const;
  static std::byte* payload_of(Header* header) { return reinterpret_cast<std::byte*>(header + 1); }

  size_t cells_;
  size_t payload_;
  size_t stride_;
  std::byte* memory_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) uint64_t head_ = 0;
};

}  // namespace framestorm::stress
