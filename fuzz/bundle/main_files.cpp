// A bundled target without an engine: executes the files it is given, and those in folders it is
// given.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/bundle/bundle.h"
#include "fuzz/driver.h"
#include "fuzz/fuzz_engine.h"
#include "fuzz/mutator_profile.h"
#include "harness/base/error.h"

namespace framestorm {
namespace {

class FilesEngine final : public FuzzEngine {
 public:
  std::vector<std::filesystem::path> files;

  int prepare(FuzzOptions*) override { return -1; }
  bool mutates_here() const override { return true; }
  void tell(const CodeNameList&) override {}

  void run(const FuzzOptions&, const Coverage& coverage, InputLoop& loop) override {
    for (const std::filesystem::path& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(file), {});
      if (!file) throw SetupError("cannot read " + path.string());
      std::fprintf(stderr, "Running: %s\n", path.c_str());
      std::ranges::fill(coverage.counters(), uint8_t{0});
      loop.execute({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
      const auto reached =
          std::ranges::count_if(coverage.counters(), [](uint8_t c) { return c != 0; });
      std::fprintf(stderr, "Executed: %s, %zu bytes, %td edges of libjvm\n", path.c_str(),
                   bytes.size(), reached);
    }
    loop.end(kExitDone);
  }
};

FilesEngine engine;

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
  engine.files = std::move(files);
  return run_target(only_target(), std::move(options));
}

}  // namespace

FuzzEngine& FuzzEngine::get() { return engine; }

}  // namespace framestorm

int main(int argc, char** argv) {
  using namespace framestorm;
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
