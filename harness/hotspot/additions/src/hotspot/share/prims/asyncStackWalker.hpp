/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#ifndef SHARE_PRIMS_ASYNCSTACKWALKER_HPP
#define SHARE_PRIMS_ASYNCSTACKWALKER_HPP

#include "prims/asyncMethods.hpp"
#include "utilities/align.hpp"
#include "utilities/globalDefinitions.hpp"

class CodeBlob;
class JavaThread;
class Method;
class PcDesc;
class nmethod;

// The one stack walk under AsyncGetStackTrace, AsyncGetCallTrace2 and the iterators of profile2.h.
//
// A walk starts from where a halted thread was interrupted (or from a frame) and gives one frame
// after the other, from callee to caller. It never believes what it reads from the stack, from the
// context or from the thread: words are read by SafeFetch and only inside the thread's stack, sp
// advances with each physical frame, return addresses have to be ones that calls leave, and methods
// are checked before anything is read from them. It builds no HotSpot frame and calls nothing that
// asserts something of one. What it does believe is the VM's own: code blobs, their debug
// information, the bounds of stacks.
//
// So a walk of anything ends, without a fault, after a number of steps that the stack's size
// bounds. Everything here is async-signal-safe: no allocation, no lock, no system call.

// What the registers of an interrupted thread are to a walk.
struct AsyncContext {
  uintptr_t pc;
  uintptr_t sp;
  uintptr_t fp;
  // Null when only the three above are known.
  const void* ucontext;
};

// The three words of a JavaFrameAnchor, as read.
struct AsyncAnchor {
  uintptr_t sp;
  uintptr_t fp;
  uintptr_t pc;
};

class AsyncStackWalker {
 public:
  enum class FrameType : uint8_t {
    java = 1,
    java_inlined = 2,
    java_native = 3,
    non_java = 4,
    // Continuation.enterSpecial: a continuation's frames end, those of its carrier begin.
    continuation = 5,
    continuation_frozen = 6  // frames between it and its callee are in the heap, and left out
  };

  struct Frame {
    FrameType type;
    int comp_level;  // -1 in frames that are not Java's
    int bci;         // -1: none or unknown
    Method* method;  // null in frames that are not Java's
    uintptr_t pc;
    uintptr_t sp;  // of the physical frame; 0 in the heap
    uintptr_t fp;  // the same
    bool in_code_cache;
  };

  // Why there is no further frame.
  enum class Stop : uint8_t {
    none,            // there may be one
    end,             // it was the stack's first
    bad_stack,       // sp left the stack or did not advance
    bad_pc,          // a return address that no call leaves
    bad_frame,       // a frame that does not look like one
    no_unwind_info,  // C code without frame pointer and table
    too_deep         // more scopes than a compiled frame can have
  };

  // `thread` is whose stack it is, null when it is no Java thread; low and high bound the stack.
  AsyncStackWalker(JavaThread* thread, uintptr_t low, uintptr_t high, bool c_frames);

  // Where to begin; one of them, once. False when no frame could be made of it: stop() says why.
  //
  // From the context alone: the thread is in Java, or has no Java frames.
  bool start_at_context(const AsyncContext& context);
  // From a frame's three registers: pc is a return address where it can be one.
  bool start_at_frame(const AsyncContext& frame);
  // From the last Java frame; with C frames, those between it and the context come first. The
  // context may be null.
  bool start_at_anchor(const AsyncAnchor& anchor, const AsyncContext* context);

  // False at the end, which stop() explains. *frame is then unchanged.
  bool next(Frame* frame);

  // The frame it stands at, apart from what is inlined in it.
  struct Physical {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    CodeBlob* blob;  // null in the interpreter and outside the code cache
    bool interpreter;
    bool interrupted;  // pc is no return address
    bool frozen;       // frames between it and its callee are in the heap
  };
  Physical at() const {
    return {_at.pc, _at.sp, _at.fp, _blob, _code == Code::interpreter, _interrupted, _frozen};
  }
  // Goes to its caller. As next(), without giving frames; what is inlined is left out.
  bool leave() {
    _scope = 0;
    if (_stop != Stop::none) return false;
    if (!_given && !_caller_known) _caller_known = between_frames(&_caller);
    return _stop == Stop::none && caller();
  }
  // Another start: from a frame whose caller is known, so that nothing is read from its memory.
  // `give`: or from its caller.
  bool start_below(const Physical& frame, const Physical& caller, bool give);

  // What it does at frames of a continuation that are frozen. Heap frames are read by the thread
  // itself only, at a poll, and as long as it does not leave that.
  void give_frozen_frames() { _gives_frozen = true; }
  void end_at_continuation() { _ends_at_continuation = true; }
  // Ends when it comes to the frame that begins at `sp`, from a callee; `mark` is for ended_at_mark().
  void end_before(uintptr_t sp, void* mark) {
    _mark = mark;
    _mark_caller = sp;
  }
  // Null when it has not ended so.
  void* ended_at_mark() const { return _at_mark ? _mark : nullptr; }
  // Whether frames were left out since they are in the heap.
  bool left_out_frozen_frames() const { return _left_out_frozen; }

