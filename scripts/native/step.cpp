#include "scripts/native/step.h"

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "harness/executor/run_files.h"
#include "harness/executor/signature.h"
#include "harness/input/binary.h"
#include "harness/input/json_form.h"
#include "harness/input/seed_folder.h"
#include "harness/input/state.h"
#include "harness/input/text.h"
#include "harness/stepping/step_scenario.h"
#include "harness/walkers/profiler.h"
#include "scripts/native/signature_file.h"
#include "scripts/native/step_findings.h"

namespace framestorm {
namespace {

using nlohmann::json;
using namespace stepping;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The first round is without events. A victim that one has changed, as by throwing its code away, is
// started again.
constexpr Seconds kEventRound{2};
constexpr Seconds kShortestRound{0.5};
constexpr double kWholeSlice = 0.8;  // what is left is too little for another round
// A program's code is compiled while it runs: what is stepped at its beginning is not what it spends its
// time in later.
constexpr Seconds kLongestWarmUp{60};
constexpr double kWarmUpShare = 5;
// There is so much code in a program that two of these for each instruction would be most of its walks.
constexpr Sample kProgramOutside = {.first = 0, .one_in = 64};
// What a loop comes by again and again would be most of them, too.
constexpr Sample kProgramInside = {.first = 32, .one_in = 16};
// Nor could it go on with an event at each.
constexpr Sample kProgramEvents = {.first = 0, .one_in = 1024};
// For the victim to come to where an artifact says.
constexpr Seconds kReplayTime{20};

bool pops_frames(const std::vector<StepEvent>& events) {
  return std::ranges::find(events, StepEvent::pop_frame) != events.end();
}

std::vector<Walker*> walkers_of(const Session& session, const std::vector<WalkerId>& wanted,
                                Executor& executor) {
  std::vector<Walker*> walkers;
  for (const WalkerTraits& traits : kWalkers) {
    Walker* const walker = executor.walker(traits.id);
    const bool asked = std::ranges::find(wanted, traits.id) != wanted.end();
    if (asked && walker == nullptr) throw SetupError(session.missing_walkers().at(traits.id));
    const bool gives = traits.gives_traces() || traits.keeps_its_traces;
    const bool fits = gives && !traits.needs_running_vm && !traits.chooses_its_threads &&
                      traits.gives_java_frames;
    if (asked && !fits) {
      throw SetupError(std::string(traits.name) +
                       " does not give a trace of a thread that is not at a safepoint");
    }
    if (walker != nullptr && fits && (asked || wanted.empty())) walkers.push_back(walker);
  }
  return walkers;
}

// By verdict, those that there are.
template <typename Count>
json verdicts_record(const std::array<Count, kVerdicts>& verdicts) {
  json record = json::object();
  for (size_t i = 0; i < kVerdicts; ++i) {
    if (verdicts[i] > 0) record[std::string(name_of(static_cast<Verdict>(i)))] = verdicts[i];
  }
  return record;
}

std::string column_name(WalkerId walker, Mode mode) {
  std::string name(name_of(walker));
  if (mode != Mode::same_thread) name.append(" ").append(name_of(mode));
  return name;
}

json tally_record(const Tally& tally) {
  json record = verdicts_record(tally.verdicts);
  for (const auto& [code, count] : tally.errors) record["errors"][std::to_string(code)] = count;
  return record;
}

struct Column {
  std::string name;
  size_t index = 0;  // column_of()
};

// What "walkers" of step.json are: those that walk on the stepped thread by their names alone.
std::vector<Column> columns_of(const Stepper& stepper) {
  std::vector<Column> columns;
  for (const Walker* walker : stepper.walkers()) {
    for (const Mode mode : all_of<Mode>()) {
      if (!walker->traits().walks_in(mode)) continue;
      columns.push_back({column_name(walker->id(), mode), column_of(walker->id(), mode)});
    }
  }
  return columns;
}

json sections_record(const Stepper& stepper) {
  json record = json::object();
  for (const auto& [section, tallies] : stepper.sections()) {
    for (const Column& column : columns_of(stepper)) {
      record[section][column.name] = tally_record(tallies[column.index]);
    }
  }
  return record;
}

json misses_record(const Instruction& instruction) {
  json record = json::array();
  for (const auto& [what, miss] : instruction.misses) {
    const Finding finding = {
        .kind = FindingKind::contract, .clause = miss.clause, .detail = miss.detail};
    record.push_back({{"walker", column_name(miss.input.walker, miss.input.mode)},
                      {"verdict", name_of(what.second)},
                      {"clause", miss.clause},
                      {"detail_class", detail_class(finding)},
                      {"detail", miss.detail},
                      {"input", to_text(miss.input)}});
  }
  return record;
}

json blobs_record(const Stepper& stepper) {
  json record = json::array();
  const std::vector<Column> columns = columns_of(stepper);
  for (const Blob& blob : stepper.catalog().blobs()) {
    const auto& instructions = stepper.instructions(blob);
    if (instructions.empty()) continue;
    json stepped = json::array();
    for (const auto& [offset, instruction] : instructions) {
      json by_walker = json::object();
      for (const Column& column : columns) {
        by_walker[column.name] = verdicts_record(instruction.verdicts[column.index]);
      }
      stepped.push_back(
          {{"offset", offset},
           {"steps", instruction.steps},
           {"section", CodeCatalog::section_of(&blob, blob.entry.begin + offset, true)},
           {"walkers", by_walker},
           {"misses", misses_record(instruction)}});
    }
    record.push_back(
        {{"kind", name_of(blob.entry.kind)},
         {"name", blob.entry.name},
         {"tier", blob.entry.tier},
         {"code", hex_bytes(reinterpret_cast<const uint8_t*>(blob.code.data()), blob.code.size())},
         {"instructions", stepped}});
  }
  return record;
}

json injected_record(const Stepper& stepper, ScenarioId scenario) {
  json record = json::object();
  const auto& all = stepper.events().counts();
  const auto counts = all.find(scenario);
  for (const StepEvent event : stepper.events().wanted()) {
    const bool any = counts != all.end() && counts->second.contains(event);
    const EventCounts one = any ? counts->second.at(event) : EventCounts();
    record[std::string(name_of(event))] = {
        {"injected", one.injected}, {"effective", one.effective}, {"why_not", one.why_not}};
  }
  return record;
}

json events_record(const Stepper& stepper) {
  json record = json::object();
  for (const auto& [event, tallies] : stepper.event_tallies()) {
    for (const Column& column : columns_of(stepper)) {
      record[std::string(name_of(event))][column.name] = tally_record(tallies[column.index]);
    }
  }
  return record;
}

json findings_record(const Stepper& stepper) {
  json record = json::array();
  for (const auto& [key, found] : stepper.findings()) {
    if (!stepper.stands(key)) continue;
    record.push_back({{"walker", column_name(found.finding.input.walker, found.finding.input.mode)},
                      {"verdict", name_of(found.verdict)},
                      {"promised", found.promised},
                      {"event", found.event == StepEvent::none ? "" : name_of(found.event)},
                      {"clause", found.finding.clause},
                      {"detail", found.finding.detail},
                      {"section", found.section},
                      {"code", found.code},
                      {"count", found.count},
                      {"scenarios", found.scenarios},
                      {"position", found.position},
                      {"path", found.path},
                      {"trace", found.trace},
                      {"truth", found.truth}});
  }
  return record;
}

// What shows that a profiler walked: its traces are its own. Null without one.
json profiler_record(Session& session, bool at_the_end) {
  Profiler* const profiler = session.profiler();
  if (profiler == nullptr) return {};
  const auto stored = profiler->stored(at_the_end);
  return {{"stored", stored ? json(*stored) : json()}};
}

// step.json, and findings.jsonl beside it: as much as there is of them, so that a JVM that dies takes
// nothing away but the scenario that it was stepping.
class Record {
 public:
  Record(const StepOptions& options, Session& session, Stepper& stepper)
      : folder_(options.out),
        session_(session),
        stepper_(stepper),
        findings_(options.out, session, stepper) {}

