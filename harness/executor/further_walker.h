// The walk that an executor has prepared, and those that oracles ask for beside it. For executor.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "harness/executor/executor.h"
#include "harness/executor/given_context.h"
#include "harness/executor/mutations.h"
#include "harness/walk/run_walk.h"

namespace framestorm {

// On the host's stack. Signal context in same-thread mode.
struct HostedWalk {
  WalkCall call;
  WalkRecord* record;
  Incidents* incidents;

  static void run(void* self) {
    const auto* walk = static_cast<HostedWalk*>(self);
    run_walk(walk->call, walk->record, walk->incidents);
  }
};

// Whether a process must not walk on after this walk.
bool ends_reuse(const WalkRecord& record, const Walker& walker);

struct Executor::Prepared {
  const Input* input = nullptr;
  Victim* victim = nullptr;
  const Victim* asked = nullptr;  // whom the call names; null: nobody
  Walker* walker = nullptr;
  WalkTarget target;
  AppliedMutations mutations;
  ucontext_t expected_context;
  GivenContext context;
  WalkRecord record;
  Incidents incidents;
};

// Walks the prepared victim again, with the same mutations, and has these walks judged.
class Executor::FurtherWalker final : public WalkMaker {
 public:
  explicit FurtherWalker(Executor* executor) : executor_(*executor) {}

  void begin(const WalkView& first, bool not_reusable) {
    first_ = &first;
    kept_count_ = 0;
    abandoned_ = false;
    not_reusable_ = not_reusable;
  }

  const Walker* walker(WalkerId id) const override { return executor_.walker(id); }
  bool offers(const FurtherWalk& walk) const override { return walker(walk.walker) != nullptr; }
  const WalkRecord* make(const FurtherWalk& walk) override;

  // A walk did not return, or was one after which the process must not walk on (a lock that it
  // keeps, the next one would wait for); then no further one is made.
  bool abandoned() const { return abandoned_; }
  bool not_reusable() const { return not_reusable_; }
  std::vector<Finding> take_findings() { return std::exchange(findings_, {}); }

 private:
  struct Kept {
    WalkRecord record;
    std::vector<std::byte> frames;
  };
  Kept& next_kept() {
    if (kept_count_ == kept_.size()) kept_.push_back(std::make_unique<Kept>());
    return *kept_[kept_count_++];
  }

  Executor& executor_;
  const WalkView* first_ = nullptr;
  GivenContext context_;
  Incidents incidents_;
  std::vector<std::unique_ptr<Kept>> kept_;  // storage for the next view's
  size_t kept_count_ = 0;
  bool abandoned_ = false;
  bool not_reusable_ = false;
  std::vector<Finding> findings_;
};

}  // namespace framestorm
