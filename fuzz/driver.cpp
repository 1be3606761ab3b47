#include "fuzz/driver.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "fuzz/bursts.h"
#include "fuzz/fuzz_engine.h"
#include "fuzz/guidance.h"
#include "fuzz/halt_policy.h"
#include "fuzz/mutator.h"
#include "fuzz/strict_end.h"
#include "fuzz/walk_loop.h"
#include "fuzz/walker_choice.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

// In the output folder: what sanitizers said outside walks.
constexpr const char* kSanitizerLog = "sanitizer.log";
// Clock readings are worth a walk in ten; one in so many executions is enough.
constexpr uint64_t kClockShare = 8;
constexpr unsigned kStopLimitS = 20;
constexpr double kLeastSecondsToJudge = 10;

std::atomic<bool> asked_to_stop{false};

// As the walkers of a session declare it.
WalksIn declared_in(Session& session) {
  return [&executor = session.executor()](WalkerId id, Mode mode) {
    const Walker* const walker = executor.walker(id);
    return walker != nullptr && walker->traits().walks_in(mode);
  };
}

MutatorProfile profile_of(std::string_view target, Session& session, const WalkerChoice& walkers,
                          Baseline baseline) {
  MutatorProfile profile = *find_mutator_profile(target);
  profile.scenarios = session.available();
  profile.modes = walkers.modes();
  profile.walkers = walkers.walkers();
  profile.walks_in = declared_in(session);
  profile.baseline = baseline;
  return profile;
}

// Of the walkers that are asked for, if any. Throws SetupError when the target is for none of them.
std::vector<WalkerId> wanted_by(const MutatorProfile& profile, std::vector<WalkerId> asked) {
  const size_t others = std::erase_if(asked, [&](WalkerId id) { return !profile.is_for(id); });
  if (others > 0 && asked.empty()) {
    throw SetupError("none of these walkers reads what " + std::string(profile.target) +
                     " mutates");
  }
  return asked;
}

class Driver final : public InputLoop {
 public:
  // Control thread.
  Driver(std::string_view target, const FuzzOptions& options)
      : options_(options),
        loop_(target, options, engine_),
        walkers_(wanted_by(*find_mutator_profile(target), options.walkers),
                 find_mutator_profile(target)->walkers, loop_.session().missing_walkers(),
                 options.modes, declared_in(loop_.session())),
        mutator_(profile_of(target, loop_.session(), walkers_, options.baseline), &loop_.names()),
        guidance_(make_guidance(options)),
        halts_(make_halt_policy(options, engine_, walkers_, *guidance_, loop_)) {
    const bool free = options.engine.source == InputSource::engine;
    Executor& executor = loop_.session().executor();
    if (!free) executor.set_rigour(Rigour::everything);
    if (options.engine.source == InputSource::origin) {
      executor.watch_writes(WriteWatching::Pace::each_walk);
    }
    if (free && engine_.mutates_here()) bursts_.emplace(mutator_, *guidance_, loop_);
    if (loop_.coverage().available() && (options.record_edges || !engine_.mutates_here())) {
      loop_.record_edges();
    }
    if (options.strict) loop_.end_at([](uint64_t) { return true; });
    loop_.on_halt([this] {
      mutator_.pin(loop_.scenario(), loop_.mode());
      if (bursts_) bursts_->halted();
    });
  }

  // Control thread. Does not return: the process ends from the loop.
  [[noreturn]] void run() {
    loop_.session().run_loop([this] {
      guarded([this] {
        // It takes a second, which is much of a short run.
        const bool is_long = options_.runs == 0 && options_.seconds >= kLeastSecondsToJudge;
        if (bursts_ && is_long) loop_.judge_recorded();
        halts_->begin();
        engine_.run(options_, loop_.coverage(), *this);
      });
    });
    end_process(kExitDone);
  }

  void execute(std::span<const uint8_t> bytes) override {
    guarded([&] { walk_one_input(bytes); });
  }

  void idle() override {
    if (asked_to_stop.load(std::memory_order_relaxed)) loop_.finish(kExitDone);
  }

  [[noreturn]] void end(int code) override { loop_.finish(code); }

