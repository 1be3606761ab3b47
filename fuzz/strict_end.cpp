#include "fuzz/strict_end.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "fuzz/options.h"
#include "harness/base/error.h"
#include "harness/executor/run_files.h"
#include "harness/input/binary.h"
#include "harness/input/text.h"
#include "harness/jvm/modules.h"

extern "C" [[gnu::weak]] int __llvm_profile_write_file();  // -fprofile-instr-generate

namespace framestorm {
namespace {

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : text.get();
}

// What -minimize_crash must not lose.
constexpr size_t kTokenFrames = 3;

// "    #0 0x7f12 in frame::sender(RegisterMap*) const (/jdk/lib/server/libjvm.so+0x8899)"
void print_stack(const FaultRecord& fault) {
  const Modules modules = Modules::snapshot();
  std::map<std::string, FunctionTable> tables;
  std::string token;
  for (uint32_t i = 0; i < fault.stack_size; ++i) {
    const uintptr_t address = fault.stack[i];
    const Module* module = modules.find(address);
    if (module == nullptr) {
      std::fprintf(stderr, "    #%u 0x%012lx  (<unknown module>)\n", i, address);
      continue;
    }
    const FunctionTable& table = tables.try_emplace(module->path, module->path).first->second;
    // A return address stands behind its call, possibly at the next function's start.
    const FunctionTable::Function* function = table.find(address - module->base - (i == 0 ? 0 : 1));
    const std::string name = function == nullptr ? "??" : demangled(function->name);
    std::fprintf(stderr, "    #%u 0x%012lx in %s (%s+0x%lx)\n", i, address, name.c_str(),
                 module->path.c_str(), address - module->base);
    if (i < kTokenFrames) token += (i == 0 ? "" : "--") + name.substr(0, name.find('('));
  }
  if (!token.empty()) std::fprintf(stderr, "DEDUP_TOKEN: %s\n", token.c_str());
}

// libFuzzer's names are the SHA1 of the content; what matters is that they differ.
std::string artifact_name(std::string_view prefix, const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
  return std::string(prefix) + "-" + key_text(hash);
}

// The lines by which ClusterFuzz tells crashes apart.
void print_error(const Finding& finding) {
  const int pid = getpid();
  const FaultRecord& fault = finding.fault;
  if (finding.kind == FindingKind::hang) {
    std::fprintf(stderr, "==%d== ERROR: libFuzzer: timeout after 1 seconds\n", pid);
  } else if (finding.kind == FindingKind::sanitizer && fault.address != 0) {
    std::fprintf(stderr, "==%d==ERROR: AddressSanitizer: %s on address 0x%012lx at pc 0x%012lx\n",
                 pid, finding.clause.c_str(), fault.address, fault.pc);
  } else if (finding.kind == FindingKind::sanitizer) {
    std::fprintf(stderr, "==%d==ERROR: UndefinedBehaviorSanitizer: %s at pc 0x%012lx\n", pid,
                 finding.clause.c_str(), fault.pc);
  } else {
    std::fprintf(stderr, "==%d== ERROR: libFuzzer: deadly signal\n", pid);
  }
}

}  // namespace

int report_crash(const Finding& finding, const Input& input, const ArtifactPath& artifact) {
  const bool hang = finding.kind == FindingKind::hang;
  print_error(finding);
  print_stack(finding.fault);
  std::fprintf(stderr, "framestorm: %s %s\n%s\n%s", std::string(name_of(finding.kind)).c_str(),
               finding.clause.c_str(), finding.detail.c_str(), to_text(input).c_str());
  std::fprintf(stderr, "SUMMARY: framestorm: %s %s\n", std::string(name_of(finding.kind)).c_str(),
               finding.clause.c_str());
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  const std::string path = artifact(artifact_name(hang ? "timeout" : "crash", bytes));
  if (!path.empty()) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (!file) throw SetupError("cannot write " + path + ": is there such a folder, disk full?");
    std::fprintf(stderr, "Test unit written to %s\n", path.c_str());
  }
  return hang ? kExitTimeout : kExitFinding;
}

void end_process(int code) {
  if (&__llvm_profile_write_file != nullptr) __llvm_profile_write_file();
  std::fflush(stdout);
  std::_Exit(code);
}

}  // namespace framestorm