  FindingsSoFar& findings() { return findings_; }

  // `left`: scenarios that are not over, the one that is stepped next first. While no thread is stepped.
  void write(const json& by_scenario, std::span<const ScenarioId> left, const json& program) {
    findings_.write();
    const StepCounts& counts = stepper_.counts();
    json walkers = json::array();
    for (const Column& column : columns_of(stepper_)) walkers.push_back(column.name);
    json names = json::array();
    for (const ScenarioId scenario : left) names.push_back(name_of(scenario));
    const json record = {{"seconds", findings_.seconds()},
                         {"walkers", walkers},
                         {"counts",
                          {{"steps", counts.steps},
                           {"walked", counts.walked},
                           {"from_outside", counts.from_outside},
                           {"judged", counts.judged},
                           {"seen_enough", counts.seen_enough},
                           {"passed", counts.passed},
                           {"excursions", counts.excursions},
                           {"outside", counts.outside},
                           {"lost", counts.lost}}},
                         {"scenarios", by_scenario},
                         {"left", names},
                         {"program", program},
                         {"profiler", profiler_record(session_, left.empty())},
                         {"sections", sections_record(stepper_)},
                         {"events", events_record(stepper_)},
                         {"findings", findings_record(stepper_)},
                         {"blobs", blobs_record(stepper_)}};
    const std::filesystem::path part = folder_ / "step.json.part";
    write_file(part, record.dump() + "\n");
    std::filesystem::rename(part, folder_ / "step.json");
  }

