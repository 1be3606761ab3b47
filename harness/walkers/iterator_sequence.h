// Sequences of calls to the iterator API (Input::iterator_calls), each checked against a plain
// model of it.
#pragma once

#include <profile2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/guard/arch.h"
#include "harness/input/input.h"
#include "harness/walkers/iterator_model.h"
#include "harness/walkers/walker.h"

namespace framestorm {

struct IteratorApi {
  // Throws SetupError when one is missing.
  explicit IteratorApi(const Exports& exports);

  decltype(&ASGST_RunWithIterator) run;
  decltype(&ASGST_RunWithIteratorFromFrame) run_from_frame;
  decltype(&ASGST_NextFrame) next;
  decltype(&ASGST_RewindIterator) rewind;
  decltype(&ASGST_State) state;
  decltype(&ASGST_ThreadState) thread_state;
  decltype(&ASGST_MethodToJMethodID) method_id;
  IteratorModel::Places places;
};

// Where the iterators of a walk begin.
struct IteratorStart {
  // As ASGST_RunWithIterator, which is called when there is none.
  decltype(&ASGST_RunWithIterator) by = nullptr;
  bool from_frame = false;
  void* context = nullptr;  // otherwise
  void* sp = nullptr;
  void* fp = nullptr;
  void* pc = nullptr;
  int32_t options = 0;

  int run(const IteratorApi& api, ASGST_IteratorHandler handler, void* argument) const {
    if (from_frame) return api.run_from_frame(sp, fp, pc, options, handler, argument);
    return (by != nullptr ? by : api.run)(context, options, handler, argument);
  }
};

class IteratorSequence {
 public:
  // Handlers within handlers; a victim's stack has not much room below it.
  static constexpr size_t kMostHandlers = 8;

  explicit IteratorSequence(const IteratorApi& api) : api_(api), model_(api.places) {}

  // Iterates once for the model, which record() is given each frame for, then makes the calls.
  // What is wrong goes to facts->complaints. Signal context; may be abandoned anywhere.
  void begin(const IteratorStart& start, WalkFacts* facts);
  IteratorModel& model() { return model_; }
  // `result`: of the iteration, from ASGST_RunWithIterator.
  void run(std::span<const IteratorCall> calls, int result);

  // For other checks of a walk, in the same words.
  void complain(std::string_view clause, ComplaintScope scope, std::string_view what, int64_t got,
                int64_t wanted);

 private:
  struct Handler;

  void execute();
  void step(const IteratorCall& call);
  // Not inlined, as next(): the model compares where on the stack they are.
  [[gnu::noinline]] void open(const IteratorStart& start, IteratorModel::Part part,
                              bool nested_frame);
  void open_null();
  void jump(size_t handlers);
  [[gnu::noinline]] int next(bool with_frame);
  [[gnu::noinline]] void state();
  void expect(std::string_view clause, ComplaintScope scope, int got,
              const IteratorModel::Expected& wanted);
  void complain_of_frame(std::string_view field, const ASGST_Frame& frame);
  // Of what the chosen iterator gives.
  ComplaintScope scope() const;
  bool is_from_further_down() const { return at_ % 2 == 0; }
  ASGST_Iterator* selected() const;
  static void enter(ASGST_Iterator* iterator, void* handler);

  const IteratorApi& api_;
  IteratorModel model_;
  IteratorStart start_;
  WalkFacts* facts_ = nullptr;
  std::span<const IteratorCall> calls_;
  size_t at_ = 0;         // the call being made
  int result_ = 0;        // what opening gives
  int thread_state_ = 0;  // what ThreadState gives
  std::array<Handler*, kMostHandlers> handlers_ = {};
  size_t depth_ = 0;              // handlers that are entered or being entered
  const void* chosen_ = nullptr;  // handle that the calls get
};

}  // namespace framestorm
