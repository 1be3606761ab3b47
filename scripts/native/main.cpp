// framestorm-native: everything the framestorm command needs of the harness besides fuzzing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "harness/base/error.h"
#include "harness/input/option_names.h"
#include "harness/walkers/plugin.h"
#include "scripts/native/codec.h"
#include "scripts/native/coverage.h"
#include "scripts/native/replay.h"
#include "scripts/native/sample_view.h"
#include "scripts/native/step.h"
#include "scripts/native/walking_view.h"
#include "stress/agent/recorded_truth.h"

namespace framestorm {
namespace {

constexpr int kSetupError = 2;

// On a thread of its own: HotSpot does not like to measure the primordial thread's stack. The
// process ends without exit handlers, which would wait for victims.
template <typename Function>
[[noreturn]] void run_as_control_thread(Function function) {
  std::thread control_thread([&] {
    int code = kSetupError;
    try {
      code = function();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "framestorm-native: %s\n", error.what());
    }
    std::fflush(stdout);
    std::_Exit(code);
  });
  control_thread.join();
  std::_Exit(kSetupError);
}

void add_session_options(CLI::App* command, SessionOptions* session) {
  command->add_option("--jdk", session->jvm.home, "folder of the JDK under test")->required();
  command->add_option("--classes", session->jvm.class_path, "folder with the victims' classes")
      ->required();
  command->add_option("--jvm-arg", session->jvm.extra_args, "passed to the JVM; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--walker-plugin", session->walker_plugin, "walker in a shared object");
  command->add_option("--profiler", session->profiler,
                      "FILE[=OPTIONS] of a profiler's agent, or jvm for the JVM's own");
}

void add_replay_options(CLI::App* command, ReplayOptions* options) {
  add_session_options(command, &options->session);
  command->add_option("--out", options->out, "output folder")->required();
  command->add_option("--artifact", options->artifact, "artifact or text form")->required();
  command->add_option("--signature", options->signature, "JSON: what counts as found");
  command->add_option("--halts", options->halts, "points to halt the victim at, at most");
}

int names_with(const std::string& plugin) {
  if (plugin.empty()) return run_names(std::cout);
  try {
    return run_names(std::cout, &Plugin::load(PluginSpec::parse(plugin))->traits());
  } catch (const SetupError& error) {
    std::cerr << error.what() << '\n';
    return kSetupError;
  }
}

int judge_recording(const std::filesystem::path& shadows, const std::filesystem::path& traces,
                    const std::string& profiler) {
  std::ifstream noted(shadows);
  std::ifstream recorded(traces);
  try {
    if (!noted || !recorded) throw std::runtime_error("cannot be read");
    std::cout << stress::judge_recorded(noted, recorded, profiler).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << shadows << ", " << traces << ": " << error.what() << '\n';
    return kSetupError;
  }
}

int run(int argc, char** argv) {
  CLI::App app("framestorm's harness as a program; scripts/framestorm calls it.");
  app.require_subcommand(1);
  DecodeOptions decode_options;
  ReplayOptions replay_options;
  CoverageOptions coverage_options;
  SessionOptions scenario_options;
  int scenario_halts = 20;

  CLI::App* decode = app.add_subcommand("decode", "artifact on stdin, text on stdout");
  decode->add_flag("--force", decode_options.force, "also what framestorm did not write");
  decode->add_flag("--json", decode_options.json, "text, fields and state as JSON");
  CLI::App* encode = app.add_subcommand("encode", "text on stdin, artifact on stdout");
  CLI::App* names = app.add_subcommand("names", "all names of the text form, as JSON");
  std::string plugin;
  names->add_option("--walker-plugin", plugin, "what this walker declares replaces its row");
  CLI::App* replay = app.add_subcommand("replay", "one try of one artifact in one JVM");
  add_replay_options(replay, &replay_options);
  std::filesystem::path sample;
  CLI::App* show = app.add_subcommand("show-sample", "a sample of the stress agent, in words");
  show->add_option("sample", sample, "a .sample file")->required();
  std::filesystem::path walking_file;
  CLI::App* walking = app.add_subcommand("walking", "the walks in a walking.bin, as JSON");
  walking->add_option("walking", walking_file, "a walking.bin file")->required();
  std::filesystem::path shadows;
  std::filesystem::path traces;
  std::string profiler;
  CLI::App* recorded = app.add_subcommand("recorded-truth", "a profiler's traces, judged, as JSON");
  recorded->add_option("--walker", profiler, "its name")->required();
  recorded->add_option("shadows", shadows, "a shadows.tsv file")->required();
  recorded->add_option("traces", traces, "a traces.tsv file")->required();
  CLI::App* minimize = app.add_subcommand("minimize", "shrink an artifact, its signature kept");
  add_replay_options(minimize, &replay_options);
  CLI::App* coverage = app.add_subcommand("coverage", "what a corpus reaches in libjvm");
  add_session_options(coverage, &coverage_options.session);
  coverage->add_option("--out", coverage_options.out, "output folder")->required();
  coverage->add_option("--list", coverage_options.list, "file that names inputs, one a line");
  coverage->add_option("--halts", coverage_options.halts, "halts per scenario");
  coverage->add_option("inputs", coverage_options.inputs, "artifacts or text forms");
  CLI::App* scenarios = app.add_subcommand("scenarios", "walk every scenario unmutated");
  add_session_options(scenarios, &scenario_options);
  scenarios->add_option("--halts", scenario_halts, "halts per scenario");
  StepOptions step_options;
  CLI::App* step = app.add_subcommand("step", "every instruction of scenarios, walked and judged");
  add_session_options(step, &step_options.session);
  step->add_option("--out", step_options.out, "output folder")->required();
  step->add_option("--mutants", step_options.mutants,
                   "file in which libjvm counts its mutants: walk again with each that acts");
  step->add_option("--seconds", step_options.seconds, "for all scenarios, or the program");
  step->add_option("--main", step_options.program.main_class, "step this program, no scenarios");
  step->add_option("--argument", step_options.program.arguments, "of the program; repeatable")
      ->allow_extra_args(false);
  std::map<std::string, WalkerId> walker_names;
  for (const WalkerTraits& traits : kWalkers) walker_names[std::string(traits.name)] = traits.id;
  take_names(step->add_option("--walker", step_options.walkers, "only these; may be repeated"),
             walker_names);
  std::map<std::string, StepEvent> event_names;
  for (const StepEvent event : all_of<StepEvent>()) {
    if (event != StepEvent::none) event_names[std::string(name_of(event))] = event;
  }
  take_names(step->add_option("--event", step_options.limits.events, "injected; may be repeated"),
             event_names);
  std::map<std::string, ScenarioId> scenario_names;
  for (const ScenarioInfo& info : all_scenarios()) scenario_names[std::string(info.name)] = info.id;
  take_names(scenarios->add_option("--scenario", scenario_options.scenarios,
                                   "only these; may be repeated"),
             scenario_names);

  take_names(
      step->add_option("--scenario", step_options.session.scenarios, "only these; may be repeated"),
      scenario_names);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kSetupError;
  }
  if (*decode) return run_decode(decode_options, std::cin, std::cout, std::cerr);
  if (*encode) return run_encode(std::cin, std::cout, std::cerr);
  if (*names) return names_with(plugin);
  if (*show) return show_sample(sample, std::cout, std::cerr);
  if (*walking) return show_walking(walking_file, std::cout, std::cerr);
  if (*recorded) return judge_recording(shadows, traces, profiler);
  if (*replay) run_as_control_thread([&] { return run_replay(replay_options); });
  if (*minimize) run_as_control_thread([&] { return run_minimize(replay_options); });
  if (*step) run_as_control_thread([&] { return run_step(step_options); });
  if (*coverage) run_as_control_thread([&] { return run_coverage(coverage_options); });
  run_as_control_thread([&] { return run_scenarios(scenario_options, scenario_halts); });
}

}  // namespace
}  // namespace framestorm

int main(int argc, char** argv) { return framestorm::run(argc, argv); }
