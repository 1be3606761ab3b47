// The parts of framestorm-native that need no JVM: an input between its binary and its text form,
// and the names both use. Streams are parameters so that tests need no process.
#pragma once

#include <iosfwd>

namespace framestorm {

struct WalkerTraits;

inline constexpr int kCodecOk = 0;
inline constexpr int kCodecUsageError = 2;

struct DecodeOptions {
  bool force = false;  // decode what check_artifact objects to as well
  bool json = false;   // input_record (harness/input/json_form.h), not text alone
};

// Binary on `in`, text or JSON on `out`. Returns kCodecOk, or kCodecUsageError with the reason on `err`.
int run_decode(const DecodeOptions& options, std::istream& in, std::ostream& out,
               std::ostream& err);

// Text on `in`, binary on `out`. Returns kCodecOk, or kCodecUsageError with "line N: ..." on `err`.
int run_encode(std::istream& in, std::ostream& out, std::ostream& err);

// One JSON object, each member a list of names in the order of their numbers: scenarios, modes,
// walkers, values, code_kinds, code_anchors, registers, thread_fields, stack_anchors, mutations,
// depths, contexts, envs, states; "input_version", a number; "walker_table", what else is to be known
// of each walker; "targets", the fuzz targets, each with the walkers that it can be used on.
// `declared`: stands for its row of the table of walkers; null: none.
int run_names(std::ostream& out, const WalkerTraits* declared = nullptr);

}  // namespace framestorm