  Stop stop() const { return _stop; }
  // "no return address that a call leaves", for people; constant. Null for none and end.
  static const char* explain(Stop stop);

  // Whether an anchor can be walked from: its sp on the stack, its pc in the code cache, found one
  // word below sp when the anchor has none.
  static bool complete_anchor(AsyncAnchor* anchor, uintptr_t low, uintptr_t high);

  // Once, when the VM's code is generated.
  static void initialize();

 private:
  static void pd_initialize();

  enum class Code : uint8_t {
    c,  // outside the code cache
    interpreter,
    compiled,     // nmethod of a Java method
    native,       // nmethod of a native method
    framed_stub,  // a blob with a frame size
    entry,        // the call stub, after its call
    upcall,       // an upcall stub
    stub          // other generated code
  };

  struct Registers {
    uintptr_t pc;
    uintptr_t sp;  // for compiled frames the unextended one
    uintptr_t fp;
  };

  // The code that a pc is in. A look-up is most of what a step costs: one for all that is asked.
  struct Place {
    Place() = default;
    explicit Place(uintptr_t pc);
    bool in_code_cache() const { return interpreter || blob != nullptr; }
    bool blob_is_nmethod() const;

    uintptr_t pc = 0;
    CodeBlob* blob = nullptr;      // that has pc in its memory; null in the interpreter
    const PcDesc* desc = nullptr;  // what the nmethod says of pc itself, as of return addresses
    bool interpreter = false;
    bool in_code = false;         // of the blob
    bool deoptimised = false;     // where nmethods are returned into for deoptimisation
    bool return_address = false;  // a call may have left pc, in generated code
  };

  static constexpr int kMaxScopes = 4096;
  static constexpr int kMaxContinuations = 64;
  static constexpr int kMaxChunks = 1 << 16;
  static constexpr uintptr_t kMaxPollSize = 16;  // bytes

  bool fail(Stop stop) {
    _stop = stop;
    return false;
  }
  // A word of the stack; false when it is not on the part of the stack that is still to be walked.
  bool read(uintptr_t address, uintptr_t* word) const {
    return on_stack(address) && AsyncMethods::load(address, word);
  }
  bool on_stack(uintptr_t address) const {
    return address >= _low && address <= _high - sizeof(uintptr_t) &&
           is_aligned(address, sizeof(uintptr_t));
  }
  // Whether a call may have left this return address, in generated code.
  static bool is_return_address(uintptr_t pc) { return Place(pc).return_address; }
  // The same for calls of C/C++ leaf functions and leaf stubs, which compiled code describes
  // nowhere.
  static bool is_leaf_return_address(uintptr_t pc);
  // Whether the frame at _at, if it is C/C++ code or a stub, may return there.
  bool may_return_from_c(uintptr_t pc) const;
  // Whether _at, which is behind a call of C/C++ code, has a caller if it was interrupted there.
  bool may_be_interrupted_c() const;
  static bool pd_follows_call(const u1* pc, const u1* begin);
  // Whether C/C++ code may have called here; false only where it surely has not.
  static bool pd_may_follow_c_call(uintptr_t pc);
  static bool is_framed(const CodeBlob* blob);
  // The handler that a frame is deoptimised by, when pc is in it behind its entry; null elsewhere. It
  // pushes that entry, for the blob it jumps to.
  static address deopt_handler_around(const nmethod* nm, address pc);
  // The pc with debug information for what a stub returns to instead: the handler of an exception,
  // or what follows a safepoint poll. The thread notes where it was. 0 when `returns_to` is
  // neither.
  uintptr_t noted_pc(uintptr_t returns_to) const;

  bool classify(const Place& place);
  bool classify_nmethod(const Place& place);
  bool arrive(const Registers& caller);
  bool arrive_at_interrupted(const Registers& registers);
  bool arrive_at_anchor();

  bool caller();
  bool is_at_mark();
  bool caller_of_interpreted();
  bool caller_of_framed();
  bool caller_of_entry(uintptr_t anchor_address);
  bool caller_of_c();

  // What follows where a frame returns to the return barrier: what entered the continuation.
  bool continuation_entry(Registers* entry);
  // The frames in the heap (asyncFrozenFrames.cpp), then `entry`. False when there are none.
  bool enter_frozen(const Registers& entry);
  bool enter_chunk(uintptr_t chunk);
  bool arrive_at_frozen(uintptr_t sp, uintptr_t unextended_sp);
  bool caller_of_frozen();
  bool leave_frozen();

