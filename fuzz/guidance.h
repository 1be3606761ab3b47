// What the engine is told of an execution besides libjvm's coverage, and what counts as news.
// Loop's stack.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fuzz/feedback.h"
#include "fuzz/options.h"

namespace framestorm {

class Guidance {
 public:
  Guidance() = default;
  virtual ~Guidance() = default;
  Guidance(const Guidance&) = delete;
  Guidance& operator=(const Guidance&) = delete;

  // Before an input of the engine's is walked; `counters`: libjvm's.
  virtual void begin(std::span<const uint8_t> bytes, std::span<uint8_t> counters) = 0;
  // Whether the engine is to have a mutant that ended so, and reached edges that it does not know.
  virtual bool is_news(Feedback::Ending ending, bool new_edges) = 0;
  // The engine's input ended so.
  virtual void tell(Feedback::Ending ending) = 0;

  // Whether a scenario's walks all end the same few ways, as those of threads that a walker
  // refuses.
  bool is_saturated(ScenarioId scenario) const {
    return feedback_.ends_of(scenario) <= kSaturatedEnds;
  }

 protected:
  Feedback feedback_;

 private:
  static constexpr size_t kSaturatedEnds = 3;
};

// As the options ask for. Throws SetupError when the seeds cannot be read.
std::unique_ptr<Guidance> make_guidance(const FuzzOptions& options);

}  // namespace framestorm
