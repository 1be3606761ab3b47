// Which walks are watched for writes (guard/write_watch.h), and what is watched for them.
#pragma once

#include <cstdint>

#include "harness/executor/address_space.h"
#include "harness/guard/write_watch.h"
#include "harness/jvm/jvm.h"
#include "harness/victim/victims.h"
#include "harness/walkers/walker.h"

namespace framestorm {

class WriteWatching {
 public:
  // A watched walk takes some 10 ms, which it takes to copy a JVM's page tables, and more where ASan
  // has its own. So it is seldom made. It is the first of its halt: what walks fill where they find
  // nothing is least filled when threads have just run.
  static constexpr uint64_t kShareOfTime = 16;
  enum class Pace : uint8_t { share_of_time, each_walk };

  WriteWatching(const Jvm& jvm, const AddressSpace& addresses) : jvm_(jvm), addresses_(addresses) {}

  void set_pace(Pace pace) { pace_ = pace; }

  // Of the walk that is next, prepared; null where it is not watched. `observed`:
  // Victims::observed(). On the thread that makes the walk, not in one.
  WriteWatch* prepare(const Walker& walker, const Victim& victim, uint64_t observed);
  const WriteWatch::Counts& counts() const { return watch_.counts(); }

 private:
  const Jvm& jvm_;
  const AddressSpace& addresses_;
  WriteWatch watch_;
  Pace pace_ = Pace::share_of_time;
  uint64_t walked_at_ = 0, prepared_at_ = 0;  // halts, as `observed`
  uint64_t last_ns_ = 0;
};

}  // namespace framestorm
