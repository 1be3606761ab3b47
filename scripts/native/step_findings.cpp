#include "scripts/native/step_findings.h"

#include <algorithm>

#include "harness/input/binary.h"
#include "harness/input/state.h"
#include "stress/agent/kept_sample.h"
#include "stress/agent/sample_input.h"

namespace framestorm {
namespace {

using nlohmann::json;
using namespace stepping;

// All is written anew, with the stacks that are kept of a program.
constexpr double kBetweenUpdates = 5;

constexpr const char* kKept =
    "a kept sample: a program does not come to the same place again by itself. The .bin beside it "
    "brings the scenario that is most alike as near to it as can be said without addresses";

stress::Sample sample_of(const StepFinding& found) {
  const ProgramHalt& halt = *found.halt;
  stress::Sample sample;
  sample.tid = halt.tid;
  sample.java_thread = halt.java_thread;
  sample.walk.walker = found.finding.input.walker;
  sample.walk.depth = halt.depth;
  sample.walk.result = halt.result;
  sample.walk.thread_state = halt.thread_state;
  sample.last_java_sp = halt.last_java_sp;
  sample.last_java_pc = halt.last_java_pc;
  sample.last_java_fp = halt.last_java_fp;
  sample.stack_base = halt.stack_base;
  sample.stack_end = halt.stack_end;
  std::ranges::copy(halt.registers, sample.registers);
  return sample;
}

}  // namespace

FindingsWriter::FindingsWriter(const std::filesystem::path& folder, Session& session)
    : folder_(folder),
      jvm_(session.jvm()),
      executor_(session.executor()),
      modules_(Modules::snapshot()) {
  std::filesystem::create_directories(folder / "artifacts");
  write_identity(folder, session.jvm());
  file_.open(folder / "findings.jsonl");
}

void FindingsWriter::write(const StepFinding& found, double time) {
  const Finding& finding = found.finding;
  const uint64_t key = signatures_.key_of(finding);
  KeyCounts& counts = counts_[key];
  counts.count += found.count;
  for (const auto& [scenario, count] : found.scenarios) counts.victims[scenario] += count;
  if (indices_[key] == 0) {
    const std::vector<NamedFrame> trace = executor_.name_frames(found.frames);
    const json step = {{"position", found.position},
                       {"section", found.section},
                       {"truth", found.truth},
                       {"path", found.path}};
    json line =
        found.halt ? keep(found, key, time, trace, step) : line_of(finding, key, time, trace);
    line["step"] = step;
    file_.append(line);
    for (const Finding& other : found.others) file_.append(line_of(other, key, time, {}));
  }
  append_counts(&file_, key, &counts);
}

json FindingsWriter::line_of(const Finding& finding, uint64_t key, double time,
                             const std::vector<NamedFrame>& trace) {
  const std::string artifact = name(key) + ".bin";
  write_input(finding.input, artifact);
  return finding_line(finding, key, time, artifact, finding.input, modules_, trace);
}

json FindingsWriter::keep(const StepFinding& found, uint64_t key, double time,
                          const std::vector<NamedFrame>& trace, const json& step) {
  const stress::SamplingMode mode = found.finding.input.mode == Mode::same_thread
                                        ? stress::SamplingMode::same_thread
                                        : stress::SamplingMode::separate_thread;
  const stress::Sample sample = sample_of(found);
  const Input input = stress::input_of(sample, found.halt->stack, jvm_.code_map(), mode);
  const std::string artifact = name(key);
  write_input(input, artifact + ".bin");
  json line = finding_line(found.finding, key, time, artifact + ".sample", input, modules_, trace);
  line["state"] = name_of(StateKind::real);
  line["victim"] = "program";
  json frames = json::array();
  for (const NamedFrame& frame : trace) {
    frames.push_back({{"method", frame.method}, {"bci", frame.bci}});
  }
  json kept = stress::describe_sample(sample, found.halt->stack, frames, jvm_, modules_, mode);
  kept["finding"] = line;
  kept["step"] = step;
  kept["what"] = kKept;
  write_file(folder_ / (artifact + ".sample"),
             kept.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  return line;
}

std::string FindingsWriter::name(uint64_t key) {
  return "artifacts/" + key_text(key) + "-" + std::to_string(indices_[key]++);
}

void FindingsWriter::write_input(const Input& input, const std::string& artifact) {
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  write_file(folder_ / artifact, bytes);
}

FindingsSoFar::FindingsSoFar(const std::filesystem::path& folder, Session& session,
                             const Stepper& stepper)
    : folder_(folder), session_(session), stepper_(stepper) {}

double FindingsSoFar::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void FindingsSoFar::update() {
  const bool is_due = seconds() - written_at_ >= kBetweenUpdates;
  if (is_due && stepper_.findings().size() != written_) write();
}

void FindingsSoFar::write() {
  written_ = stepper_.findings().size();
  FindingsWriter writer(folder_, session_);
  for (const auto& [key, found] : stepper_.findings()) {
    const double first = seen_.try_emplace(key, seconds()).first->second;
    if (found.promised && stepper_.stands(key)) writer.write(found, first);
  }
  written_at_ = seconds();
}

}  // namespace framestorm
