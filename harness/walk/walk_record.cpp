#include "harness/walk/walk_record.h"

#include <bit>

namespace framestorm {
namespace {

// FNV-1a, a word at a time.
class Digest {
 public:
  void add(uint64_t word) { value_ = (value_ ^ word) * kPrime; }
  void add(const void* pointer) { add(std::bit_cast<uintptr_t>(pointer)); }
  uint64_t value() const { return value_; }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

uint64_t digest_of_answer(const WalkRecord& record, const FrameLayout& layout) {
  Digest digest;
  digest.add(static_cast<uint64_t>(record.end));
  if (record.end != WalkEnd::returned) return digest.value();
  digest.add(static_cast<uint64_t>(record.result));
  if (record.has_facts) {
    const WalkFacts& facts = record.facts;
    digest.add(facts.has_kind ? static_cast<uint64_t>(facts.kind) : 0);
    digest.add(facts.has_state ? static_cast<uint64_t>(facts.state) : 0);
    digest.add(facts.has_env ? facts.env : nullptr);
    digest.add(facts.stopped);
    digest.add(uint64_t{facts.left_out_frozen});
    digest.add(facts.complaint_count);
  }
  for (size_t i = 0; i < record.frame_count(); ++i) {
    const Frame frame = read_frame(layout, record.frames, i);
    digest.add(frame.method);
    digest.add(static_cast<uint64_t>(frame.bci));
    digest.add(uint64_t{frame.pc});
    digest.add(uint64_t{frame.sp});
    digest.add(uint64_t{frame.bcp});
    digest.add(static_cast<uint64_t>(frame.type));
    digest.add(static_cast<uint64_t>(frame.tier));
    digest.add(uint64_t{frame.unnamed});
    digest.add(frame.name);
  }
  return digest.value();
}

}  // namespace framestorm
