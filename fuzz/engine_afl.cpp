// AFL++: inputs and mutations are afl-fuzz's, this process executes them and folds what they
// reached into its map.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/afl_front.h"
#include "fuzz/afl_map.h"
#include "fuzz/feedback.h"
#include "fuzz/fuzz_engine.h"
#include "harness/base/error.h"
#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"

namespace framestorm {
namespace {

class AflEngine final : public FuzzEngine {
 public:
  int prepare(FuzzOptions* options) override {
    const auto library = options->session.jvm.home / "lib/server/libjvm.so";
    const size_t counters =
        std::filesystem::exists(library) ? coverage_counters_in(library) : 0;  // the JVM will tell
    const size_t map_size = afl_map_size(counters, Feedback::kCounters);
    if (options->bundled) {
      front_.start_ahead(map_size);
      return -1;
    }
    code_names_ = options->out / kCodeNamesFile;
    options->out = front_.start(options->out, map_size);
    return -1;
  }

  bool mutates_here() const override { return false; }

  // Where afl_mutator.cpp, in afl-fuzz, reads them; once, since victims compile their code before
  // they are walked.
  void tell(const CodeNameList& names) override {
    if (!std::exchange(told_, true) && !code_names_.empty()) names.save(code_names_);
  }

  void run(const FuzzOptions& options, const Coverage& coverage, InputLoop& loop) override {
    const std::span<uint8_t> counters = coverage.counters();
    const std::span<uint8_t> feedback = Feedback::counters();
    const std::span<uint8_t> map = AflFront::map();
    if (map.size() < 1 + counters.size() + feedback.size()) {
      throw SetupError("AFL++'s map has " + std::to_string(map.size()) + " bytes, libjvm has " +
                       std::to_string(counters.size()) + " coverage counters: set AFL_MAP_SIZE=" +
                       std::to_string(afl_map_size(counters.size(), feedback.size())));
    }
    prime(options, counters, loop);
    std::span<const uint8_t> bytes;
    for (;;) {
      if (!front_.wait(&bytes)) {
        loop.idle();
        continue;
      }
      std::ranges::fill(counters, uint8_t{0});
      std::ranges::fill(feedback, uint8_t{0});
      loop.execute(bytes);
      fold(options.unguided ? std::span<uint8_t>() : counters, feedback, map);
      front_.done();
    }
  }

 private:
  // Walks the seeds once: what HotSpot does only the first time (static locals such as the one in
  // ContinuationEntry::to_frame, caches) would look like noise of the input that happened to be
  // first.
  static void prime(const FuzzOptions& options, std::span<uint8_t> counters, InputLoop& loop) {
    std::vector<uint8_t> bytes;
    for (const Input& seed : load_seed_folders(options.corpus)) {
      encode(seed, &bytes);
      std::ranges::fill(counters, uint8_t{0});
      loop.execute(bytes);
    }
  }

  AflFront front_;
  std::filesystem::path code_names_;
  bool told_ = false;
};

}  // namespace

FuzzEngine& FuzzEngine::get() {
  static AflEngine engine;
  return engine;
}

}  // namespace framestorm
