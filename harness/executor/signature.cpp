#include "harness/executor/signature.h"

#include <algorithm>

#include "harness/input/input.h"

namespace framestorm {
namespace {

class Fnv {
 public:
  void add(uint64_t value) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return hash_; }

 private:
  void add_byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }
  uint64_t hash_ = 0xcbf29ce484222325U;
};

constexpr std::string_view kExpected = ", expected ";

// The name of a method ("a/B.c", "B.c@7", "?" where it has none).
bool is_method(std::string_view word) {
  return word == "?" || word.find_first_of("/@$.") != std::string_view::npos;
}

// That, a number or an address; no scenario ("c1").
bool is_value(std::string_view word) {
  ScenarioId scenario = {};
  const bool has_digit = word.find_first_of("0123456789") != std::string_view::npos;
  return is_method(word) || (has_digit && !parse_name(word, &scenario));
}

// The detail with `*` for these words, without what a scenario expects.
std::string without(bool (*is_left_out)(std::string_view), const Finding& finding) {
  std::string result;
  std::string_view rest =
      std::string_view(finding.detail).substr(0, finding.detail.find(kExpected));
  std::string_view last;
  while (!rest.empty()) {
    const std::string_view token = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(token.size() + 1, rest.size()));
    const std::string_view word = token.substr(0, token.find_last_not_of(".,:;") + 1);
    const std::string_view end = token.substr(word.size());
    const std::string_view shown = is_left_out(word) ? "*" : word;
    if (token.empty() || (shown == "*" && last == "*")) continue;
    if (!result.empty()) result += ' ';
    result.append(shown).append(end);
    last = end.empty() ? shown : token;
  }
  return result;
}

}  // namespace

std::string detail_class(const Finding& finding) {
  return finding.kind == FindingKind::contract ? without(&is_value, finding) : std::string();
}

std::string shape_of(const Finding& finding) { return without(&is_method, finding); }

Signatures::Signatures() : modules_(Modules::snapshot()) {}

uint64_t Signatures::function_of(uintptr_t address) {
  const Module* module = modules_.find(address);
  // A jump into the code cache, the stack or nowhere: where exactly is chance.
  if (module == nullptr) return 0;
  auto it = tables_.find(module->path);
  if (it == tables_.end()) it = tables_.emplace(module->path, FunctionTable(module->path)).first;
  const uint64_t elf_address = address - module->base;
  const FunctionTable::Function* function = it->second.find(elf_address);
  return function == nullptr ? elf_address & ~uint64_t{0xfff} : function->begin;
}

uint64_t Signatures::key_of(const Finding& finding) {
  Fnv hash;
  hash.add(static_cast<uint64_t>(finding.kind));
  hash.add(finding.clause);
  if (finding.mutant != 0) hash.add(finding.mutant);
  if (finding.kind == FindingKind::fault) hash.add(static_cast<uint64_t>(finding.fault.signo));
  if (finding.kind == FindingKind::contract) {
    hash.add(detail_class(finding));
    hash.add(name_of(finding.input.walker));
  }
  // Triage tells those apart by their victim that it has nothing else of.
  if (finding.kind != FindingKind::contract && finding.fault.stack_size == 0) {
    hash.add(name_of(finding.input.scenario));
  }
  uint64_t last = 0;
  size_t counted = 0;
  for (size_t i = 0; i < finding.fault.stack_size && counted < kSignatureFrames; ++i) {
    // Return addresses stand behind the call, possibly at the next function's start.
    const uint64_t function = function_of(finding.fault.stack[i] - (i == 0 ? 0 : 1));
    if (function == last && i > 0) continue;  // recursion counts once
    hash.add(function);
    last = function;
    ++counted;
  }
  return hash.value();
}

}  // namespace framestorm
