#include "stress/agent/sample_ring.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

namespace framestorm::stress {

SampleRing::SampleRing(size_t cells, size_t payload)
    : cells_(cells),
      payload_((payload + 63) & ~size_t{63}),
      stride_((sizeof(Header) + payload_ + 63) & ~size_t{63}) {
  void* const memory = mmap(nullptr, cells_ * stride_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping the sample buffer");
  }
  memory_ = static_cast<std::byte*>(memory);
  for (size_t i = 0; i < cells_; ++i) {
    auto* header = new (memory_ + i * stride_) Header;
    header->sequence.store(i, std::memory_order_relaxed);
  }
}

SampleRing::~SampleRing() { munmap(memory_, cells_ * stride_); }

SampleRing::Header* SampleRing::cell(uint64_t position) const {
  return reinterpret_cast<Header*>(memory_ + (position & (cells_ - 1)) * stride_);
}

bool SampleRing::push(const Sample& sample, const std::byte* frames, const std::byte* stack,
                      const ShadowEntry* shadow) {
  uint64_t position = tail_.load(std::memory_order_relaxed);
  Header* header = nullptr;
  for (;;) {
    header = cell(position);
    const uint64_t sequence = header->sequence.load(std::memory_order_acquire);
    if (sequence == position) {
      if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) break;
    } else if (sequence < position) {
      return false;
    } else {
      position = tail_.load(std::memory_order_relaxed);
    }
  }
  header->sample = sample;
  std::byte* const payload = payload_of(header);
  std::memcpy(payload, frames, sample.frame_bytes);
  std::memcpy(payload + sample.frame_bytes, stack, sample.stack_bytes);
  std::memcpy(payload + sample.frame_bytes + sample.stack_bytes, shadow,
              sample.shadow_count * sizeof(ShadowEntry));
  header->sequence.store(position + 1, std::memory_order_release);
  return true;
}

bool SampleRing::front(Entry* out) const {
  Header* const header = cell(head_);
  if (header->sequence.load(std::memory_order_acquire) != head_ + 1) return false;
  out->sample = &header->sample;
  out->frames = payload_of(header);
  out->stack = out->frames + header->sample.frame_bytes;
  out->shadow_bytes = out->stack + header->sample.stack_bytes;
  return true;
}

std::vector<ShadowEntry> SampleRing::Entry::shadow() const {
  std::vector<ShadowEntry> entries(sample->shadow_count);
  if (!entries.empty()) {
    std::memcpy(entries.data(), shadow_bytes, entries.size() * sizeof(ShadowEntry));
  }
  return entries;
}

void SampleRing::pop() {
  cell(head_)->sequence.store(head_ + cells_, std::memory_order_release);
  ++head_;
}

}  // namespace framestorm::stress
