#include "stress/agent/truth_check.h"

#include <algorithm>

#include "harness/oracles/reference.h"
#include "harness/victim/scenario.h"
#include "stress/agent/code_place.h"
#include "stress/agent/inlining.h"
#include "stress/agent/truth.h"
#include "stress/agent/walk_slot.h"

namespace framestorm::stress {
namespace {

using nlohmann::json;

std::vector<int32_t> methods_of(std::span<const ShadowEntry> entries) {
  std::vector<int32_t> methods;
  methods.reserve(entries.size());
  for (const ShadowEntry& entry : entries) methods.push_back(entry.method);
  return methods;
}

bool was_cut(const WalkRecord& record) {
  return record.result >= record.depth || record.stopped() != nullptr;
}

}  // namespace

const TruthCheck::Known* TruthCheck::known(jmethodID method) {
  static const Known unnamed = {std::string(kUnnamedNative)};
  if (method == kUnnamedMethod) return &unnamed;
  const auto found = known_.find(method);
  if (found != known_.end()) return &found->second;
  const MethodInfo* const info = jvm_.methods().find(method);
  if (info == nullptr || info->descriptor.empty()) return nullptr;
  const auto number = instrumented_.find(info->name, info->descriptor);
  return &(known_[method] = {info->name, number.value_or(-1)});
}

bool TruthCheck::frames_of(const WalkView& view, std::vector<JavaFrame>* out) {
  out->clear();
  bool is_adjacent = false;
  for (size_t i = 0; i < view.record.frame_count(); ++i) {
    const Frame frame = view.frame(i);
    const bool is_there = frame.unnamed || frame.method != nullptr;
    if (is_there) {
      const jmethodID method = frame.unnamed ? kUnnamedMethod : frame.method;
      if (known(method) == nullptr) return false;
      out->push_back({method, frame.bci, is_adjacent});
    }
    is_adjacent = is_there;
  }
  return true;
}

std::vector<NamedFrame> TruthCheck::named(std::span<const JavaFrame> frames) {
  std::vector<NamedFrame> all;
  for (const JavaFrame& frame : frames) {
    const Known& method = *known(frame.method);
    all.push_back({method.name, method.number, frame.bci, frame.is_adjacent});
  }
  return all;
}

std::vector<TraceFrame> TruthCheck::instrumented(std::span<const JavaFrame> frames) {
  return instrumented_frames(named(frames), instrumented_);
}

bool TruthCheck::same_place(const JavaFrame& one, const JavaFrame& reference) const {
  const bool same_method = one.method == kUnnamedMethod ? jvm_.methods().is_native(reference.method)
                                                        : one.method == reference.method;
  return same_method && (one.bci == reference.bci || one.bci < 0 || reference.bci < 0);
}

bool TruthCheck::may_lack_innermost(const Sample& sample, int32_t method) {
  return stress::may_lack_innermost(jvm_.code_map(), sample.pc(), method, [this](jmethodID root) {
    const Known* const found = known(root);
    return found == nullptr ? -1 : found->number;
  });
}

bool TruthCheck::is_other_inlining(const Sample& sample, std::span<const JavaFrame> frames,
                                   const Against& against) {
  std::vector<DebugInfo::JavaFrame> plain;
  for (const JavaFrame& frame : frames) plain.push_back({frame.method, frame.bci});
  const auto trace_of = [this](std::span<const DebugInfo::JavaFrame> all) {
    std::vector<JavaFrame> other;
    for (const auto& [method, bci] : all) {
      if (known(method) != nullptr) other.push_back({method, bci, !other.empty()});
    }
    return instrumented(other);
  };
  const CodeEntry* const entry = jvm_.code_map().find(sample.pc());
  if (entry != nullptr && entry->kind == CodeKind::nmethod) {
    return entry->debug != nullptr && has_other_inlining(plain, *entry->debug, trace_of, against);
  }
  // Where there is an anchor, its place is a call's.
  return sample.last_java_sp == 0 &&
         std::ranges::any_of(jvm_.code_map().entries(), [&](const CodeEntry& one) {
           return one.debug != nullptr && has_other_inlining(plain, *one.debug, trace_of, against);
         });
}

void TruthCheck::count(const Sample& sample, const WalkView& view, TruthVerdict verdict) {
  PerWalker& own = walkers_[sample.walk.walker];
  ++own.verdicts[static_cast<size_t>(verdict)];
  std::string kind;
  const std::string position = position_of(jvm_.code_map(), sample.pc(), &kind);
  auto& by_code = own.by_code[kind];
  ++by_code[0];
  if (is_wrong(verdict)) ++by_code[1];
  if (!is_wrong(verdict) && verdict != TruthVerdict::refused) return;
  const std::string error = verdict == TruthVerdict::refused
                                ? std::string(view.subject.walker->error_name(sample.walk.result))
                                : "";
  ++own.by_position[{std::string(name_of(verdict)), error, position}];
}

void TruthCheck::judge(const SampleRing::Entry& entry, const WalkView& view, Violations* out) {
  const Sample& sample = *entry.sample;
  if (sample.shadow_state == ShadowState::not_asked || sample.walk.end != WalkEnd::returned) return;
  pending_.erase(sample.thread);
  PerWalker& own = walkers_[sample.walk.walker];
  if (sample.walk.result <= 0) {
    if (sample.shadow_depth == 0) {
      ++own.not_judged["no instrumented frame"];
    } else if (sample.shadow_state == ShadowState::of_carrier) {
      ++own.not_judged["virtual thread comes or goes"];
    } else {
      count(sample, view, TruthVerdict::refused);
    }
    return;
  }
  std::vector<JavaFrame> frames;
  if (!frames_of(view, &frames)) {
    jvm_.methods().absorb();
    if (!frames_of(view, &frames)) {
      ++own.not_judged["method without a name"];
      return;
    }
  }
  const bool of_continuation = std::ranges::any_of(frames, [this](const JavaFrame& frame) {
    return is_of_continuation(known(frame.method)->name);
  });
  const std::vector<TraceFrame> trace = instrumented(frames);
  // Its frames may all be in the heap while the shadow stack is still its own.
  const bool has_frames = !trace.empty() || sample.shadow_depth > 0;
  if (sample.shadow_state == ShadowState::of_carrier && has_frames &&
      (of_continuation || was_cut(sample.walk))) {
    ++own.not_judged["virtual thread comes or goes"];
    return;
  }
  const std::vector<ShadowEntry> shadow = entry.shadow();
  const std::vector<int32_t> methods = methods_of(shadow);
  Against against = {.shadow = methods,
                     .depth = sample.shadow_depth,
                     .complete = sample.walk.result < sample.walk.depth &&
                                 sample.shadow_state != ShadowState::mounted};
  if (!methods.empty()) against.may_lack_innermost = may_lack_innermost(sample, methods.front());
  const std::vector<NamedFrame> all = named(frames);
  std::string detail;
  Compared compared = compare_frames(all, trace, against, instrumented_, &detail);
  if (is_wrong(compared.verdict) && jvm_.code_map().has_pending()) {
    // What it ran may have been compiled a moment before.
    jvm_.code_map().absorb();
    if (!methods.empty()) against.may_lack_innermost = may_lack_innermost(sample, methods.front());
    compared = compare_frames(all, trace, against, instrumented_, &detail);
  }
  const WalkerTraits& traits = view.subject.walker->traits();
  if (is_wrong(compared.verdict) && compared.verdict != TruthVerdict::wrong_bci &&
      is_other_inlining(sample, frames, against)) {
    compared.verdict = TruthVerdict::other_inlining;
  }
  count(sample, view, compared.verdict);
  if (compared.has_more_on_top) ++own.more_on_top;
  // Where each frame has its entry.
  const bool is_exact = compared.verdict == TruthVerdict::right &&
                        std::ranges::none_of(trace, &TraceFrame::may_be_absent);
  if (is_exact && sample.sandwiched) {
    pending_[sample.thread] = {sample.shadow_owner, sample.walk.walker, shadow, frames,
                               against.complete && !was_cut(sample.walk)};
  }
  if (!is_wrong(compared.verdict)) return;
  if (compared.verdict == TruthVerdict::shorter && compared.at == trace.size()) {
    // The outer frames. It says so itself, or stops where it does not trust a frame, by design: figures, no finding.
    if (sample.walk.stopped() != nullptr) ++own.cut;
    if (sample.walk.stopped() != nullptr || traits.ends_where_it_distrusts_a_frame) return;
  }
  if (detail.empty()) {
    std::string kind;
    detail = difference(compared, trace, methods, instrumented_) + ", in " +
             code_of(jvm_.code_map(), sample.pc(), &kind);
  }
  out->broken("wrong-trace", std::string(name_of(compared.verdict)) + ": " + detail);
}

void TruthCheck::judge_check(const SampleRing::Entry& entry, const WalkView& view,
                             std::span<const jvmtiFrameInfo> given, Violations* out) {
  const Sample& sample = *entry.sample;
  std::vector<JavaFrame> reference;
  jvm_.methods().absorb();
  for (const jvmtiFrameInfo& frame : given) {
    if (known(frame.method) == nullptr) return;
    reference.push_back({frame.method, static_cast<int32_t>(frame.location), !reference.empty()});
  }
  const bool is_whole = given.size() < static_cast<size_t>(kReferenceDepth);
  const std::vector<ShadowEntry> shadow = entry.shadow();
  const std::vector<int32_t> methods = methods_of(shadow);
  ++reference_.made;
  const Compared compared = compare(instrumented(reference),
                                    {.shadow = methods,
                                     .depth = sample.shadow_depth,
                                     .complete = is_whole && shadow.size() == sample.shadow_depth});
  std::string wrong = wrong_call(named(reference), instrumented_);
  if (compared.verdict != TruthVerdict::right || !wrong.empty()) {
    ++reference_.broken;
    out->broken("reference-differs",
                wrong.empty() ? "GetStackTrace is " + std::string(name_of(compared.verdict)) +
                                    " by the shadow stack, at instrumented frame " +
                                    std::to_string(compared.at)
                              : "GetStackTrace: " + wrong);
    return;
  }
  check_sandwich(entry, reference, out);
  if (sample.walk.end != WalkEnd::returned) return;
  PerWalker& own = walkers_[sample.walk.walker];
  std::vector<JavaFrame> frames;
  if (!frames_of(view, &frames)) {
    ++own.not_judged["method without a name"];
    return;
  }
  ++own.safepoint.made;
  size_t at = 0;
  while (at < frames.size() && at < reference.size() && same_place(frames[at], reference[at])) {
    ++at;
  }
  const bool may_end = sample.shadow_state == ShadowState::mounted || was_cut(sample.walk);
  if (ends_there(frames, reference, at, at, may_end)) return;
  ++own.safepoint.broken;
  // It stops where it does not trust a frame, by design: a figure, no finding.
  if (at == frames.size() && view.subject.walker->traits().ends_where_it_distrusts_a_frame) return;
  out->broken("wrong-trace", "at a safepoint frame " + std::to_string(at) + " is " +
                                 shown(frames, at) + ", GetStackTrace's is " +
                                 shown(reference, at));
}

void TruthCheck::check_sandwich(const SampleRing::Entry& entry,
                                std::span<const JavaFrame> reference, Violations* out) {
  const auto waiting = pending_.find(entry.sample->thread);
  if (waiting == pending_.end()) return;
  const Pending before = std::move(waiting->second);
  pending_.erase(waiting);
  const std::vector<ShadowEntry> now = entry.shadow();
  if (before.owner != entry.sample->shadow_owner) return;
  // The innermost entry of the sample's that has not returned since.
  const auto still = std::ranges::find_if(before.shadow, [&](const ShadowEntry& one) {
    return std::ranges::find(now, one) != now.end();
  });
  if (still == before.shadow.end()) return;
  const auto frame_of = [this](std::span<const JavaFrame> frames, ptrdiff_t entry) {
    const std::vector<TraceFrame> all = instrumented(frames);
    return entry < std::ssize(all) ? all[static_cast<size_t>(entry)].frame : frames.size();
  };
  size_t at = frame_of(before.frames, still - before.shadow.begin());
  size_t there = frame_of(reference, std::ranges::find(now, *still) - now.begin());
  if (at >= before.frames.size() || there >= reference.size() ||
      before.frames[at].method != reference[there].method) {
    return;
  }
  PerWalker& own = walkers_[before.walker];
  ++own.sandwich.made;
  // Of the frame itself only the method is known: it has gone on.
  for (++at, ++there; at < before.frames.size() && there < reference.size(); ++at, ++there) {
    if (!same_place(before.frames[at], reference[there])) break;
  }
  if (ends_there(before.frames, reference, at, there, !before.complete)) return;
  ++own.sandwich.broken;
  out->broken("wrong-trace", std::string(name_of(before.walker)) + " before a check: frame " +
                                 std::to_string(at) + " is " + shown(before.frames, at) +
                                 ", GetStackTrace's is " + shown(reference, there));
}

bool TruthCheck::ends_there(std::span<const JavaFrame> trace, std::span<const JavaFrame> reference,
                            size_t at, size_t there, bool may_end) {
  if (at == trace.size() && there == reference.size()) return true;
  // A virtual thread's trace may go on into its carrier, and does so early where the rest of its own
  // frames is in the heap.
  return may_end && at > 0 &&
         (at == trace.size() || there == reference.size() ||
          is_of_continuation(known(trace[at].method)->name));
}

std::string TruthCheck::shown(std::span<const JavaFrame> frames, size_t at) {
  if (at >= frames.size()) return "nothing";
  return known(frames[at].method)->name + "@" + std::to_string(frames[at].bci);
}

json TruthCheck::side_by_side(const SampleRing::Entry& entry) const {
  json methods = json::array();
  for (const ShadowEntry& one : entry.shadow())
    methods.push_back(instrumented_.name_of(one.method));
  return {{"shadow_stack", methods}, {"depth", entry.sample->shadow_depth}};
}

json TruthCheck::figures(ShadowStacks& stacks) const {
  const auto layer = [](const Layer& one) {
    return json{{"made", one.made}, {"broken", one.broken}};
  };
  json walkers = json::object();
  for (const auto& [id, own] : walkers_) {
    json verdicts = json::object();
    uint64_t judged = 0;
    uint64_t wrong = 0;
    for (size_t i = 0; i < own.verdicts.size(); ++i) {
      const auto verdict = static_cast<TruthVerdict>(i);
      verdicts[std::string(name_of(verdict))] = own.verdicts[i];
      judged += own.verdicts[i];
      if (is_wrong(verdict)) wrong += own.verdicts[i];
    }
    json by_code = json::object();
    for (const auto& [kind, counts] : own.by_code) {
      by_code[kind] = {{"judged", counts[0]}, {"wrong", counts[1]}};
    }
    json positions = json::array();
    for (const auto& [key, count] : own.by_position) {
      positions.push_back(
          {{"verdict", key[0]}, {"error", key[1]}, {"at", key[2]}, {"count", count}});
    }
    walkers[std::string(name_of(id))] = {{"judged", judged},
                                         {"wrong", wrong},
                                         {"verdicts", verdicts},
                                         {"said_short", own.cut},
                                         {"more_on_top", own.more_on_top},
                                         {"not_judged", own.not_judged},
                                         {"by_code", by_code},
                                         {"positions", positions},
                                         {"safepoint", layer(own.safepoint)},
                                         {"sandwich", layer(own.sandwich)}};
  }
  const ShadowStacks::Totals totals = stacks.totals();
  return {
      {"walkers", walkers},
      {"reference", layer(reference_)},
      {"instrumented_methods", instrumented_.count()},
      {"shadow_stacks", {{"live", totals.live}, {"made", totals.made}, {"bytes", totals.bytes}}}};
}

}  // namespace framestorm::stress
