#include "fuzz/halt_policy.h"

#include <algorithm>
#include <optional>

#include "fuzz/halt_schedule.h"
#include "harness/base/clock.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

// How long the world stays halted, in processor time; halting it takes no larger share then.
constexpr uint64_t kHaltNs = 30'000'000;
// The same where inputs come from elsewhere, at a tenth of the rate.
constexpr uint64_t kFollowedHaltNs = 200'000'000;
// An artifact is walked at this many halts, every other one its own, as long as it shows nothing.
constexpr int kReplayHalts = 16;
constexpr uint64_t kReplayNs = 4 * kSecond;

// An input of another scenario than the halt's, as those of a corpus are when they are read. The
// victims of many stand suspended then, or are not there at all: not at their program point. Of a
// scenario that was not started no halt has a victim.
void halt_if_elsewhere(const Input& input, WalkLoop& loop) {
  const Halt halt = scenario_info(input.scenario).halt;
  if (input.scenario != loop.scenario() && (halt == Halt::busy || halt == Halt::special) &&
      loop.session().is_available(input.scenario)) {
    loop.halt_at(input.scenario, input.mode);
  }
}

// Where a halt's victim stands, one place after the other; from the last one it goes its way. Signals come at
// instructions that take long, and hardly ever at the others; to halt the world takes 5 to 20 ms, and to
// step one thread on less than one.
class Places {
 public:
  Places(const WalkerChoice& walkers, WalkLoop& loop) : walkers_(walkers), loop_(loop) {}

  // The world is halted anew.
  void begin() { number_ = 1; }
  // To the next place, when it is time.
  void go_on() {
    if (number_ == kMost || !loop_.is_halted_longer_than(number_ * kHaltNs / kMost)) return;
    ++number_;
    loop_.step_on();
    if (number_ < kMost) return;
    const std::vector<WalkerId> walkers = walkers_.walkers_in(loop_.mode());
    if (!walkers.empty()) loop_.walk_along(walkers);  // none: of inputs that others have made
  }

 private:
  static constexpr uint64_t kMost = 4;
  const WalkerChoice& walkers_;
  WalkLoop& loop_;
  uint64_t number_ = kMost;
};

class ScheduledHalts final : public HaltPolicy {
 public:
  ScheduledHalts(const FuzzOptions& options, const WalkerChoice& walkers, const Guidance& guidance,
                 WalkLoop& loop)
      : options_(options),
        guidance_(guidance),
        loop_(loop),
        places_(walkers, loop),
        schedule_(loop.session().available().empty() ? std::vector{ScenarioId::c1}
                                                     : loop.session().available(),
                  walkers.modes(), options.seed) {}

  void begin() override {
    const auto [scenario, mode] =
        schedule_.next([this](ScenarioId id) { return guidance_.is_saturated(id); });
    loop_.halt_at(scenario, mode);
    places_.begin();
  }

  void before(const Input& input, std::span<const uint8_t>) override {
    halt_if_elsewhere(input, loop_);
  }

  void tick() override {
    if (options_.runs == 0 && loop_.counts().elapsed() > options_.seconds) {
      loop_.finish(kExitDone);
    }
    if (loop_.is_halted_longer_than(kHaltNs)) {
      begin();
    } else {
      places_.go_on();
    }
  }

 private:
  const FuzzOptions& options_;
  const Guidance& guidance_;
  WalkLoop& loop_;
  Places places_;
  HaltSchedule schedule_;
};

// An input's scenario, halted, as long as others of it follow. The same bytes again are always
// walked at the same place, because AFL++ takes what differs then for noise. Time is limited by
// somebody else.
class FollowingHalts final : public HaltPolicy {
 public:
  // `one`: as long as the scenario stays the same, all inputs are walked at one place.
  FollowingHalts(bool one, const WalkerChoice& walkers, WalkLoop& loop)
      : one_(one), loop_(loop), places_(walkers, loop) {}