 private:
  const std::filesystem::path folder_;
  Session& session_;
  Stepper& stepper_;
  FindingsSoFar findings_;
};

std::vector<ScenarioId> scenarios_of(const StepOptions& options) {
  std::vector<ScenarioId> scenarios = options.session.scenarios;
  if (!scenarios.empty()) return scenarios;
  for (const ScenarioInfo& info : all_scenarios()) {
    const bool lasts = info.halt == Halt::busy || info.halt == Halt::blocked;
    if (info.java && lasts) scenarios.push_back(info.id);
  }
  return scenarios;
}

// Returns run_step()'s exit code.
int step_scenarios(const StepOptions& options, Session& session, Stepper& stepper,
                   const LibjvmMutants* mutants, Record* record) {
  const std::vector<ScenarioId> scenarios = scenarios_of(options);
  json by_scenario = json::object();
  const auto begin = Clock::now();
  for (size_t over = 0; over < scenarios.size(); ++over) {
    const std::span left = std::span(scenarios).subspan(over);
    record->write(by_scenario, left, {});
    const ScenarioId scenario = left.front();
    const Seconds slice =
        (Seconds(options.seconds) - (Clock::now() - begin)) / static_cast<double>(left.size());
    const auto started = Clock::now();
    const uint64_t steps = stepper.counts().steps;
    std::string reason;
    const size_t events = options.limits.events.size();
    size_t turn = 0;
    stepper.set_injecting(false);
    do {
      Seconds round = slice - (Clock::now() - started);
      if (events > 0) {
        const Seconds share = slice / static_cast<double>(events + 1);
        round = std::max(kShortestRound, std::min({round, kEventRound, share}));
      }
      std::string ended = step_scenario(session.victims(), stepper, scenario, round);
      if (turn == 0) reason = std::move(ended);  // an event may keep it from its point
      stepper.set_injecting(true, turn++);
    } while (events > 0 && reason.empty() &&
             (turn <= events || Clock::now() - started < slice * kWholeSlice));
    stepper.end_event();
    if (mutants != nullptr && mutants->spoiled()) {
      record->write(by_scenario, left, {});
      return kNotReusable;
    }
    by_scenario[std::string(name_of(scenario))] = {
        {"steps", stepper.counts().steps - steps},
        {"seconds", Seconds(Clock::now() - started).count()},
        {"unavailable", reason},
        {"events", injected_record(stepper, scenario)}};
    std::printf("%s %llu\n", std::string(name_of(scenario)).c_str(),
                static_cast<unsigned long long>(stepper.counts().steps - steps));
    std::fflush(stdout);
  }
  stepper.settle();
  record->write(by_scenario, {}, {});
  return 0;
}

void step_whole_program(const StepOptions& options, Jvm& jvm, Stepper& stepper, Record* record) {
  ProgramOptions program = options.program;
  FindingsSoFar& findings = record->findings();
  findings.write();
  program.after_window = [&findings] { findings.update(); };
  program.limit = Seconds(options.seconds);
  program.warm_up =
      std::max(program.warm_up, std::min(kLongestWarmUp, program.limit / kWarmUpShare));
  const ProgramResult result = step_program(jvm, stepper, program);
  json sampled = json::array();
  for (const auto& [place, count] : result.sampled) {
    sampled.push_back({{"kind", place.kind},
                       {"name", place.name},
                       {"tier", place.tier},
                       {"offset", place.offset},
                       {"code", hex_bytes(reinterpret_cast<const uint8_t*>(place.code.data()),
                                          place.code.size())},
                       {"samples", count}});
  }
  stepper.settle();
  record->write(json::object(), {},
                {{"windows", result.windows},
                 {"vain", result.vain},
                 {"events", injected_record(stepper, ScenarioId::count)},
                 {"ended", result.ended},
                 {"sampled", sampled}});
}

}  // namespace

int run_step(StepOptions options) {
  options.session.start_victims = false;
  const bool whole = !options.program.main_class.empty();
  const std::vector<StepEvent>& events = options.limits.events;
  if (whole) {
    options.limits.outside = kProgramOutside;
    options.limits.inside = kProgramInside;
    options.limits.events_at = kProgramEvents;
    if (const auto found = std::ranges::find_if(events, breaks_programs); found != events.end()) {
      throw SetupError("a program that has an event " + std::string(name_of(*found)) +
                       " does not do what it is to do: that is for scenarios");
    }
  }
  if (whole && !options.mutants.empty()) {
    throw SetupError("a program does not come to the same place again: mutants are for scenarios");
  }
  options.session.jvm.can_pop_frames = pops_frames(events);
  Session session(options.session);
  Stepper stepper(session.jvm(), walkers_of(session, options.walkers, session.executor()),
                  options.limits);
  std::optional<LibjvmMutants> mutants;
  if (!options.mutants.empty()) stepper.set_mutants(&mutants.emplace(options.mutants));
  Record record(options, session, stepper);
  if (whole) {
    step_whole_program(options, session.jvm(), stepper, &record);
    return 0;
  }
  return step_scenarios(options, session, stepper, mutants ? &*mutants : nullptr, &record);
}

int replay_step(const ReplayOptions& options) {
  const Input input = load_input_file(options.artifact);
  SessionOptions session_options = options.session;
  session_options.start_victims = false;
  session_options.jvm.can_pop_frames = input.halt.event == StepEvent::pop_frame;
  Session session(session_options);
  FindingsWriter writer(options.out, session);
  const bool same_thread = input.mode == Mode::same_thread;
  std::vector<StepEvent> events;
  if (input.halt.event != StepEvent::none) events.push_back(input.halt.event);
  Stepper stepper(session.jvm(), walkers_of(session, {input.walker}, session.executor()),
                  {.same_thread = same_thread,
                   .outside = {.one_in = same_thread ? 0U : 1U},
                   .events = std::move(events),
                   .events_at = {.one_in = 1}});
  const std::string reason =
      step_scenario(session.victims(), stepper, input.scenario, kReplayTime, input.halt);
  const auto& injected = stepper.events().counts();
  // The artifact's event may keep the victim from its point, as a ThreadDeath does.
  if (!reason.empty() && !injected.contains(input.scenario)) {
    throw SetupError("scenario " + std::string(name_of(input.scenario)) +
                     " is not available on this JDK: " + reason);
  }
  std::optional<SignatureFile> signature;
  if (!options.signature.empty()) signature.emplace(options.signature);
  bool found = false;
  stepper.settle();
  for (const auto& [key, one] : stepper.findings()) {
    writer.write(one, 0);
    found |= !signature || signature->matches(one.finding);
  }
  json result = input_record(input);
  result.update({{"found", found},
                 {"halts", stepper.arrivals()},
                 {"walks", stepper.counts().walked},
                 {"at_halt_point", stepper.arrivals()},
                 {"findings", stepper.findings().size()},
                 {"unresolved", 0},
                 {"not_judged", json::object()}});
  write_file(options.out / "replay.json", result.dump(2) + "\n");
  return 0;
}

}  // namespace framestorm
