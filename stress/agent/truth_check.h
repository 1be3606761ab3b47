// Samples held against what their threads say of themselves, layer by layer; each layer is tested by
// the next. The judge's; one thread.
//
//   layer       what              is held against               where
//   ─────────── ───────────────── ───────────────────────────── ──────────────────────────────────
//   reference   GetStackTrace     the shadow stack              in a native method, no time between
//   safepoint   any walker        GetStackTrace, bci too        the same call
//   shadow      any walker        the shadow stack              at the sample
//   sandwich    any walker        GetStackTrace, bci too        frames that have not returned between
//                                                               the sample and the next check
#pragma once

#include <jvmti.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/oracles/oracle.h"
#include "stress/agent/sample_ring.h"
#include "stress/shadow/compare.h"
#include "stress/shadow/instrumented_methods.h"
#include "stress/shadow/trace_frames.h"

namespace framestorm::stress {

class TruthCheck {
 public:
  TruthCheck(Jvm& jvm, const InstrumentedMethods& instrumented)
      : jvm_(jvm), instrumented_(instrumented) {}

  // Of a sample: layers shadow and, later, sandwich. Reports what is a finding; counts everything.
  void judge(const SampleRing::Entry& entry, const WalkView& view, Violations* out);
  // Of a check, with GetStackTrace's frames: the other layers.
  void judge_check(const SampleRing::Entry& entry, const WalkView& view,
                   std::span<const jvmtiFrameInfo> reference, Violations* out);
  // The stack that the last judged sample was held against; for a kept sample.
  nlohmann::json side_by_side(const SampleRing::Entry& entry) const;
  nlohmann::json figures(ShadowStacks& stacks) const;

 private:
  struct Known {
    std::string name;
    int32_t number = -1;  // -1: not instrumented
  };
  struct JavaFrame {
    jmethodID method = nullptr;
    int32_t bci = 0;
    bool is_adjacent = false;  // the frame before it is its callee
  };
  // A sample that waits for the next check of its thread.
  struct Pending {
    int64_t owner = 0;
    WalkerId walker = kDefaultWalker;
    std::vector<ShadowEntry> shadow;
    std::vector<JavaFrame> frames;
    bool complete = false;
  };
  struct Layer {
    uint64_t made = 0, broken = 0;
  };
  struct PerWalker {
    std::array<uint64_t, static_cast<size_t>(TruthVerdict::count)> verdicts = {};
    std::map<std::string, uint64_t> not_judged;
    std::map<std::string, std::array<uint64_t, 2>> by_code;      // judged, wrong
    std::map<std::array<std::string, 3>, uint64_t> by_position;  // verdict, error, position
    Layer safepoint, sandwich;
    uint64_t cut = 0;          // of those that are short: the walker said so
    uint64_t more_on_top = 0;  // of those that are wrong
  };

  // Stands for a native method that the walker does not name.
  static constexpr jmethodID kUnnamedMethod = nullptr;

  const Known* known(jmethodID method);
  // Java frames, innermost first; false when one of them is not known.
  bool frames_of(const WalkView& view, std::vector<JavaFrame>* out);
  std::vector<NamedFrame> named(std::span<const JavaFrame> frames);
  // The instrumented ones among them.
  std::vector<TraceFrame> instrumented(std::span<const JavaFrame> frames);
  bool may_lack_innermost(const Sample& sample, int32_t method);
  // Whether only what is inlined in the innermost code is wrong (inlining.h).
  bool is_other_inlining(const Sample& sample, std::span<const JavaFrame> frames,
                         const Against& against);
  void count(const Sample& sample, const WalkView& view, TruthVerdict verdict);
  void check_sandwich(const SampleRing::Entry& entry, std::span<const JavaFrame> reference,
                      Violations* out);
  // Whether a trace that is the reference up to there may end, or go on, as it does.
  bool ends_there(std::span<const JavaFrame> trace, std::span<const JavaFrame> reference, size_t at,
                  size_t there, bool may_end);
  // An unnamed native method is any.
  bool same_place(const JavaFrame& one, const JavaFrame& reference) const;
  // The frame, or "nothing".
  std::string shown(std::span<const JavaFrame> frames, size_t at);

  Jvm& jvm_;
  const InstrumentedMethods& instrumented_;
  std::unordered_map<jmethodID, Known> known_;
  std::map<WalkerId, PerWalker> walkers_;
  std::map<uint32_t, Pending> pending_;  // by the thread's record
  Layer reference_;
};

}  // namespace framestorm::stress
