#include "stress/agent/stats.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/clock.h"
#include "harness/guard/unsafe_calls.h"
#include "harness/input/thread_state.h"
#include "stress/agent/kept_sample.h"

namespace framestorm::stress {
namespace {

using nlohmann::json;

std::string state_name(uint32_t state) {
  std::string name = thread_state_name(state);
  constexpr std::string_view kPrefix = "_thread_";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::string code_of(const Sample& sample, const Walker& walker) {
  if (sample.walk.end != WalkEnd::returned) return end_name(sample.walk.end);
  if (sample.walk.result > 0) return "ok";
  return std::to_string(sample.walk.result) + " " +
         std::string(walker.error_name(sample.walk.result));
}

double seconds_of(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Stats::Stats(const Options& options) : options_(options), begin_ns_(monotonic_ns()) {
  file_.open(options.out / "stats.jsonl");
}

void Stats::count(const Sample& sample, const Walker& walker, const std::byte* frames) {
  PerWalker& own = walkers_[sample.walk.walker];
  own.latency.add(sample.walk.ns);
  ++codes_[{sample.walk.walker, sample.walk.thread_state, code_of(sample, walker)}];
  if (sample.walk.end != WalkEnd::returned || sample.walk.result <= 0) return;
  const auto count = static_cast<uint64_t>(std::min(sample.walk.result, sample.walk.depth));
  ++own.traces;
  own.frames += count;
  own.longest = std::max(own.longest, count);
  if (sample.walk.result >= sample.walk.depth) ++own.at_depth_limit;
  if (sample.walk.stopped() != nullptr) ++own.truncated;
  if (!options_.flames) return;
  trace_.clear();
  for (size_t i = 0; i < count; ++i) trace_.push_back(read_frame(walker.layout(), frames, i));
  flames_.add(trace_);
}

void Stats::set_check(std::string_view oracle, uint64_t made, uint64_t broken) {
  checks_[std::string(oracle)] = {{"made", made}, {"broken", broken}};
}

void Stats::set_not_judged(std::string_view oracle, const std::string& why) {
  json& check = checks_[std::string(oracle)];
  if (check.is_null()) check = {{"made", 0}, {"broken", 0}};
  check["not_judged"] = why;
}

void Stats::write(const Registry::Totals& totals, const Finished& finished, const char* ended) {
  const double asked = 1e9 / static_cast<double>(options_.interval.count());
  const bool by_cpu = options_.threads == ThreadChoice::running;
  // No signal reaches a thread in HotSpot's own handlers: it is not running for a profiler.
  const uint64_t not_running_ns =
      finished.idle_cpu_ns + totals.lost[static_cast<size_t>(LostCause::signals_blocked)] *
                                 static_cast<uint64_t>(options_.interval.count());
  const uint64_t cpu_ns = totals.cpu_ns - std::min(totals.cpu_ns, not_running_ns);
  const double running = seconds_of(by_cpu ? cpu_ns : totals.wall_ns);
  const uint64_t of_rate = by_cpu ? totals.samples - finished.idle : totals.samples;
  const double rate = running > 0 ? static_cast<double>(of_rate) / running : 0;
  json walkers = json::array();
  for (const WalkerId id : options_.walkers) walkers.push_back(std::string(name_of(id)));
  json lost = json::object();
  for (size_t i = 0; i < kLostCauses; ++i) {
    if (totals.lost[i] != 0) {
      lost[std::string(name_of(static_cast<LostCause>(i)))] = totals.lost[i];
    }
  }
  if (finished.late_handlers != 0) {
    lost[std::string(name_of(LostCause::late_handler))] = finished.late_handlers;
  }
  json codes = json::array();
  for (const auto& [key, count] : codes_) {
    const auto& [walker, state, code] = key;
    codes.push_back({{"walker", std::string(name_of(walker))},
                     {"state", state_name(state)},
                     {"code", code},
                     {"count", count}});
  }
  json latency = json::object();
  json frames = json::object();
  for (const auto& [id, own] : walkers_) {
    const std::string name(name_of(id));
    latency[name] = {{"count", own.latency.count()},
                     {"p50", own.latency.at(0.5)},
                     {"p99", own.latency.at(0.99)},
                     {"p99.9", own.latency.at(0.999)},
                     {"max", own.latency.max()}};
    frames[name] = {{"count", own.traces},         {"sum", own.frames},
                    {"max", own.longest},          {"at_depth_limit", own.at_depth_limit},
                    {"truncated", own.truncated},  {"ends_compared", own.ends_compared},
                    {"ends_early", own.ends_early}};
  }
  json line = {{"seconds", seconds_of(monotonic_ns() - begin_ns_)},
               {"ended", ended == nullptr ? json(nullptr) : json(ended)},
               {"walker", walkers},
               {"mode", std::string(name_of(options_.mode))},
               {"interval_ns", options_.interval.count()},
               {"threads_asked", threads_text(options_)},
               {"seed", options_.seed},
               {"interposer", interposer::is_active()},
               {"ticks", totals.ticks},
               {"samples", totals.samples},
               {"idle_samples", finished.idle},
               {"running_seconds", running},
               {"rate_hz", rate},
               {"rate_asked_hz", asked},
               {"delivery_ns", finished.delivery_ns},
               {"rate_share", std::min(1.0, rate / asked)},
               {"lost", lost},
               {"codes", codes},
               {"latency_ns", latency},
               {"frames", frames},
               {"checks", checks_},
               {"findings", finished.findings},
               {"contained", finished.contained},
               {"threads",
                {{"seen", totals.seen},
                 {"live", totals.live},
                 {"peak", totals.peak},
                 {"most_sampled", finished.most_armed}}}};
  if (!truth_.is_null()) line["truth"] = truth_;
  if (!continuations_.is_null()) line["continuations"] = continuations_;
  file_.append(line);
}

void Stats::write_flames(const MethodTable& methods) const {
  if (options_.flames) flames_.write(options_.out / "flames.folded", methods);
}

}  // namespace framestorm::stress
