// Walks of the same victim that oracles compare a walk with. Each is declared before it is asked
// for, so that a driver can make it ahead, while the victim stands still, or on request.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "harness/oracles/walk_view.h"

namespace framestorm {

struct OracleDeclaration;

// What a further walk is; everything else is as in the first one.
struct FurtherWalk {
  enum class Place : uint8_t {
    same,  // where the first walk was made
    // On the same thread, but not on its stack: nothing runs below the victim's sp, so that what
    // is read there is the same in all walks made aside. If these differ too, it is the walker.
    aside
  };
  WalkerId walker = kDefaultWalker;
  int32_t depth = 0;
  uint32_t options = 0;     // CallArgs::options
  bool calls = false;       // makes those of the input
  bool has_context = true;  // the first one's, else null
  Place place = Place::same;
  // WalkCall::stale_words, where the first walk has any.
  uint32_t stale_words = 0;
  uint8_t number = 0;  // tells walks apart that are the same otherwise

  // The same walk once more.
  static FurtherWalk again(const WalkView& first);
  // The same where it may read its own stack: then aside.
  static FurtherWalk apart(const WalkView& first);
  // Without iterator calls, which change a trace's frames.
  static FurtherWalk as(const WalkView& first, WalkerId walker, uint32_t options,
                        Place place = Place::same);
  // By kWitness, whatever the first one's depth.
  static FurtherWalk by_witness(const WalkView& first);
  FurtherWalk with_depth(int32_t other) const;
  FurtherWalk aside() const;
  FurtherWalk over(uint32_t other_stale_words) const;
  FurtherWalk once_more() const;
  FurtherWalk without_context() const;
  bool operator==(const FurtherWalk&) const = default;
};

// A list without repetitions. Fixed capacity, async-signal-safe.
class FurtherWalks {
 public:
  static constexpr size_t kCapacity = 24;

  // What there is no room for is not in the list: it counts as not declared.
  void add(const FurtherWalk& walk);
  bool has(const FurtherWalk& walk) const;
  std::span<const FurtherWalk> all() const { return {walks_.data(), size_}; }

 private:
  std::array<FurtherWalk, kCapacity> walks_;
  size_t size_ = 0;
};

// The driver's half: makes walks, or has them made.
class WalkMaker {
 public:
  virtual ~WalkMaker() = default;
  // Null when there is none.
  virtual const Walker* walker(WalkerId id) const = 0;
  // Whether such a walk can be had here at all.
  virtual bool offers(const FurtherWalk& walk) const = 0;
  // Null when the walk, or one before it, did not return, and where it is not to be compared. Valid
  // as long as the view. What such a walk does wrong by itself is the driver's to report.
  virtual const WalkRecord* make(const FurtherWalk& walk) = 0;
};

// What one oracle gets to ask for further walks of one view.
class Further {
 public:
  Further(const OracleDeclaration& oracle, const WalkView& first, WalkMaker& maker)
      : oracle_(oracle), first_(first), maker_(maker) {}

  const Walker* walker(WalkerId id) const { return maker_.walker(id); }
  // Null when there is nothing to compare with: the oracle returns. A walk that it did not declare
  // or that the driver cannot make is counted, and its driver says that it was not judged.
  const WalkRecord* make(const FurtherWalk& walk);

  uint32_t undeclared() const { return undeclared_; }
  uint32_t not_offered() const { return not_offered_; }

 private:
  const OracleDeclaration& oracle_;
  const WalkView& first_;
  WalkMaker& maker_;
  uint32_t undeclared_ = 0, not_offered_ = 0;
};

// A further walk as oracles see it.
class FurtherView {
 public:
  // `walker`: the adapter of its kind. Borrows all but `walk`.
  FurtherView(const WalkView& first, const FurtherWalk& walk, const WalkRecord& record,
              const Walker& walker);
  FurtherView(const FurtherView&) = delete;
  FurtherView& operator=(const FurtherView&) = delete;
  const WalkView& view() const { return view_; }

 private:
  Input input_;
  Subject subject_;
  WalkView view_;
};

}  // namespace framestorm
