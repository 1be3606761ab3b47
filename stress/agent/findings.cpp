#include "stress/agent/findings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/clock.h"
#include "harness/input/binary.h"
#include "harness/input/state.h"
#include "harness/input/thread_state.h"
#include "stress/agent/kept_sample.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample_input.h"

namespace framestorm::stress {
namespace {

using nlohmann::json;

constexpr size_t kTraceFrames = 64;

std::vector<NamedFrame> named_trace(const WalkView& view) {
  std::vector<NamedFrame> named;
  const size_t count = std::min(view.record.frame_count(), kTraceFrames);
  for (size_t i = 0; i < count; ++i) {
    const Frame frame = view.frame(i);
    named.push_back({method_name(frame, *view.subject.methods), frame.bci});
  }
  return named;
}

}  // namespace

Findings::Findings(const Options& options, Jvm& jvm)
    : options_(options), jvm_(jvm), modules_(Modules::snapshot()), begin_ns_(monotonic_ns()) {
  std::filesystem::create_directories(options.out / "samples");
  std::filesystem::create_directories(options.out / "seeds");
  file_.open(options.out / "findings.jsonl");
  write_identity(options.out, jvm);
}

void Findings::record(const Finding& finding, const SampleRing::Entry& entry, const WalkSlot* slot,
                      const WalkView& view, const json& truth) {
  ++count_;
  Finding of_sample = finding;
  of_sample.input.walker = entry.sample->walk.walker;
  const uint64_t key = signatures_.key_of(of_sample);
  Bucket& bucket = buckets_[key];
  const std::string victim = thread_state_name(entry.sample->walk.thread_state);
  ++bucket.counts.count;
  ++bucket.counts.victims[victim];
  if (bucket.kept >= options_.keep) return;
  ++bucket.kept;
  modules_.refresh();
  const std::string artifact = "samples/" + std::to_string(++kept_) + ".sample";
  const std::vector<NamedFrame> trace = named_trace(view);
  const std::span<const std::byte> stack =
      slot != nullptr ? slot->stack() : std::span(entry.stack, entry.sample->stack_bytes);
  const Input input = input_of(*entry.sample, stack, jvm_.code_map(), options_.mode);
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  write_file(options_.out / ("samples/" + std::to_string(kept_) + ".bin"), bytes);
  json line = finding_line(finding, key, static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9,
                           artifact, input, modules_, trace);
  const json sample =
      describe_sample(*entry.sample, stack, describe_trace(view, *entry.sample, modules_), jvm_,
                      modules_, options_.mode);
  // Nothing was set to anything: the input is how far another thread can be brought to the same.
  line["state"] =
      name_of(options_.mode == SamplingMode::unstopped ? StateKind::torn : StateKind::real);
  line["victim"] = victim;
  line["context"] = {{"real_pc", sample["registers"]["pc"]["is"]},
                     {"real_sp", hex(entry.sample->sp())},
                     {"real_fp", hex(entry.sample->fp())},
                     {"stack_base", hex(entry.sample->stack_base)},
                     {"stack_end", hex(entry.sample->stack_end)},
                     {"fault_address", modules_.describe(finding.fault.address)},
                     {"thread_state", victim}};
  json kept = sample;
  kept["finding"] = line;
  if (!truth.is_null()) kept["truth"] = truth;
  write_file(options_.out / artifact,
             kept.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  file_.append(line);
}

void Findings::keep_seed(const SampleRing::Entry& entry, const WalkSlot& slot) {
  if (seeds_.size() >= options_.seeds) return;
  const Input input = input_of(*entry.sample, slot.stack(), jvm_.code_map(), options_.mode);
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  if (!seeds_.insert(bytes).second) return;
  const std::string name = std::string(name_of(input.scenario)) + "-" +
                           std::string(name_of(input.walker)) + "-" +
                           std::to_string(seeds_.size()) + ".bin";
  write_file(options_.out / "seeds" / name, bytes);
}

void Findings::write_counts() {
  for (auto& [key, bucket] : buckets_) append_counts(&file_, key, &bucket.counts);
}

}  // namespace framestorm::stress
