#include "fuzz/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "harness/input/option_names.h"

namespace framestorm {

int parse_options(std::string_view target, int argc, char** argv, FuzzOptions* options) {
  CLI::App app("framestorm fuzz target " + std::string(target) +
               ". Usually started by `scripts/framestorm fuzz`.");
  app.add_option("--jdk", options->session.jvm.home, "folder of the JDK under test")->required();
  app.add_option("--classes", options->session.jvm.class_path,
                 "folder with the victims' classes; may be repeated")
      ->required();
  app.add_option("--out", options->out, "output folder")->required(!options->bundled);
  app.add_option("--seconds", options->seconds, "time from the first walk on");
  app.add_option("--runs", options->runs, "stop after so many walks; 0: no limit");
  app.add_option("--seed", options->seed, "of the mutator and the order of halts");
  take_names(
      app.add_option("--scenario", options->session.scenarios, "only these; may be repeated"),
      names_to_values<ScenarioId>());
  take_names(app.add_option("--mode", options->modes, "only these; may be repeated"),
             names_to_values<Mode>());
  take_names(app.add_option(
                 "--walker", options->walkers,
                 "only these; may be repeated. Otherwise all that the JDK has, with --bench asgct"),
             names_to_values<WalkerId>());
  app.add_option("--walker-plugin", options->session.walker_plugin,
                 "shared object of --walker plugin");
  app.add_option("--profiler", options->session.profiler,
                 "of --walker profiler: an agent library with its options, FILE[=OPTIONS], or jvm "
                 "for the handler that a --jvm-arg installs");
  app.add_option("--corpus", options->corpus, "folder of seeds, text or binary; may be repeated");
  app.add_option("--jvm-arg", options->session.jvm.extra_args, "passed to the JVM; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--strict", options->strict, "end the process at the first finding");
  app.add_flag("--unguided", options->unguided,
               "keep coverage from the engine: every mutant is tried, none is kept");
  take_names(app.add_option("--baseline", options->baseline,
                            "mutate as others do, which the mutator is measured against"),
             std::map<std::string, Baseline>{{"offsets", Baseline::offsets},
                                             {"faulty-reads", Baseline::faulty_reads}});
  app.add_option("--mutants", options->mutants,
                 "file in which libjvm counts its mutants: walk inputs again with each that acts");
  app.add_flag("--record-edges", options->record_edges,
               "write which edges of libjvm were reached when to edges.jsonl");
  app.add_flag("--one-halt", options->one_halt,
               "halt the world anew only for another scenario: afl-cmin, afl-tmin");
  app.add_flag("--bench", options->bench, "measure the loop against bare calls, print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitDone : kExitSetup;
  }
  if (options->modes.empty()) options->modes = {Mode::same_thread, Mode::separate_thread};
  for (const WalkerId id : options->walkers) {
    const WalkerTraits& walker = traits_of(id);
    if (walker.needs_running_vm) {
      std::cerr
          << "--walker " << walker.name
          << " cannot be fuzzed: it walks running threads at a safepoint, where nothing may be "
             "mutated. It is the reference of the scenario checks.\n";
      return kExitSetup;
    }
    if (walker.origin == WalkerOrigin::agent && options->session.profiler.empty()) {
      std::cerr << "--walker " << walker.name << " needs --profiler FILE.so[=OPTIONS]\n";
      return kExitSetup;
    }
    if (walker.origin == WalkerOrigin::shared_object && options->session.walker_plugin.empty()) {
      std::cerr << "--walker " << walker.name << " needs --walker-plugin FILE.so\n";
      return kExitSetup;
    }
  }
  if (options->bench && options->walkers.empty()) options->walkers = {kDefaultWalker};
  return -1;
}

}  // namespace framestorm
