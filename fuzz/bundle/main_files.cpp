// A bundled target without an engine: executes the files it is given, and those in folders it is
// given.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "fuzz/bundle/bundle.h"
#include "fuzz/bundle/engine_files.h"
#include "fuzz/driver.h"
#include "fuzz/mutator_profile.h"

namespace {

using namespace framestorm;

int run(int argc, char** argv) {
  prepare_environment(argv);
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("-")) continue;  // of some engine
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    std::cerr << "usage: " << only_target()
              << " FILE|FOLDER ...\n"
                 "Walks each input. Exit code 0: no finding, 77: a finding, 2: set-up error.\n";
    return kExitSetup;
  }
  std::ranges::sort(files);
  FuzzOptions options;
  if (const int code = read_bundle(only_target(), &options); code >= 0) return code;
  options.engine.source = InputSource::files;
  options.engine.artifact = [](std::string_view) { return std::string(); };  // it is there
  set_files(std::move(files));
  return run_target(only_target(), std::move(options));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << only_target() << ": " << error.what() << '\n';
    return kExitSetup;
  }
}

// What tells a fuzz target from other programs.
extern "C" [[gnu::visibility("default")]] int LLVMFuzzerTestOneInput(const uint8_t*, size_t) {
  return 0;
}
