// framestorm-step: real states of threads. Steps scenarios and programs, replays what it found there,
// and shows and judges what it and the stress agent have kept of such states.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

#include "harness/base/error.h"
#include "harness/input/option_names.h"
#include "scripts/native/command_line.h"
#include "scripts/native/sample_view.h"
#include "scripts/native/step.h"
#include "scripts/native/walking_view.h"
#include "stress/agent/recorded_truth.h"

namespace framestorm {
namespace {

constexpr char kProgram[] = "framestorm-step";

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
  CLI::App app("framestorm's stepping as a program; scripts/framestorm calls it.");
  app.require_subcommand(1);
  StepOptions step_options;
  CLI::App* step = app.add_subcommand("run", "every instruction of scenarios, walked and judged");
  add_session_options(step, &step_options.session);
  step->add_option("--out", step_options.out, "output folder")->required();
  step->add_option("--mutants", step_options.mutants,
                   "file in which libjvm counts its mutants: walk again with each that acts");
  step->add_option("--seconds", step_options.seconds, "for all scenarios, or the program");
  step->add_option("--main", step_options.program.main_class, "step this program, no scenarios");
  step->add_option("--argument", step_options.program.arguments, "of the program; repeatable")
      ->allow_extra_args(false);
  take_names(step->add_option("--walker", step_options.walkers, "only these; may be repeated"),
             names_to_values<WalkerId>());
  std::map<std::string, StepEvent> event_names = names_to_values<StepEvent>();
  event_names.erase(std::string(name_of(StepEvent::none)));
  take_names(step->add_option("--event", step_options.limits.events, "injected; may be repeated"),
             event_names);
  take_names(
      step->add_option("--scenario", step_options.session.scenarios, "only these; may be repeated"),
      names_to_values<ScenarioId>());
  ReplayOptions replay_options;
  CLI::App* replay = app.add_subcommand("replay", "one try of one stepped artifact in one JVM");
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

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kSetupError;
  }
  if (*show) return show_sample(sample, std::cout, std::cerr);
  if (*walking) return show_walking(walking_file, std::cout, std::cerr);
  if (*recorded) return judge_recording(shadows, traces, profiler);
  if (*replay) run_as_control_thread(kProgram, [&] { return replay_step(replay_options); });
  run_as_control_thread(kProgram, [&] { return run_step(step_options); });
}

}  // namespace
}  // namespace framestorm

int main(int argc, char** argv) { return framestorm::run(argc, argv); }
