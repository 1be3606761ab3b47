// libFuzzer, in this process: its loop runs on the migrating stack, its mutations are the driver's.
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/fuzz_engine.h"
#include "fuzz/libfuzzer_arguments.h"
#include "harness/executor/run_files.h"
#include "harness/guard/sanitizer.h"
#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"

extern "C" {
int LLVMFuzzerRunDriver(int* argc, char*** argv, int (*callback)(const uint8_t* data, size_t size));
// libFuzzer's, as clang's SanitizerCoverage.rst describes them.
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);
// Where libFuzzer notes how deep the stack was, which it takes for coverage.
extern __thread uintptr_t __sancov_lowest_stack;  // NOLINT(readability-identifier-naming)
}

namespace framestorm {
namespace {

InputLoop* current_loop = nullptr;

// libFuzzer ends by exit(), on a victim's thread in the midst of the halted world.
struct LibFuzzerEnd {
  static bool ask() {
    on_exit([](int code, void*) { current_loop->end(code); }, nullptr);
    return true;
  }
};

// Not inlined: an execution may end on another thread than it began on, which has its own.
[[gnu::noinline]] uintptr_t lowest_stack() { return __sancov_lowest_stack; }
[[gnu::noinline]] void set_lowest_stack(uintptr_t address) { __sancov_lowest_stack = address; }

int execute(const uint8_t* data, size_t size) {
  // libFuzzer has just made ASan's end of the process its own, and asked for its own exit handler.
  [[maybe_unused]] static const bool taken =
      (sanitizer::take_death_callback(), LibFuzzerEnd::ask());
  const uintptr_t before = lowest_stack();
  current_loop->execute({data, size});
  set_lowest_stack(before);
  return 0;
}

class LibFuzzerEngine final : public FuzzEngine {
 public:
  // Where libFuzzer looks for inputs: binary forms only.
  int prepare(FuzzOptions* options) override {
    if (!options->engine.arguments.empty())
      return -1;  // libFuzzer reads and writes where its command line says
    const auto folder = options->out / "seeds";
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(options->out / "corpus");
    const std::vector<Input> seeds = load_seed_folders(options->corpus);
    std::vector<uint8_t> bytes;
    // Without any seed libFuzzer starts from the mutator's own inputs.
    for (size_t i = 0; i < seeds.size(); ++i) {
      encode(seeds[i], &bytes);
      write_file(folder / (std::to_string(i) + ".bin"), bytes);
    }
    return -1;
  }

  bool mutates_here() const override { return true; }

  void tell(const CodeNameList&) override {}  // the driver's mutator has them

  void run(const FuzzOptions& options, const Coverage& coverage, InputLoop& loop) override {
    current_loop = &loop;
    const bool bursts = !coverage.available() && !options.unguided;
    if (coverage.available() && !options.unguided) {
      const std::span<uint8_t> counters = coverage.counters();
      __sanitizer_cov_8bit_counters_init(counters.data(), counters.data() + counters.size());
      const auto edges = coverage.edges();
      __sanitizer_cov_pcs_init(reinterpret_cast<const uintptr_t*>(edges.data()),
                               reinterpret_cast<const uintptr_t*>(edges.data() + edges.size()));
    }
    std::vector<std::string> arguments =
        options.engine.arguments.empty() ? arguments_of(options, bursts) : options.engine.arguments;
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int argc = static_cast<int>(arguments.size());
    char** raw_argv = argv.data();
    LibFuzzerEnd::ask();
    LLVMFuzzerRunDriver(&argc, &raw_argv, &execute);
  }

 private:
  static std::vector<std::string> arguments_of(const FuzzOptions& options, bool bursts) {
    // The driver has the limits. A JVM that ends itself is a death, which libFuzzer would give the exit code of
    // strict mode.
    std::vector<std::string> arguments = {
        "framestorm",
        "-runs=-1",
        "-rss_limit_mb=0",
        "-malloc_limit_mb=0",
        "-handle_abrt=0",
        "-error_exitcode=1",
        "-reload=0",
        bursts ? "-entropic=0" : "-entropic=1",
        bursts ? "-verbosity=0" : "-verbosity=1",
        "-seed=" + std::to_string(options.seed & 0x7fffffff),
        "-artifact_prefix=" + (options.out / "artifacts").string() + "/",
        (options.out / "corpus").string(),
        (options.out / "seeds").string()};
    if (bursts) arguments.emplace_back("-mutate_depth=1");  // a burst is deep enough
    return LibFuzzerArguments(std::move(arguments)).completed();
  }
};

}  // namespace

FuzzEngine& FuzzEngine::get() {
  static LibFuzzerEngine engine;
  return engine;
}

}  // namespace framestorm

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return framestorm::current_loop->mutate(data, size, max_size, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b,
                                            size_t b_size, uint8_t* out, size_t max_size,
                                            unsigned seed) {
  return framestorm::current_loop->cross({a, a_size}, {b, b_size}, {out, max_size}, seed);
}
