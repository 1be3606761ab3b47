#include "scripts/native/codec.h"

#include <cstdint>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "fuzz/mutator_profile.h"
#include "harness/input/binary.h"
#include "harness/input/input.h"
#include "harness/input/json_form.h"
#include "harness/input/state.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

// Far beyond any input or text form; keeps a wrong pipe from filling memory.
constexpr size_t kMaxStdin = 1 << 20;

std::string read_all(std::istream& in) {
  std::string content(kMaxStdin + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(in.gcount()));
  return content;
}

bool flushed(std::ostream& out, std::ostream& err) {
  if (out.flush()) {
    return true;
  }
  err << "the output cannot be written (no space left, or a closed pipe)\n";
  return false;
}

template <typename Enum>
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Enum one : all_of<Enum>()) names.emplace_back(name_of(one));
  return names;
}

std::string_view name_of(WalkerOrigin origin) {
  constexpr std::string_view kNames[] = {"jdk", "added", "shared-object", "agent"};
  return kNames[static_cast<size_t>(origin)];
}

nlohmann::ordered_json walkers(const WalkerTraits* declared) {
  auto table = nlohmann::ordered_json::array();
  for (const WalkerTraits& row : kWalkers) {
    const WalkerTraits& walker = declared != nullptr && declared->id == row.id ? *declared : row;
    table.push_back({{"name", walker.name},
                     {"description", walker.description},
                     {"symbol", walker.symbol},
                     {"origin", name_of(walker.origin)},
                     {"needs_running_vm", walker.needs_running_vm},
                     {"comparable", walker.is_comparable()},
                     {"same_thread", walker.same_thread},
                     {"separate_thread", walker.separate_thread}});
  }
  return table;
}

nlohmann::ordered_json targets() {
  auto targets = nlohmann::ordered_json::array();
  for (const MutatorProfile& profile : mutator_profiles()) {
    std::vector<std::string_view> walkers;
    for (const WalkerTraits& walker : kWalkers) {
      if (profile.is_for(walker.id)) walkers.push_back(walker.name);
    }
    targets.push_back({{"name", profile.target}, {"walkers", walkers}});
  }
  return targets;
}

}  // namespace

int run_decode(const DecodeOptions& options, std::istream& in, std::ostream& out,
               std::ostream& err) {
  const std::string content = read_all(in);
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  const ArtifactCheck check = check_artifact(bytes);
  if (check != ArtifactCheck::ok && !options.force) {
    err << explain(check) << " (--force decodes it anyway)\n";
    return kCodecUsageError;
  }
  Input input;
  decode(bytes, &input);
  out << (options.json ? input_record(input).dump() + "\n" : to_text(input));
  return flushed(out, err) ? kCodecOk : kCodecUsageError;
}

int run_encode(std::istream& in, std::ostream& out, std::ostream& err) {
  const std::string content = read_all(in);
  if (content.size() > kMaxStdin) {
    err << "line 1: longer than 1 MiB: not the text form of an input\n";
    return kCodecUsageError;
  }
  Input input;
  TextError error;
  if (!parse_text(content, &input, &error)) {
    err << "line " << error.line << ": " << error.message << '\n';
    return kCodecUsageError;
  }
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return flushed(out, err) ? kCodecOk : kCodecUsageError;
}

int run_names(std::ostream& out, const WalkerTraits* declared) {
  const nlohmann::ordered_json names = {
      {"input_version", kInputVersion},
      {"scenarios", all_names<ScenarioId>()},
      {"events", all_names<StepEvent>()},
      {"modes", all_names<Mode>()},
      {"walkers", all_names<WalkerId>()},
      {"values", all_names<ValueKind>()},
      {"code_kinds", all_names<CodeKind>()},
      {"code_anchors", all_names<CodeAnchor>()},
      {"registers", all_names<Register>()},
      {"thread_fields", all_names<ThreadField>()},
      {"stack_anchors", all_names<StackAnchor>()},
      {"mutations", all_names<MutationKind>()},
      {"depths", all_names<DepthKind>()},
      {"contexts", all_names<ContextArg>()},
      {"envs", all_names<EnvArg>()},
      {"states", all_names<StateKind>()},
      {"walker_table", walkers(declared)},
      {"targets", targets()},
  };
  out << names.dump(2) << '\n';
  return out.flush() ? kCodecOk : kCodecUsageError;
}

}  // namespace framestorm
