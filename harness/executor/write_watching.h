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
  // In so many walks one is watched, beside the first of each halt.
  static constexpr uint32_t kShare = 4096;

  WriteWatching(const Jvm& jvm, const AddressSpace& addresses) : jvm_(jvm), addresses_(addresses) {}

  // Of the walk that is next, prepared; null where it is not watched. `number`: of the walk.
  // `observed`: Victims::observed(). `each`: no walk is too costly. On the thread that makes the
  // walk, not in one.
  WriteWatch* prepare(const Walker& walker, const Victim& victim, uint32_t number,
                      uint64_t observed, bool each);

 private:
  const Jvm& jvm_;
  const AddressSpace& addresses_;
  WriteWatch watch_;
  uint64_t watched_at_ = 0;
};

}  // namespace framestorm
