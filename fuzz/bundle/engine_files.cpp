#include "fuzz/bundle/engine_files.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "fuzz/fuzz_engine.h"
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

}  // namespace

FuzzEngine& FuzzEngine::get() { return engine; }

void set_files(std::vector<std::filesystem::path> files) { engine.files = std::move(files); }

}  // namespace framestorm