  size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned seed) override {
    mutates_ = true;
    if (!bursts_ || !bursts_->take(&mutated_)) {
      take({data, size}, &mutated_);
      Rng rng(seed);
      mutator_.mutate(&mutated_, rng);
    }
    return write(mutated_, data, max_size);
  }

  size_t cross(std::span<const uint8_t> a, std::span<const uint8_t> b, std::span<uint8_t> out,
               unsigned seed) override {
    decode(a, &input_);
    decode(b, &other_);
    Rng rng(seed);
    mutator_.crossover(input_, other_, &mutated_, rng);
    return write(mutated_, out.data(), out.size());
  }

 private:
  // No exception may pass libFuzzer's frames: what cannot be written ends the process here.
  template <typename Function>
  void guarded(Function function) {
    try {
      function();
    } catch (const std::exception& error) {
      loop_.fail(error);
    }
  }

  void walk_one_input(std::span<const uint8_t> given) {
    const std::span<uint8_t> counters = loop_.coverage().counters();
    take(given, &input_);
    std::span<const uint8_t> bytes = given;
    if (walkers_.choose(&input_)) {
      encode(input_, &chosen_bytes_);
      bytes = chosen_bytes_;
    }
    if (!mutates_) halts_->before(input_, bytes);
    guidance_->begin(given, counters);
    // First, since the engine looks at the counters when this returns.
    if (bursts_ && (mutates_ || options_.engine.bursts_of_corpus)) bursts_->walk(input_);
    const Feedback::Ending ending = loop_.walk(input_, bytes);
    loop_.reached(counters);
    if (bursts_) bursts_->told(counters);
    guidance_->tell(ending);
    // Last, so that the next input is already one of the new halt.
    if (++executions_ % kClockShare == 0) {
      idle();
      halts_->tick();
    }
  }

  // Decodes, unless it is what was written last, which is most often the case: libFuzzer executes
  // and mutates on what the mutator has just given it.
  void take(std::span<const uint8_t> bytes, Input* out) {
    if (std::ranges::equal(bytes, encoded_)) {
      if (out != &mutated_) *out = mutated_;
    } else {
      decode(bytes, out);
    }
  }

  size_t write(const Input& input, uint8_t* out, size_t max_size) {
    encode(input, &encoded_);
    if (encoded_.size() > max_size) return 0;
    std::copy(encoded_.begin(), encoded_.end(), out);
    return encoded_.size();
  }

  const FuzzOptions& options_;
  FuzzEngine& engine_ = FuzzEngine::get();
  WalkLoop loop_;
  WalkerChoice walkers_;
  Mutator mutator_;
  std::unique_ptr<Guidance> guidance_;
  std::unique_ptr<HaltPolicy> halts_;
  std::optional<Bursts> bursts_;
  Input input_;
  Input mutated_;
  Input other_;
  std::vector<uint8_t> encoded_;  // mutated_, as it was last written
  std::vector<uint8_t> chosen_bytes_;
  bool mutates_ = false;  // the engine has read its corpus
  uint64_t executions_ = 0;
};

// Async-signal-safe. A process that cannot even end (nobody else ends AFL++'s) is ended.
void on_stop_signal(int) {
  asked_to_stop.store(true);
  alarm(kStopLimitS);
}

}  // namespace

int run_target(std::string_view target, int argc, char** argv) {
  FuzzOptions options;
  if (const int code = parse_options(target, argc, argv, &options); code >= 0) return code;
  return run_target(target, std::move(options));
}

int run_target(std::string_view target, FuzzOptions options) {
  try {
    if (!options.out.empty()) std::filesystem::create_directories(options.out);
    if (const int code = FuzzEngine::get().prepare(&options); code >= 0) return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(target).c_str(), error.what());
    return kExitSetup;
  }
  struct sigaction action = {};
  action.sa_handler = &on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  int code = kExitDone;
  // Not on the primordial thread, whose stack HotSpot does not like to measure.
  std::thread control_thread([&] {
    try {
      if (!options.out.empty()) options.session.sanitizer_log = options.out / kSanitizerLog;
      Driver driver(target, options);
      driver.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", std::string(target).c_str(), error.what());
      end_process(kExitSetup);
    }
  });
  control_thread.join();
  return code;
}

}  // namespace framestorm
