#include "fuzz/bundle/bundle.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <system_error>
#include <vector>

namespace framestorm {
namespace {

struct Settings {
  const char* variable;
  const char* needed;  // behind whatever is there: the last one counts
};

// HotSpot owns the fault signals and takes stack addresses for positions; a failed check outside
// walks ends the process by SIGABRT, which the engine takes for a crash.
constexpr Settings kSettings[] = {
    {"ASAN_OPTIONS",
     "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:"
     "allow_user_segv_handler=1:use_sigaltstack=0:detect_stack_use_after_return=0:detect_leaks=0:"
     "halt_on_error=0:suppress_equal_pcs=0:symbolize=0:fast_unwind_on_fatal=1:"
     "allocator_may_return_null=1:abort_on_error=1:detect_odr_violation=0:print_cmdline=0"},
    {"UBSAN_OPTIONS",
     "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:"
     "use_sigaltstack=0:symbolize=0:abort_on_error=1"}};

// HotSpot takes arguments from them; LD_LIBRARY_PATH might name other libraries of a JDK.
constexpr const char* kForeign[] = {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
                                    "CLASSPATH", "LD_LIBRARY_PATH"};

// What a bundle adds to the JVM's arguments: it writes no file, and nobody attaches to it.
constexpr const char* kJvmArguments[] = {"-XX:+ErrorFileToStderr", "-XX:-CreateCoredumpOnCrash",
                                         "-XX:+DisableAttachMechanism"};

std::filesystem::path folder_of_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace

void prepare_environment(char** argv) {
  bool changed = false;
  for (const Settings& settings : kSettings) {
    const char* given = getenv(settings.variable);
    std::string value = given == nullptr ? "" : given;
    if (value.ends_with(settings.needed)) continue;
    value += (value.empty() ? "" : ":") + std::string(settings.needed);
    setenv(settings.variable, value.c_str(), 1);
    changed = true;
  }
  for (const char* variable : kForeign) unsetenv(variable);
  if (!changed) return;
  execv("/proc/self/exe", argv);
  throw std::system_error(errno, std::generic_category(), "executing the program anew");
}

int read_bundle(std::string_view target, FuzzOptions* options) {
  const std::filesystem::path folder = folder_of_program() / "framestorm";
  std::vector<std::string> arguments = {
      std::string(target),       "--strict",  "--jdk",
      (folder / "jdk").string(), "--classes", (folder / "classes").string()};
  for (const char* argument : kJvmArguments) {
    arguments.insert(arguments.end(), {"--jvm-arg", argument});
  }
  std::ifstream file(folder / "arguments");
  if (!file) {
    std::cerr << target << ": " << (folder / "arguments").string()
              << " is missing: a bundle is moved as a whole\n";
    return kExitSetup;
  }
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) arguments.push_back(line);
  }
  std::vector<char*> argv;
  argv.reserve(arguments.size());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  options->bundled = true;
  return parse_options(target, static_cast<int>(argv.size()), argv.data(), options);
}

}  // namespace framestorm
