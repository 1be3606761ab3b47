// The stack of a stepped thread as its control flow has built it: every call and return is seen, so
// that no walker has to be asked. What a right trace shows at each instruction follows from it and
// from HotSpot's own debug information at return addresses.
//
//   call      ──> a new activation; the caller's Java frames, exact at its return address, are below
//   return    ──> the activation is over
//   jump      ──> the activation goes on in other code: an adapter, a tail jump, replaced on the stack
//
// What breaks this rule, and what is done about it:
//
//   return patched for       The caller is deoptimised. Its frames are what they were at the return
//   deoptimisation           address until interpreted ones stand in its place; those are then found by
//                            their links, as many as there were frames. That may come while the call is
//                            being resolved, before the called method has a frame.
//   return to a barrier      The caller's frames come back from the heap, mostly to where others were, and
//                            the barrier's stub then goes to the return address.
//   jump into a caller       An exception's handler: all activations below that frame are over.
//   jump in the interpreter  With the frame pointer of a caller, whose callee's return address is popped:
//                            an exception, or JVMTI's PopFrame, has ended all above that frame.
//   signal to a stub         A safepoint poll or an implicit exception: HotSpot's handler changes the
//                            pc, as if the instruction had called the stub.
//   call to a call stub      Compiled code calls an interpreted method through a stub at its own end,
//                            which only jumps on: it has no frame of its own. Nor has the stub there
//                            that calls for the deoptimisation of the frame.
//   code that is not known   JVMTI tells of a method a while after it is compiled. The truth is lost
//                            in it and in what it calls.
//   method that is not known The same, of an interpreted frame: the truth is lost while it is there.
//   jump out of the base     A virtual thread yields. Its activations wait until one of them is
//                            returned to.
//   frames from the heap     The thread has entered a continuation, whose frames are thawed, or frozen.
//                            What runs there has not been called here. Nothing is known until what
//                            has entered it goes on.
//   return out of the base   To the frames that the thread had when its stepping began: the first of
//                            them that comes to a place with debug information is the base from there.
//
// Nothing else is allowed for. Where control goes that none of this explains, the truth is lost, and
// said to be, until a return or an exception leads to an activation that is known.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/stepping/arch.h"
#include "harness/stepping/code_catalog.h"
#include "harness/stepping/method_versions.h"
#include "harness/walkers/walker.h"

namespace framestorm::stepping {

inline constexpr int32_t kAnyBci = INT32_MIN;

struct TrueFrame {
  enum class Sort : uint8_t {
    frame,     // is there
    optional,  // may be there: the method is being entered or left, and has no frame
    inlined,   // any that are inlined in `code`, whose own frame is the next one; none, too
    frozen,    // no frame: what is below may be in the heap, where a walk may end
    carrier    // no frame: a virtual thread's stack ends here; its carrier's frames may follow
  };
  Sort sort = Sort::frame;
  jmethodID method = nullptr;  // frame, optional
  int32_t bci = kAnyBci;
  bool exact = false;               // the bci, where it is the innermost frame, too
  const DebugInfo* code = nullptr;  // inlined
  // A linker of method handles, or a version that another one may have replaced.
  bool may_have_no_id = false;
  // Where the code is that has it: the thread's own pc, or the return address of the call that was made
  // there. 0: not known.
  uintptr_t pc = 0;
  // Its sp there: at the call, and as it is now, where an adapter has made room. 0: not known.
  uintptr_t sp = 0, extended_sp = 0;

  // Whether a walker that tells where this frame is tells the truth.
  bool stands_at(const Frame& frame) const;

  bool operator==(const TrueFrame&) const = default;
};

enum class Knowledge : uint8_t {
  waiting,  // the first activation is not reached yet, or over and the next one is not reached
  known,
  // Below the first activation: a virtual thread has yielded, or it has ended. Or above all of them: one
  // has come back from the heap.
  outside,
  lost
};

class StackTruth {
 public:
  StackTruth(Jvm& jvm, CodeCatalog& catalog, const MethodVersions& versions);

  // A thread that is about to go on in the innermost of its Java frames `frames`, which are all that
  // it has. Those of native methods have no bci (-1); such a method on top is left before anything is
  // known. Its stack ends at `stack_base`; what stands below `last_java_sp` is not theirs.
  void begin(std::span<const DebugInfo::JavaFrame> frames, uintptr_t stack_base,
             uintptr_t last_java_sp);

  // Before the instruction at `now` is executed; each one in its order.
  void advance(const Registers& now);
  // What was entered last has run to its return by itself, and has returned to `now`.
  void advance_past_call(const Registers& now);

  Knowledge knowledge() const { return has_unnamed_ ? Knowledge::lost : knowledge_; }
  // Of the instruction, innermost first; until the next call.
  std::span<const TrueFrame> expected() const { return expected_; }
  // Its code; null outside the code cache.
  const Blob* blob() const { return now_.blob; }
  Section section() const;
  // What its instruction does.
  Flow flow() const { return now_.flow; }
  // Why it was lost last.
  std::string_view lost_why() const { return lost_why_; }
  size_t activations() const { return activations_.size(); }

