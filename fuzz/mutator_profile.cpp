#include "fuzz/mutator_profile.h"

#include <array>

#include "harness/input/walker_traits.h"

namespace framestorm {
namespace {

constexpr size_t kTargets = 6;

MutatorProfile all_of(std::string_view target) {
  MutatorProfile profile;
  profile.target = target;
  for (unsigned i = 0; i < static_cast<unsigned>(ScenarioId::count); ++i) {
    profile.scenarios.push_back(static_cast<ScenarioId>(i));
  }
  profile.modes = {Mode::same_thread, Mode::separate_thread};
  profile.walkers = {WalkerId::asgct,        WalkerId::asgst,  WalkerId::asgst_env,
                     WalkerId::asgst_thread, WalkerId::asgct2, WalkerId::asgst_iterator,
                     WalkerId::asgst_frame};
  return profile;
}

std::array<MutatorProfile, kTargets> make_profiles() {
  std::array<MutatorProfile, kTargets> all = {all_of("fuzz_ucontext"), all_of("fuzz_frame"),
                                              all_of("fuzz_stack"),    all_of("fuzz_thread_state"),
                                              all_of("fuzz_call"),     all_of("fuzz_iterator")};
  auto& [ucontext, frame, stack, thread_state, call, iterator] = all;
  ucontext.registers = true;
  frame.registers = true;
  frame.frame_triple_only = true;
  frame.weights.frame_switch = 6;
  stack.stack_words = true;
  thread_state.thread_fields = true;
  call.call_args = true;
  iterator.iterator_calls = true;
  iterator.registers = true;
  iterator.frame_triple_only = true;
  std::erase_if(iterator.walkers, [](WalkerId id) { return !traits_of(id).iterator_calls; });
  return all;
}

}  // namespace

std::span<const MutatorProfile> mutator_profiles() {
  static const std::array<MutatorProfile, kTargets> profiles = make_profiles();
  return profiles;
}

const MutatorProfile* find_mutator_profile(std::string_view target) {
  for (const MutatorProfile& profile : mutator_profiles()) {
    if (profile.target == target) {
      return &profile;
    }
  }
  return nullptr;
}

}  // namespace framestorm
