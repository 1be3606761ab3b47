// A bundled target for AFL++. The main() is libAFLDriver's: it calls LLVMFuzzerInitialize, which
// goes on as afl_front.h says and does not return.
#include <cstdlib>
#include <exception>
#include <iostream>

#include "fuzz/bundle/bundle.h"
#include "fuzz/driver.h"
#include "fuzz/mutator_profile.h"

extern "C" [[gnu::visibility("default")]] int LLVMFuzzerInitialize(int*, char*** argv) {
  using namespace framestorm;
  try {
    prepare_environment(*argv);
    FuzzOptions options;
    if (const int code = read_bundle(only_target(), &options); code >= 0) std::_Exit(code);
    options.engine.artifact = [](std::string_view) { return std::string(); };  // AFL++ keeps it
    std::_Exit(run_target(only_target(), std::move(options)));
  } catch (const std::exception& error) {
    std::cerr << only_target() << ": " << error.what() << '\n';
    std::_Exit(kExitSetup);
  }
}

// Only for those who look for the name.
extern "C" [[gnu::visibility("default")]] int LLVMFuzzerTestOneInput(const uint8_t*, size_t) {
  std::cerr << framestorm::only_target() << " needs an engine that calls LLVMFuzzerInitialize\n";
  std::_Exit(framestorm::kExitSetup);
}