 private:
  struct Place {
    Registers at;
    const Blob* blob = nullptr;
    Flow flow = Flow::other;
  };
  struct Activation {
    uintptr_t slot = 0;  // where its return address stands
    uintptr_t return_to = 0;
    uintptr_t caller_fp = 0;
    uintptr_t caller_pc = 0;  // where its caller's Java frames are; 0: not known
    uintptr_t caller_sp = 0;  // at the call; 0: not known
    const Blob* caller = nullptr;
    size_t below = 0;        // in below_, without its caller's own frames
    bool implicit = false;   // by a signal
    bool unknown = false;    // it or a caller is called by code that is not known
    uintptr_t entered = 0;   // its first instruction
    bool in_itself = false;  // code of the interpreter's that it has called for the same frame
    // Interpreted.
    bool has_stood = false;         // its frame
    jmethodID method = nullptr;     // of the frame, or the one that is entered
    bool unnamed = false;           // one is entered that JVMTI has not told of
    std::vector<TrueFrame> frames;  // of a deoptimised caller that is returned to; innermost first

    // Whether a return address that stands on the stack is its own: the caller may have been
    // deoptimised while the call was being resolved, before any frame stood.
    bool returns_to(uintptr_t address) const;
  };

  // Of the frames that the thread began with, how many the place is in; 0: not in the innermost.
  size_t base_frames_at(const Place& place) const;
  // Where the innermost frame that the thread began with is reached. Java code that is not of it says
  // that it was left some other way: what is below is not known any more.
  void start(const Place& place);
  void push(const Place& caller, uintptr_t slot, uintptr_t return_to, bool implicit);
  // Notes where the caller's Java frames are, where that is known. Where compiled code describes nothing, they
  // are where it has come from: a call that has thrown, or one that is deoptimised.
  void place_caller(Activation* one) const;
  // Ends all activations above the one with that index.
  void cut(size_t keep);
  bool at_deopt_handler() const;
  // Ends the activations from this one on. Its caller is deoptimised: it keeps the frames that it had
  // at the call.
  void end(size_t first, bool deoptimised);
  bool is_in_callers_frame(const Activation& ended) const;
  void follow_return();
  void follow_jump();
  bool follow_handler();
  bool follow_interpreter();
  bool follow_taken_down();
  bool follow_entry_undone();
  bool follow_deoptimisation();
  bool is_out_of_base() const;
  void leave_base();
  // stack_truth_continuations.cpp
  bool come_back();
  // All activations.
  void move(uintptr_t distance);
  // To where the barrier has brought the caller of one that is over back to.
  void move_with_caller(const Activation& ended);
  bool freezes() const;
  bool enters_frames_of_the_heap();
  void follow_continuation();
  void lose(std::string_view why);
  // The Java frames of the running activation, innermost first. `return_to`: of a call that is made
  // here; 0 between calls.
  std::vector<TrueFrame> own(const Place& place, uintptr_t return_to);
  std::vector<TrueFrame> interpreted(const Place& place, bool calls);
  bool frame_stands(const Place& place) const;
  bool is_in_call_stub(const Place& place) const;
  // In the code cache, and JVMTI has not told of it yet.
  bool is_unknown(const Place& place) const;
  jmethodID id_of(const void* method) const;
  // The method that is entered at `blob`.
  jmethodID id_of_entered(const Blob* blob, uintptr_t method);
  int32_t bci_of(const InterpretedFrame& frame, uintptr_t bcp) const;
  // Its caller is in the heap, and comes back when it returns.
  bool returns_to_barrier(const Activation& one);
  void expect();

  Jvm& jvm_;
  CodeCatalog& catalog_;
  const MethodVersions& versions_;
  size_t const_method_, const_method_size_, code_size_;  // offsets and size in HotSpot
  std::vector<DebugInfo::JavaFrame> base_;  // below the first activation, outermost first
  bool on_carrier_ = false;                 // a virtual thread
  uintptr_t base_sp_ = 0;                   // the base's frames stand at it or above it
  uintptr_t due_ = 0;                       // where it is returned to; 0: not known
  uintptr_t stack_base_ = 0;
  Knowledge knowledge_ = Knowledge::outside;
  Place before_, now_;
  std::vector<Activation> activations_;
  std::vector<TrueFrame> below_;  // outermost first
  // The activation that has entered a continuation of which other frames run; 0: none.
  size_t mounted_ = 0;
  // Of a virtual thread that has yielded.
  std::vector<Activation> waiting_;
  std::vector<TrueFrame> waiting_below_;
  std::vector<TrueFrame> expected_;
  bool has_unnamed_ = false;  // expected_ a frame of a method that JVMTI has not told of
  std::string_view lost_why_;
  size_t lost_in_ = 0;  // the activation that it was lost in; what that has called is not all known
};

}  // namespace framestorm::stepping
