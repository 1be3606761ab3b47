#include "harness/oracles/further_walks.h"

#include <algorithm>

#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {

FurtherWalk FurtherWalk::again(const WalkView& first) {
  return {.walker = first.record.walker,
          .depth = first.record.depth,
          .options = first.record.options,
          .calls = first.subject.input->has_calls()};
}

FurtherWalk FurtherWalk::apart(const WalkView& first) {
  const FurtherWalk walk = again(first);
  return first.may_read_itself() ? walk.aside() : walk;
}

FurtherWalk FurtherWalk::as(const WalkView& first, WalkerId walker, uint32_t options, Place place) {
  return {.walker = walker, .depth = first.record.depth, .options = options, .place = place};
}

FurtherWalk FurtherWalk::by_witness(const WalkView& first) {
  constexpr int32_t kDepth = 1024;
  return as(first, kWitness.id, 0).with_depth(kDepth);
}

FurtherWalk FurtherWalk::with_depth(int32_t other) const {
  FurtherWalk walk = *this;
  walk.depth = other;
  return walk;
}

FurtherWalk FurtherWalk::aside() const {
  FurtherWalk walk = *this;
  walk.place = Place::aside;
  return walk;
}

FurtherWalk FurtherWalk::over(uint32_t other_stale_words) const {
  FurtherWalk walk = *this;
  walk.stale_words = other_stale_words;
  return walk;
}

FurtherWalk FurtherWalk::once_more() const {
  FurtherWalk walk = *this;
  ++walk.number;
  return walk;
}

FurtherWalk FurtherWalk::without_context() const {
  FurtherWalk walk = *this;
  walk.has_context = false;
  return walk;
}

void FurtherWalks::add(const FurtherWalk& walk) {
  if (size_ < kCapacity && !has(walk)) walks_[size_++] = walk;
}

bool FurtherWalks::has(const FurtherWalk& walk) const {
  return std::ranges::find(all(), walk) != all().end();
}

const WalkRecord* Further::make(const FurtherWalk& walk) {
  FurtherWalks declared;
  if (oracle_.ask != nullptr) oracle_.ask(first_, &declared);
  if (!declared.has(walk)) {
    ++undeclared_;
    return nullptr;
  }
  if (!maker_.offers(walk)) {
    ++not_offered_;
    return nullptr;
  }
  return maker_.make(walk);
}

FurtherView::FurtherView(const WalkView& first, const FurtherWalk& walk, const WalkRecord& record,
                         const Walker& walker)
    : input_(*first.subject.input), subject_(first.subject), view_{record, subject_} {
  input_.walker = walk.walker;
  input_.call.options = walk.options;
  if (!walk.has_context) input_.call.context = ContextArg::null;
  if (!walk.calls) {
    input_.iterator_calls.clear();
    input_.queue_calls.clear();
  }
  if (walk.depth != first.record.depth) {
    input_.call.depth = DepthKind::raw;
    input_.call.raw_depth = walk.depth;
  }
  subject_.input = &input_;
  subject_.walker = &walker;
}

}  // namespace framestorm