  bool fill_interpreted(Frame* frame);
  bool fill_compiled(Frame* frame);
  void fill_native(Frame* frame);
  void fill_scope(Frame* frame);
  void fill_plain(Frame* frame, FrameType type, Method* method) const;

  // The architecture's part, for the frame a thread was interrupted in, while it is being built or
  // taken down. False: the ordinary rules hold. True: *caller is set, or stop().
  bool interrupted_compiled_caller(Registers* caller);
  bool interrupted_stub_caller(Registers* caller);
  bool interrupted_framed_stub_caller(Registers* caller);
  // Between frames: the code at _at.pc belongs to no frame, since what it is part of is left
  // already, or not entered. True: *caller is set, or stop().
  bool between_frames(Registers* caller);
  bool loads_referent(Registers* caller);
  bool leaves_interpreted(Registers* caller);
  // The same of an interpreted method that is entered, when fp and sp are all that is known.
  bool enters_interpreted(Registers* caller);
  // Words are pushed on top of the whole frame for a while.
  bool has_pushed_words(Registers* caller) const;
  bool has_kept_sp(Registers* caller);
  // What an interpreted frame that is left had.
  struct LeftFrame {
    uintptr_t return_pc;
    uintptr_t sender_sp;
  };
  bool load_left_frame(uintptr_t return_address, LeftFrame* frame) const;
  bool find_left_frame(LeftFrame* frame) const;
  // Whether what returns there may have a caller. Other words that look like return addresses have none.
  bool has_caller(const Registers& frame) const;
  // sp of a compiled caller whose call an adapter has laid out for the interpreter, from `address` on.
  // `with_locals`: those may stand before the arguments. 0 where that is not told.
  uintptr_t above_arguments(const Place& caller, uintptr_t address, bool with_locals) const;
  // Of code that keeps fp as its frame's, from `begin` on. False where it does not.
  bool caller_by_fp(const u1* begin, Registers* caller) const;
  bool deoptimising_caller(Registers* caller) const;
  Registers adapter_caller() const;
  bool method_handle_caller(Registers* caller) const;
  // The caller of a stub without a frame, while the stub calls a leaf. False when it cannot be
  // told.
  bool calling_stub_caller(Registers* caller) const;
  bool subtype_check_caller(Registers* caller) const;
  bool thawing_caller(Registers* caller) const;
  // Whether a stub may return there.
  bool returns_to(uintptr_t word) const;
  // The first instruction of the stub at _at.pc, of those in its blob.
  const u1* stub_begin() const;
  // Whether the compiled frame at _at is taken down there, if it was interrupted.
  bool pd_may_be_gone() const;
  // Whether a signal's context stands there, and has these registers.
  bool pd_is_context(uintptr_t address, const Registers& registers) const;
  // Of the register with that number. False where the context is not known.
  bool context_register(int number, uintptr_t* value) const;
  // An interpreted frame under construction: its method and its caller.
  bool interrupted_interpreted(uintptr_t* method, Registers* caller) const;
  // The bytecode pointer register; 0 when the context is not known.
  uintptr_t interrupted_bcp() const;

  JavaThread* const _thread;
  uintptr_t _low;  // lower end of what is still to be walked
  uintptr_t _high;

  Registers _at;
  // Small ones side by side: iterators seal all of this at each frame.
  const bool _c_frames;
  bool _interrupted = false;  // _at.pc is no return address
  Code _code = Code::c;
  Stop _stop = Stop::none;
  bool _given = false;       // the frame at _at has been given
  bool _has_anchor = false;  // Java frames go on here once the C frames are through
  bool _java_done = false;   // the first Java frame is given: what follows is C/C++
  bool _caller_known = false;
  bool _gives_frozen = false;
  bool _ends_at_continuation = false;
  bool _left_out_frozen = false;
  bool _frozen = false;  // of what stands at _at, see Physical
  bool _at_mark = false;
  const void* _ucontext = nullptr;  // of the first frame, while it is _at
  CodeBlob* _blob = nullptr;
  const PcDesc* _desc = nullptr;  // as in Place, of _at.pc
  AsyncAnchor _anchor = {0, 0, 0};
  // A caller that the architecture's part already found.
  Registers _caller = {0, 0, 0};
  // The scope to give next, in the debug information of _blob; 0 when there is none.
  int _scope = 0;
  int _scopes = 0;
  Place
      _returned_to;  // where the last step arrived: recursion returns to one place again and again
  // The stack chunk that _at is in, where its frames end, and what comes after the last; else 0.
  uintptr_t _chunk = 0;
  uintptr_t _chunk_bottom = 0;
  uintptr_t _stack_high = 0;
  Registers _entry = {0, 0, 0};
  void* _mark = nullptr;
  uintptr_t _mark_caller = 0;
};

#endif  // SHARE_PRIMS_ASYNCSTACKWALKER_HPP
