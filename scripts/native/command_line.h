// What the command lines of framestorm-native and framestorm-step have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "harness/executor/session.h"
#include "scripts/native/replay.h"

namespace framestorm {

inline constexpr int kSetupError = 2;

// On a thread of its own: HotSpot does not like to measure the primordial thread's stack. The
// process ends without exit handlers, which would wait for victims. `program` is its name.
template <typename Function>
[[noreturn]] void run_as_control_thread(const char* program, Function function) {
  std::thread control_thread([&] {
    int code = kSetupError;
    try {
      code = function();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", program, error.what());
    }
    std::fflush(stdout);
    std::_Exit(code);
  });
  control_thread.join();
  std::_Exit(kSetupError);
}

inline void add_session_options(CLI::App* command, SessionOptions* session) {
  command->add_option("--jdk", session->jvm.home, "folder of the JDK under test")->required();
  command->add_option("--classes", session->jvm.class_path, "folder with the victims' classes")
      ->required();
  command->add_option("--jvm-arg", session->jvm.extra_args, "passed to the JVM; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--walker-plugin", session->walker_plugin, "walker in a shared object");
  command->add_option("--profiler", session->profiler,
                      "FILE[=OPTIONS] of a profiler's agent, or jvm for the JVM's own");
}

inline void add_replay_options(CLI::App* command, ReplayOptions* options) {
  add_session_options(command, &options->session);
  command->add_option("--out", options->out, "output folder")->required();
  command->add_option("--artifact", options->artifact, "artifact or text form")->required();
  command->add_option("--signature", options->signature, "JSON: what counts as found");
  command->add_option("--halts", options->halts, "points to halt the victim at, at most");
}

}  // namespace framestorm
