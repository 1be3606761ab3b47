// framestorm-native replay, minimize and scenarios: the data path for one artifact, or for every
// scenario, in one JVM.
#pragma once

#include <filesystem>

#include "harness/executor/session.h"

namespace framestorm {

struct ReplayOptions {
  SessionOptions session;
  std::filesystem::path out;
  std::filesystem::path artifact;
  std::filesystem::path signature;  // empty: any finding ends the try
  int halts = 64;
};

// The process had to end, and another one may go on.
inline constexpr int kNotReusable = 3;

// Exit codes: 0 done, 2 set-up error (thrown as SetupError), kNotReusable after a finding. Write
// replay.json and the files of RunWriter; minimize also minimized.bin. Control thread; end the
// process with std::_Exit afterwards, HotSpot's exit would wait for victims.
int run_replay(const ReplayOptions& options);
int run_minimize(const ReplayOptions& options);

// JSON on stdout: what each scenario is on this JVM, walked unmutated in both modes at `halts`
// points and compared with the reference.
int run_scenarios(const SessionOptions& options, int halts);

}  // namespace framestorm
