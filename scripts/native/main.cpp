// framestorm-native: what the framestorm command needs of the harness besides fuzzing and stepping.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "harness/base/error.h"
#include "harness/input/option_names.h"
#include "harness/input/seed_folder.h"
#include "harness/walkers/plugin.h"
#include "scripts/native/codec.h"
#include "scripts/native/command_line.h"
#include "scripts/native/coverage.h"
#include "scripts/native/replay.h"

namespace framestorm {
namespace {

constexpr char kProgram[] = "framestorm-native";

int names_with(const std::string& plugin) {
  if (plugin.empty()) return run_names(std::cout);
  try {
    return run_names(std::cout, &Plugin::load(PluginSpec::parse(plugin))->traits());
  } catch (const SetupError& error) {
    std::cerr << error.what() << '\n';
    return kSetupError;
  }
}

// A stepped artifact is replayed by framestorm-step, which lies beside this program and has the same
// command line for it.
int replay_or_step(const ReplayOptions& options, char** argv) {
  if (load_input_file(options.artifact).halt.occurrence == 0) return run_replay(options);
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("framestorm-step");
  execv(program.c_str(), argv);
  throw SetupError(program.string() +
                   ", which replays stepped artifacts, cannot be started: " + std::strerror(errno));
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
  take_names(scenarios->add_option("--scenario", scenario_options.scenarios,
                                   "only these; may be repeated"),
             names_to_values<ScenarioId>());

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kSetupError;
  }
  if (*decode) return run_decode(decode_options, std::cin, std::cout, std::cerr);
  if (*encode) return run_encode(std::cin, std::cout, std::cerr);
  if (*names) return names_with(plugin);
  if (*replay)
    run_as_control_thread(kProgram, [&] { return replay_or_step(replay_options, argv); });
  if (*minimize) run_as_control_thread(kProgram, [&] { return run_minimize(replay_options); });
  if (*coverage) run_as_control_thread(kProgram, [&] { return run_coverage(coverage_options); });
  run_as_control_thread(kProgram, [&] { return run_scenarios(scenario_options, scenario_halts); });
}

}  // namespace
}  // namespace framestorm

int main(int argc, char** argv) { return framestorm::run(argc, argv); }
