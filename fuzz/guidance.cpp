#include "fuzz/guidance.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"

namespace framestorm {
namespace {

class Guided final : public Guidance {
 public:
  void begin(std::span<const uint8_t>, std::span<uint8_t>) override {}
  bool is_news(Feedback::Ending ending, bool new_edges) override {
    return feedback_.note(ending) || new_edges;
  }
  void tell(Feedback::Ending ending) override {
    feedback_.note(ending);
    feedback_.tell(ending);
  }
};

// Each seed has an ending of its own and nothing else has any: engines keep only inputs that bring
// something new, and the seeds are to be their corpus.
class Unguided final : public Guidance {
 public:
  explicit Unguided(const std::vector<std::filesystem::path>& corpus) {
    std::vector<uint8_t> bytes;
    for (const Input& input : load_seed_folders(corpus)) {
      encode(input, &bytes);
      seeds_.emplace(std::string(bytes.begin(), bytes.end()), seeds_.size() % Feedback::kEndings);
    }
  }

  void begin(std::span<const uint8_t> bytes, std::span<uint8_t> counters) override {
    const auto seed =
        seeds_.find(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    seed_ = seed == seeds_.end() ? Feedback::kNothing : seed->second;
    // An engine that does not know the counters does not zero them.
    std::ranges::fill(counters, uint8_t{0});
  }
  bool is_news(Feedback::Ending ending, bool) override {
    feedback_.note(ending);
    return false;
  }
  void tell(Feedback::Ending ending) override {
    feedback_.note(ending);
    feedback_.tell(seed_);
  }

 private:
  std::map<std::string, Feedback::Ending, std::less<>> seeds_;  // by their bytes
  Feedback::Ending seed_ = Feedback::kNothing;                  // that of the engine's input
};

}  // namespace

std::unique_ptr<Guidance> make_guidance(const FuzzOptions& options) {
  if (options.unguided) return std::make_unique<Unguided>(options.corpus);
  return std::make_unique<Guided>();
}

}  // namespace framestorm
