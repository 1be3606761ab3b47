#include "fuzz/baseline.h"

namespace framestorm {
namespace {

constexpr int32_t kFurthestOffset = 4096;  // bytes
constexpr int32_t kPage = 4096;
constexpr int32_t kWord = 8;

void offset_frame(Input* input, Rng& rng) {
  for (const Register reg : {Register::sp, Register::fp}) {
    Mutation& off = input->mutations.emplace_back();
    off.reg = reg;
    off.value.delta = static_cast<int32_t>(rng.below(2 * kFurthestOffset + 1)) - kFurthestOffset;
  }
}

void fault_read(Input* input, Rng& rng) {
  Mutation& fault = input->mutations.emplace_back();
  switch (rng.below(4)) {
    case 0:
      fault.reg = rng.one_in(2) ? Register::sp : Register::fp;
      break;
    case 1:
      fault.kind = MutationKind::set_thread_field;
      fault.field = rng.one_in(2) ? ThreadField::last_java_sp : ThreadField::last_java_fp;
      break;
    default:
      // Slots of an interpreted frame are below its fp; links and return addresses of callers above.
      fault.kind = MutationKind::set_stack_word;
      fault.anchor = rng.one_in(2) ? StackAnchor::fp : StackAnchor::sp;
      fault.offset = static_cast<int16_t>(rng.below(size_t{2} << rng.below(6)));
      if (fault.anchor == StackAnchor::fp && rng.one_in(2)) {
        fault.offset = static_cast<int16_t>(-1 - static_cast<int32_t>(rng.below(14)));
      }
  }
  fault.value.kind = ValueKind::guard_page;
  fault.value.delta = kWord * static_cast<int32_t>(rng.below(kPage / kWord));
}

}  // namespace

void mutate_by(Baseline baseline, Input* input, Rng& rng) {
  input->mutations.clear();
  input->call = CallArgs{};
  if (baseline == Baseline::offsets) {
    offset_frame(input, rng);
  } else {
    fault_read(input, rng);
  }
}

}  // namespace framestorm
