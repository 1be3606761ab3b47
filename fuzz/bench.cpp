#include "fuzz/bench.h"

#include <nlohmann/json.hpp>

#include "harness/base/clock.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

// Walks of a halt that are repeated; more would only cost memory.
constexpr size_t kMaxSamples = 20'000;

struct BareRun {
  std::vector<Executor::BareWalk> items;
  const ThreadIdentity* identity = nullptr;
  uint32_t repeats = 1;
  uint64_t ns = 0;
};

// What one guarded call walks: so many that the guard's cost is not in the figure, so few that they
// stay below its time limit.
struct BareShare {
  static constexpr size_t kSize = 64;
  std::span<Executor::BareWalk> items;
  ucontext_t* scratch = nullptr;
  size_t walked = 0;  // beyond a walk that does not return, too
};

void walk_share(void* argument) {
  auto* share = static_cast<BareShare*>(argument);
  while (share->walked < share->items.size()) {
    const Executor::BareWalk& walk = share->items[share->walked++];
    copy_context(walk.context, share->scratch);
    walk.walker->walk(walk.target, walk.frames, walk.depth,
                      walk.null_context ? nullptr : share->scratch);
  }
}

void run_items(BareRun* run) {
  ucontext_t scratch;
  FaultRecord fault;
  UnsafeCalls unsafe;
  // A fault taken from a walker that survives it leaves its locks held: it would skip what follows.
  ContainedFaults contained;
  const bool contains = run->items.front().walker->contains_faults();
  const uint64_t start = monotonic_ns();
  for (uint32_t i = 0; i < run->repeats; ++i) {
    size_t at = 0;
    while (at < run->items.size()) {
      const size_t size = std::min(BareShare::kSize, run->items.size() - at);
      BareShare share = {std::span(run->items).subspan(at, size), &scratch};
      Guard::call(&walk_share, &share, &fault, &unsafe, nullptr, contains ? &contained : nullptr);
      at += share.walked;
    }
  }
  run->ns = monotonic_ns() - start;
}

// On the host of the loop; with the victim's identity when that is not the victim itself.
void run_bare(BareRun* run, Mode mode) {
  MigratingLoop& loop = MigratingLoop::get();
  Victim& victim = *run->items.front().victim;
  loop.move_to(mode == Mode::same_thread ? victim.slot : nullptr);
  if (mode == Mode::same_thread) {
    loop.call_on_host([](void* arg) { run_items(static_cast<BareRun*>(arg)); }, run);
    return;
  }
  loop.call_on_host(
      [](void* arg) {
        auto* r = static_cast<BareRun*>(arg);
        const Executor::BareWalk& first = r->items.front();
        if (!first.walker->traits().borrows_identity()) {
          run_items(r);
          return;
        }
        const ThreadIdentity::Scoped as_victim(*r->identity, first.victim->java_thread);
        run_items(r);
      },
      run);
}

}  // namespace

void Bench::walked(std::span<const uint8_t> bytes, const Outcome& outcome) {
  if (outcome.status != Outcome::Status::walked) return;
  samples_.push_back({bytes_.size(), bytes.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Bench::halt_ends(Mode mode, uint64_t loop_ns) {
  if (samples_.empty()) return;
  BareRun run;
  run.identity = &session_.jvm().identity();
  Input input;
  ScenarioId scenario = ScenarioId::count;
  bool mixed = false;
  for (size_t i = 0; i < std::min(samples_.size(), kMaxSamples); ++i) {
    decode(std::span(bytes_).subspan(samples_[i].offset, samples_[i].size), &input);
    // A halt's inputs are of one scenario and mode; the seeds at the start are not.
    mixed = mixed || input.mode != mode ||
            (scenario != ScenarioId::count && input.scenario != scenario);
    scenario = input.scenario;
    Executor::BareWalk item;
    if (session_.executor().prepare_bare(input, &item)) run.items.push_back(item);
  }
  if (!mixed && !run.items.empty()) {
    run_bare(&run, mode);
    session_.executor().repair(*run.items.front().victim);
    Rates& rates = rates_[static_cast<size_t>(mode)];
    rates.walks += samples_.size();
    rates.loop_ns += loop_ns;
    rates.bare_walks += run.items.size();
    rates.bare_ns += run.ns;
  }
  samples_.clear();
  bytes_.clear();
}

void Bench::loop_ends() {
  if (session_.victims().of(ScenarioId::deep_stack).slot == nullptr) return;
  for (const WalkerId walker : kFuzzedWalkers) {
    if (session_.executor().walker(walker) != nullptr) measure_depths(walker);
  }
}

void Bench::measure_depths(WalkerId walker) {
  for (const int32_t depth : {10, 100, 1000, 10'000}) {
    Input input;
    input.scenario = ScenarioId::deep_stack;
    input.walker = walker;
    input.mode = Mode::separate_thread;
    input.call.depth = DepthKind::raw;
    input.call.raw_depth = depth;
    // About the same number of frames for every depth.
    const uint32_t repeats = 2'000'000 / static_cast<uint32_t>(depth);
    BareRun run;
    run.identity = &session_.jvm().identity();
    run.repeats = repeats / BareShare::kSize;
    Executor::BareWalk item;
    const Outcome outcome = session_.executor().execute(input);
    if (!outcome.succeeded() || !session_.executor().prepare_bare(input, &item)) continue;
    run.items.assign(BareShare::kSize, item);
    run_bare(&run, Mode::separate_thread);
    const uint64_t start = monotonic_ns();
    for (uint32_t i = 0; i < repeats; ++i) session_.executor().execute(input);
    const uint64_t executor_ns = monotonic_ns() - start;
    depth_costs_.push_back(
        {walker, depth, outcome.result,
         static_cast<double>(run.ns) / static_cast<double>(run.repeats * BareShare::kSize),
         static_cast<double>(executor_ns) / repeats});
  }
}

void Bench::report(FILE* out) const {
  nlohmann::json modes = nlohmann::json::object();
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    const Rates& r = rates_[static_cast<size_t>(mode)];
    if (r.walks == 0 || r.bare_walks == 0) continue;
    const double loop_rate = static_cast<double>(r.walks) * 1e9 / static_cast<double>(r.loop_ns);
    const double bare_rate =
        static_cast<double>(r.bare_walks) * 1e9 / static_cast<double>(r.bare_ns);
    modes[std::string(name_of(mode))] = {{"walks", r.walks},
                                         {"walks_per_second", loop_rate},
                                         {"bare_per_second", bare_rate},
                                         {"ratio", loop_rate / bare_rate}};
  }
  nlohmann::json depths = nlohmann::json::array();
  for (const DepthCost& cost : depth_costs_) {
    depths.push_back({{"walker", name_of(cost.walker)},
                      {"depth", cost.depth},
                      {"frames", cost.frames},
                      {"bare_ns", cost.bare_ns},
                      {"executor_ns", cost.executor_ns}});
  }
  const nlohmann::json all = {{"jvm", session_.jvm().version()},
                              {"edges", session_.executor().coverage().counters().size()},
                              {"modes", modes},
                              {"depths", depths}};
  std::fprintf(out, "%s\n", all.dump(2).c_str());
}

}  // namespace framestorm
