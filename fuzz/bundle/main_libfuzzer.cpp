// A bundled target for libFuzzer. The main() is libFuzzer's own: it calls LLVMFuzzerInitialize,
// which starts the JVM and runs libFuzzer's loop once more, on the stack that the victims share.
#include <time.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>

#include "fuzz/bundle/bundle.h"
#include "fuzz/driver.h"
#include "fuzz/libfuzzer_arguments.h"
#include "fuzz/mutator_profile.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

// A walk's time without using any processor, before it counts as hung.
constexpr long kTimeoutSeconds = 5;

uint64_t seed_of(const LibFuzzerArguments& arguments) {
  const long seed = arguments.number("seed", 0);
  if (seed != 0) return static_cast<uint64_t>(seed);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_nsec ^ now.tv_sec);
}

int run(const LibFuzzerArguments& arguments) {
  FuzzOptions options;
  if (const int code = read_bundle(only_target(), &options); code >= 0) return code;
  EngineOptions& engine = options.engine;
  engine.arguments = arguments.completed();
  engine.bursts_of_corpus = false;
  options.seconds = std::numeric_limits<double>::infinity();  // libFuzzer's own limit counts
  engine.artifact = [arguments](std::string_view name) { return arguments.artifact_path(name); };
  // What is merged is executed in one process after the other, until one gets to the end.
  engine.worn_out = arguments.merges() ? kExitFinding : kExitDone;
  if (arguments.executes_files()) {
    engine.source = InputSource::files;
    // The artifact is there already.
    if (arguments.artifact_path("").empty()) engine.artifact = [](auto) { return std::string(); };
  }
  if (const std::string file = arguments.minimized_file(); !file.empty()) {
    engine.source = InputSource::origin;
    std::ifstream content(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(content), {});
    decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, &engine.origin);
  }
  if (const long seconds = arguments.number("timeout", kTimeoutSeconds); seconds > 0) {
    options.session.limits.wall_ns = static_cast<uint64_t>(seconds) * 1'000'000'000U;
  }
  options.seed = seed_of(arguments);
  return run_target(only_target(), std::move(options));
}

}  // namespace
}  // namespace framestorm

extern "C" [[gnu::visibility("default")]] int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static bool begun = false;
  if (begun) return 0;  // of the loop that was started below
  begun = true;
  try {
    framestorm::prepare_environment(*argv);
    const framestorm::LibFuzzerArguments arguments({*argv, *argv + *argc});
    if (arguments.only_starts_others()) return 0;
    std::_Exit(framestorm::run(arguments));
  } catch (const std::exception& error) {
    std::cerr << framestorm::only_target() << ": " << error.what() << '\n';
    std::_Exit(framestorm::kExitSetup);
  }
}

// Only for those who look for the name: the loop has a callback of its own.
extern "C" [[gnu::visibility("default")]] int LLVMFuzzerTestOneInput(const uint8_t*, size_t) {
  std::cerr << framestorm::only_target() << " needs an engine that calls LLVMFuzzerInitialize\n";
  std::_Exit(framestorm::kExitSetup);
}