  void before(const Input& input, std::span<const uint8_t> bytes) override {
    if (std::ranges::equal(bytes, followed_)) return;
    const bool there = !followed_.empty() && input.scenario == loop_.scenario();
    followed_.assign(bytes.begin(), bytes.end());
    if (there && (one_ || !loop_.is_halted_longer_than(kFollowedHaltNs))) {
      places_.go_on();
      return;
    }
    loop_.halt_at(input.scenario, input.mode);
    if (!one_) places_.begin();
  }

 private:
  const bool one_;
  WalkLoop& loop_;
  Places places_;
  std::vector<uint8_t> followed_;  // the input that was last seen
};

// Walks an artifact at one halt after the other, until `done`.
void walk_at_halts(const Input& input, std::span<const uint8_t> bytes, int halts, bool seek,
                   WalkLoop& loop, const std::function<bool()>& done) {
  Session& session = loop.session();
  if (const auto missing = session.unavailable().find(input.scenario);
      missing != session.unavailable().end()) {
    std::fprintf(stderr, "framestorm: scenario %s is not available on this JDK: %s\n",
                 std::string(name_of(input.scenario)).c_str(), missing->second.c_str());
    return;
  }
  const uint64_t start = monotonic_ns();
  for (int i = 0; i < halts && monotonic_ns() - start <= kReplayNs && !done(); ++i, seek = !seek) {
    loop.halt_at(input.scenario, input.mode, seek ? input.halt : HaltPoint{});
    loop.walk(input, bytes);
  }
}

class FileHalts final : public HaltPolicy {
 public:
  explicit FileHalts(WalkLoop& loop) : loop_(loop) {}

  // A finding ends the process; without one, the same artifact again gets one halt only.
  void before(const Input& input, std::span<const uint8_t> bytes) override {
    const bool again = std::ranges::equal(bytes, last_);
    last_.assign(bytes.begin(), bytes.end());
    walk_at_halts(input, bytes, again ? 1 : kReplayHalts, inputs_++ % 2 == 0, loop_,
                  [] { return false; });
  }

 private:
  WalkLoop& loop_;
  std::vector<uint8_t> last_;
  unsigned inputs_ = 0;
};

// Of a process that makes one artifact smaller. It does not end at the first finding, but at the
// one that the artifact itself shows.
class OriginHalts final : public HaltPolicy {
 public:
  OriginHalts(const Input& origin, WalkLoop& loop) : origin_(origin), loop_(loop) {}

  void begin() override { loop_.halt_at(origin_.scenario, origin_.mode, origin_.halt); }

  void before(const Input& input, std::span<const uint8_t>) override {
    if (!std::exchange(learnt_, true)) learn();
    halt_if_elsewhere(input, loop_);
  }

  void tick() override {
    if (loop_.is_halted_longer_than(kHaltNs)) begin();
  }

 private:
  void learn() {
    std::vector<uint8_t> bytes;
    encode(origin_, &bytes);
    loop_.end_at([this](uint64_t key) {
      key_ = key;
      return false;
    });
    walk_at_halts(origin_, bytes, kReplayHalts, true, loop_, [this] { return key_.has_value(); });
    loop_.end_at([this](uint64_t key) { return !key_ || key == *key_; });
  }

  const Input& origin_;
  WalkLoop& loop_;
  bool learnt_ = false;
  std::optional<uint64_t> key_;
};

}  // namespace

std::unique_ptr<HaltPolicy> make_halt_policy(const FuzzOptions& options, const FuzzEngine& engine,
                                             const WalkerChoice& walkers, const Guidance& guidance,
                                             WalkLoop& loop) {
  if (!engine.mutates_here()) {
    return std::make_unique<FollowingHalts>(options.one_halt, walkers, loop);
  }
  switch (options.engine.source) {
    case InputSource::files:
      return std::make_unique<FileHalts>(loop);
    case InputSource::origin:
      return std::make_unique<OriginHalts>(options.engine.origin, loop);
    case InputSource::engine:
      break;
  }
  return std::make_unique<ScheduledHalts>(options, walkers, guidance, loop);
}

}  // namespace framestorm
