// The table of scenarios: where their victims are and what a right walk of them shows. A new one: an
// enumerator, a row, and its Java side, which for "c2-inlined" is
// harness/victim/java/*/framestorm/C2Inlined.java (CONTRIBUTING.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace framestorm {

// Stable numbers: they are in artifacts. Append only.
enum class ScenarioId : uint8_t {
  interpreted_recursion,
  c1,
  c2_inlined,
  osr,
  native_method,
  jni_sandwich,
  monitor_blocked,
  parked,
  sleeping,
  vm_call,
  arraycopy,
  digest,
  vtable_dispatch,
  itable_dispatch,
  lambda,
  method_handle,
  exception_unwind,
  class_init,
  deoptimized_caller,
  large_frame,
  deep_stack,
  stack_overflow,
  ffi_downcall,
  ffi_upcall,
  virtual_fresh,
  virtual_remounted,
  virtual_pinned,
  thread_starting,
  thread_exiting,
  native_attached,
  native_unattached,
  compiler_thread,
  gc_thread,
  vm_thread,
  string_compare,
  adapters,
  virtual_cycling,
  math_stubs,
  crypto_stubs,
  code_patching,
  native_untabled,
  string_search,
  method_handle_linker,
  native_no_return,
  interpreted_calls,
  compiled_calls,
  c1_monitor,
  count
};

// How a victim of the scenario spends its time, and so how it is halted.
enum class Halt : uint8_t {
  busy,        // running; every halt is somewhere else in the program point
  blocked,     // waiting in the kernel; every halt is at the same place
  special,     // passes the point once: caught by a hook on its way
  vm_internal  // a thread of the VM, which runs no scenario of ours
};

// The code a halted victim's pc is most often in.
enum class TopCode : uint8_t {
  any,
  interpreter,
  nmethod,  // top_name is "pkg/Class.method", top_tier its tier
  stub,     // top_name is a part of the name HotSpot gives the stub, which differs by version
  native    // a shared object: libc, libjvm, the harness
};

struct ScenarioInfo {
  ScenarioId id = ScenarioId::count;
  std::string_view name;  // in text, on the command line, in reports
  std::string_view description;
  int min_feature = 17;  // oldest JDK that has it
  bool java = true;      // has Java frames; where false a right walk has none
  Halt halt = Halt::busy;
  // Frames of a right trace, innermost first: tokens separated by a space. A token is
  // "pkg/Class.method", in which * is any text and a|b are alternatives, for exactly one frame;
  // with ? for none or one, + for one or more, +? for any number. "..." is any number of any
  // frames.
  std::string_view trace;
  // What AsyncGetCallTrace gives instead, where it stops or skips by design. Empty: the same.
  std::string_view asgct_trace;
  // What is left of it on the stack where the outer frames of a continuation are frozen. Those are
  // in a stackChunkOop in the heap, which a walk in a signal handler cannot read
  // (docs/reference/stack-walkers.md). The walkers of the instrumented JDK give exactly this.
  // Empty: all frames are on the stack.
  std::string_view thawed_trace;
  // With the frames of the carrier that a virtual thread is mounted on, of walkers that walk carriers.
  // Empty: the same.
  std::string_view mounted_trace;
  // At least this share of halts of the scenario's first victim yields a trace on stock 17 and 25,
  // in percent, measured with AsyncGetCallTrace. Less than 100 where it refuses the pc by design:
  // stubs without a frame size, prologues, VM calls without a last Java pc. Where it is a matter of
  // luck (a fifth to a half of the halts), 1: some of 20 halts do.
  int asgct_percent = 100;
  TopCode top = TopCode::any;
  std::string_view top_name;
  int top_tier = 0;
  std::string_view note;
};

namespace scenario_table {

// Oldest JDK with java.lang.foreign and virtual threads as final features; its victims are compiled
// for that one.
inline constexpr int kForeignAndVirtual = 22;

inline constexpr std::array kRows = std::to_array<ScenarioInfo>({
    {.id = ScenarioId::interpreted_recursion,
     .name = "interpreted-recursion",
     .description = "forty interpreted activations of one method",
     .trace = "framestorm/InterpretedRecursion.spin framestorm/InterpretedRecursion.recurse+ "
              "framestorm/InterpretedRecursion.run framestorm/Victim.run",
     .top = TopCode::interpreter},
    {.id = ScenarioId::c1,
     .name = "c1",
     .description = "three methods compiled by C1, no inlining",
     .trace = "framestorm/C1.spin framestorm/C1.middle framestorm/C1.outer framestorm/C1.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/C1.spin",
     .top_tier = 1},
    {.id = ScenarioId::c2_inlined,
     .name = "c2-inlined",
     .description = "three methods inlined by C2 into a fourth, called from a fifth",
     .trace = "framestorm/C2Inlined.leaf framestorm/C2Inlined.level2 framestorm/C2Inlined.level1 "
              "framestorm/C2Inlined.root framestorm/C2Inlined.boundary framestorm/C2Inlined.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/C2Inlined.root",
     .top_tier = 4},
    {.id = ScenarioId::osr,
     .name = "osr",
     .description = "a loop replaced on the stack by compiled code",
     .trace = "framestorm/Osr.checkpoint? framestorm/Osr.loop framestorm/Osr.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/Osr.loop",
     .top_tier = 4},
    {.id = ScenarioId::native_method,
     .name = "native-method",
     .description = "a native method called by compiled Java",
     .trace = "framestorm/Harness.spinInNative framestorm/NativeMethod.call "
              "framestorm/NativeMethod.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::jni_sandwich,
     .name = "jni-sandwich",
     .description = "Java, native, Java, native",
     .trace = "framestorm/Harness.spinInNative framestorm/JniSandwich$Inner.run "
              "framestorm/Harness.callBack framestorm/JniSandwich.outer framestorm/JniSandwich.run "
              "framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::monitor_blocked,
     .name = "monitor-blocked",
     .description = "blocked on entering a monitor",
     .halt = Halt::blocked,
     .trace = "framestorm/MonitorBlocked.contend framestorm/MonitorBlocked.run "
              "framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::parked,
     .name = "parked",
     .description = "in LockSupport.park",
     .halt = Halt::blocked,
     .trace = "jdk/internal/misc/Unsafe.park java/util/concurrent/locks/LockSupport.park "
              "framestorm/Parked.park framestorm/Parked.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::sleeping,
     .name = "sleeping",
     .description = "in Thread.sleep",
     .halt = Halt::blocked,
     .trace = "java/lang/Thread.sleepNanos0? java/lang/Thread.sleepNanos? java/lang/Thread.sleep0? "
              "java/lang/Thread.sleep framestorm/Sleeping.sleep framestorm/Sleeping.run "
              "framestorm/Victim.run",
     .top = TopCode::native,
     .note = "Thread.sleep0 from JDK 19 to 21, sleepNanos since 22"},
    {.id = ScenarioId::vm_call,
     .name = "vm-call",
     .description = "inside the VM, in String.intern of a long string",
     .trace = "java/lang/String.intern? framestorm/VmCall.call framestorm/VmCall.run "
              "framestorm/Victim.run",
     .asgct_percent = 95,
     .top = TopCode::native,
     .note = "some halts are in the native wrapper on the way in or out"},
    {.id = ScenarioId::arraycopy,
     .name = "arraycopy",
     .description = "in the arraycopy stubs, called by compiled code",
     .trace = "framestorm/Arraycopy.copy framestorm/Arraycopy.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::stub,
     .top_name = "arraycopy",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::digest,
     .name = "digest",
     .description = "in the SHA-256 stub, called by C2's code",
     .trace = "sun/security/provider/*|jdk/internal/*|java/security/*|java/util/*+? "
              "framestorm/Digest.update "
              "framestorm/Digest.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::stub,
     .top_name = "sha256_implCompress",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::vtable_dispatch,
     .name = "vtable-dispatch",
     .description = "virtual calls with four receivers, through vtable stubs",
     .trace = "framestorm/VtableDispatch$*.value? framestorm/VtableDispatch.dispatch "
              "framestorm/VtableDispatch.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::nmethod,
     .top_name = "framestorm/VtableDispatch.dispatch",
     .top_tier = 4,
     .note = "AsyncGetCallTrace gives -5 in the stubs and in prologues"},
    {.id = ScenarioId::itable_dispatch,
     .name = "itable-dispatch",
     .description = "interface calls with four receivers, through itable stubs",
     .trace = "framestorm/ItableDispatch$*.value? framestorm/ItableDispatch.dispatch "
              "framestorm/ItableDispatch.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::stub,
     .top_name = "itable stub",
     .note = "AsyncGetCallTrace gives -5 in the stubs and in prologues"},
    {.id = ScenarioId::lambda,
     .name = "lambda",
     .description = "in the body of a lambda",
     .trace = "framestorm/Lambda.lambda$* framestorm/Lambda$$Lambda*.applyAsLong "
              "framestorm/Lambda.apply framestorm/Lambda.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/Lambda.lambda$prepare$0",
     .top_tier = 4},
    {.id = ScenarioId::method_handle,
     .name = "method-handle",
     .description = "below a method handle that is no constant",
     .trace = "framestorm/MethodHandle.spin java/lang/invoke/*+ framestorm/MethodHandle.call "
              "framestorm/MethodHandle.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/MethodHandle.spin",
     .top_tier = 4},
    {.id = ScenarioId::exception_unwind,
     .name = "exception-unwind",
     .description = "an exception on its way through three frames",
     .trace = "framestorm/ExceptionUnwind.level3? framestorm/ExceptionUnwind.level2? "
              "framestorm/ExceptionUnwind.level1? framestorm/ExceptionUnwind.loop "
              "framestorm/ExceptionUnwind.run framestorm/Victim.run",
     .asgct_percent = 1,
     .note = "mostly in libjvm, looking for handlers; AsyncGetCallTrace gives -4, -5 and -6 there"},
    {.id = ScenarioId::class_init,
     .name = "class-init",
     .description = "inside a running static initialiser",
     .trace = "framestorm/ClassInit.spin framestorm/ClassInit$Running.<clinit> "
              "java/lang/Class.forName0 java/lang/Class.forName+ framestorm/ClassInit.trigger "
              "framestorm/ClassInit.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/ClassInit.spin",
     .top_tier = 4},
    {.id = ScenarioId::deoptimized_caller,
     .name = "deoptimized-caller",
     .description = "a running method whose compiled caller has been deoptimised",
     .trace = "framestorm/DeoptimizedCaller.callee framestorm/DeoptimizedCaller.between? "
              "framestorm/DeoptimizedCaller.inlinedCaller framestorm/DeoptimizedCaller.caller "
              "framestorm/DeoptimizedCaller.outermost "
              "framestorm/DeoptimizedCaller.run framestorm/Victim.run",
     .asgct_trace = "framestorm/DeoptimizedCaller.callee framestorm/DeoptimizedCaller.between",
     .top = TopCode::nmethod,
     .top_name = "framestorm/DeoptimizedCaller.callee",
     .top_tier = 4,
     .note =
         "AsyncGetCallTrace stops before a deoptimised frame (frame::safe_for_sender): two frames "
         "for even victims, which have a frame between, -5 for odd ones"},
    {.id = ScenarioId::large_frame,
     .name = "large-frame",
     .description = "two frames of kilobytes, one of them interpreted",
     .trace = "framestorm/LargeFrame.spin framestorm/LargeFrame.compiled "
              "framestorm/LargeFrame.interpreted framestorm/LargeFrame.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/LargeFrame.spin",
     .top_tier = 4},
    {.id = ScenarioId::deep_stack,
     .name = "deep-stack",
     .description = "12,500 frames",
     .trace = "framestorm/DeepStack.spin framestorm/DeepStack.recurse+ framestorm/DeepStack.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/DeepStack.spin",
     .top_tier = 1},
    {.id = ScenarioId::stack_overflow,
     .name = "stack-overflow",
     .description = "handling a StackOverflowError in the innermost frame",
     .trace = "framestorm/StackOverflow.recurse+? framestorm/StackOverflow.attempt "
              "framestorm/StackOverflow.run framestorm/Victim.run",
     .asgct_percent = 75,
     .top = TopCode::nmethod,
     .top_name = "framestorm/StackOverflow.recurse",
     .top_tier = 1,
     .note = "some halts are where the error is thrown and unwinds"},
    {.id = ScenarioId::ffi_downcall,
     .name = "ffi-downcall",
     .description = "in a C function called through java.lang.foreign",
     .min_feature = kForeignAndVirtual,
     .trace = "java/lang/invoke/*|jdk/internal/foreign/*+ framestorm/FfiDowncall.call "
              "framestorm/FfiDowncall.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::ffi_upcall,
     .name = "ffi-upcall",
     .description = "in Java called by qsort, called through java.lang.foreign",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/FfiUpcall.compare java/lang/invoke/*|jdk/internal/foreign/*+ "
              "framestorm/FfiUpcall.sort framestorm/FfiUpcall.run framestorm/Victim.run",
     .asgct_trace = "framestorm/FfiUpcall.compare java/lang/invoke/*|jdk/internal/foreign/*+",
     .top = TopCode::nmethod,
     .top_name = "framestorm/FfiUpcall.compare",
     .top_tier = 4,
     .note = "AsyncGetCallTrace stops at the upcall stub (frame::safe_for_sender)"},
    {.id = ScenarioId::virtual_fresh,
     .name = "virtual-fresh",
     .description = "a virtual thread that has never yielded",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/VirtualFresh.spin framestorm/VirtualFresh.recurse+ "
              "framestorm/VirtualFresh.run framestorm/Victim.run java/lang/Thread.runWith? "
              "java/lang/VirtualThread.run ...",
     .mounted_trace = "framestorm/VirtualFresh.spin framestorm/VirtualFresh.recurse+ "
                      "framestorm/VirtualFresh.run framestorm/Victim.run "
                      "java/lang/Thread.runWith? java/lang/VirtualThread.run "
                      "java/lang/VirtualThread$* jdk/internal/vm/Continuation.enter0 "
                      "jdk/internal/vm/Continuation.enter "
                      "jdk/internal/vm/Continuation.enterSpecial jdk/internal/vm/Continuation.run "
                      "java/lang/VirtualThread.runContinuation java/*+? "
                      "java/util/concurrent/ForkJoinWorkerThread.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/VirtualFresh.spin",
     .top_tier = 4,
     .note = "AsyncGetCallTrace goes on into the carrier's frames"},
    {.id = ScenarioId::virtual_remounted,
     .name = "virtual-remounted",
     .description = "a virtual thread back from a yield, its outer frames still in the heap",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/VirtualRemounted.yieldAndSpin framestorm/VirtualRemounted.recurse*+ "
              "framestorm/VirtualRemounted.run framestorm/Victim.run java/lang/Thread.runWith? "
              "java/lang/VirtualThread.run ...",
     .asgct_trace =
         "framestorm/VirtualRemounted.yieldAndSpin "
         "framestorm/VirtualRemounted.recurse*+? "
         "jdk/internal/vm/Continuation.enterSpecial jdk/internal/vm/Continuation.run ...",
     .thawed_trace =
         "framestorm/VirtualRemounted.yieldAndSpin framestorm/VirtualRemounted.recurse*+? "
         "jdk/internal/vm/Continuation.enterSpecial jdk/internal/vm/Continuation.run "
         "java/lang/VirtualThread.runContinuation java/*+? "
         "java/util/concurrent/ForkJoinWorkerThread.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/VirtualRemounted.yieldAndSpin",
     .top_tier = 1,
     .note = "AsyncGetCallTrace leaves out the frames in the heap: from the return barrier it goes "
             "on at Continuation.enterSpecial. Even victims have interpreted frames, odd ones "
             "compiled ones"},
    {.id = ScenarioId::virtual_pinned,
     .name = "virtual-pinned",
     .description = "a virtual thread with a native frame on its stack",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/VirtualPinned$Inner.run framestorm/Harness.callBack "
              "framestorm/VirtualPinned.call framestorm/VirtualPinned.run framestorm/Victim.run "
              "java/lang/Thread.runWith? java/lang/VirtualThread.run ...",
     .mounted_trace = "framestorm/VirtualPinned$Inner.run framestorm/Harness.callBack "
                      "framestorm/VirtualPinned.call framestorm/VirtualPinned.run "
                      "framestorm/Victim.run java/lang/Thread.runWith? "
                      "java/lang/VirtualThread.run java/lang/VirtualThread$* "
                      "jdk/internal/vm/Continuation.enter0 jdk/internal/vm/Continuation.enter "
                      "jdk/internal/vm/Continuation.enterSpecial jdk/internal/vm/Continuation.run "
                      "java/lang/VirtualThread.runContinuation java/*+? "
                      "java/util/concurrent/ForkJoinWorkerThread.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/VirtualPinned$Inner.run",
     .top_tier = 1},
    {.id = ScenarioId::thread_starting,
     .name = "thread-starting",
     .description = "a Java thread before its first Java frame",
     .java = false,
     .halt = Halt::special,
     .note = "the Java side only starts short-lived threads; their creator is only told when to"},
    {.id = ScenarioId::thread_exiting,
     .name = "thread-exiting",
     .description = "a Java thread after its last Java frame",
     .java = false,
     .halt = Halt::special,
     .note = "the Java side only starts short-lived threads; their creator is only told when to"},
    {.id = ScenarioId::native_attached,
     .name = "native-attached",
     .description = "a native thread attached to the VM, with no Java frames",
     .java = false,
     .halt = Halt::busy,
     .top = TopCode::native},
    {.id = ScenarioId::native_unattached,
     .name = "native-unattached",
     .description = "a native thread the VM has never seen",
     .java = false,
     .halt = Halt::busy,
     .top = TopCode::native},
    {.id = ScenarioId::compiler_thread,
     .name = "compiler-thread",
     .description = "a thread of C1 or C2",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::gc_thread,
     .name = "gc-thread",
     .description = "a worker of the collector",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::vm_thread,
     .name = "vm-thread",
     .description = "the VM thread",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::string_compare,
     .name = "string-compare",
     .description = "in C2's string comparison, which pushes a word on the method's frame",
     .trace = "java/lang/String*? java/lang/String.compareTo? framestorm/StringCompare.compare "
              "framestorm/StringCompare.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::nmethod,
     .top_name = "java/lang/String.compareTo",
     .top_tier = 4,
     .note = "AsyncGetCallTrace takes the return address a word too low, and gives -6"},
    {.id = ScenarioId::adapters,
     .name = "adapters",
     .description = "between compiled code and an interpreted method that it calls",
     .trace = "framestorm/Adapters.leaf|framestorm/Adapters.cover+? "
              "framestorm/Adapters.interpreted? framestorm/Adapters.compiled "
              "framestorm/Adapters.run framestorm/Victim.run",
     .asgct_percent = 1,
     .note = "AsyncGetCallTrace gives -5 in adapters and stubs (JDK-8178287)"},
    {.id = ScenarioId::virtual_cycling,
     .name = "virtual-cycling",
     .description = "a virtual thread that parks in cycles, and returns to frames in the heap",
     .min_feature = kForeignAndVirtual,
     .trace = "java/*|jdk/*+? framestorm/VirtualCycling.*+? ...",
     .thawed_trace =
         "java/*|jdk/*+? framestorm/VirtualCycling.spin? framestorm/VirtualCycling.park? "
         "framestorm/VirtualCycling.recurse*+? framestorm/VirtualCycling.run? "
         "framestorm/Victim.run? java/lang/Thread.runWith? java/lang/VirtualThread.run? "
         "java/lang/VirtualThread$*? jdk/internal/vm/Continuation.enter0? "
         "jdk/internal/vm/Continuation.enter? jdk/internal/vm/Continuation.enterSpecial? "
         "jdk/internal/vm/Continuation.run? java/lang/VirtualThread.runContinuation? java/*+? "
         "java/util/concurrent/ForkJoinWorkerThread.run",
     .asgct_percent = 1,
     .note = "at a halt the carrier may be without it: while it is parked, or elsewhere"},
    {.id = ScenarioId::math_stubs,
     .name = "math-stubs",
     .description = "in the stubs of mathematics and CRC-32, called by the interpreter, C1 and C2",
     .trace = "java/*|jdk/*+? framestorm/MathStubs$Functions.getAsDouble? "
              "framestorm/MathStubs.loop framestorm/MathStubs.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::stub,
     .top_name = "updateBytesCRC32",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::crypto_stubs,
     .name = "crypto-stubs",
     .description = "in C2's stubs for digests, ciphers, big numbers, checksums and encodings",
     .trace = "java/*|jdk/*|sun/*|com/sun/*+? framestorm/CryptoStubs.call? "
              "framestorm/CryptoStubs.loop framestorm/CryptoStubs.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::stub,
     .top_name = "implCompress",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::code_patching,
     .name = "code-patching",
     .description = "called by C1's code that was thrown away while it was patched",
     .trace = "framestorm/CodePatching$Stay.getAsInt framestorm/CodePatching$Reader.applyAsInt "
              "framestorm/CodePatching.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/CodePatching$Stay.getAsInt",
     .top_tier = 4},
    {.id = ScenarioId::native_untabled,
     .name = "native-untabled",
     .description = "a native method below C code with unusual unwind tables, and some with none "
                    "and a frame pointer",
     .trace = "framestorm/Harness.spinBelowUntabled framestorm/NativeUntabled.call "
              "framestorm/NativeUntabled.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::string_search,
     .name = "string-search",
     .description =
         "in C2's search in strings, which pushes up to eight words on the method's frame",
     .trace = "java/lang/StringLatin1.*|java/lang/String.coder|java/lang/String.isLatin1+? "
              "java/lang/String.indexOf? framestorm/StringSearch.search "
              "framestorm/StringSearch.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::nmethod,
     .top_name = "java/lang/String.indexOf",
     .top_tier = 4,
     .note = "AsyncGetCallTrace takes a word that was pushed for the return address: -5, or a "
             "wrong trace"},
    {.id = ScenarioId::method_handle_linker,
     .name = "method-handle-linker",
     .description = "an interpreted method that a method handle's linker has called: it has popped "
                    "one of the caller's words",
     .trace = "framestorm/MethodHandleLinker.loop framestorm/MethodHandleLinker.spin "
              "java/lang/invoke/*+ framestorm/MethodHandleLinker.run framestorm/Victim.run",
     .top = TopCode::interpreter},
    {.id = ScenarioId::native_no_return,
     .name = "native-no-return",
     .description = "a native method below C code whose calls are its functions' last instructions",
     .trace = "framestorm/Harness.spinBelowNoReturn framestorm/NativeNoReturn.call "
              "framestorm/NativeNoReturn.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::interpreted_calls,
     .name = "interpreted-calls",
     .description = "an interpreted method that calls interpreted ones, a native one, and the VM",
     .trace = "framestorm/Harness.countInNative|framestorm/InterpretedCalls.one|"
              "framestorm/InterpretedCalls.two? framestorm/InterpretedCalls.loop "
              "framestorm/InterpretedCalls.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::interpreter,
     .note = "AsyncGetCallTrace gives -5 and -6 while a frame is built or left"},
    {.id = ScenarioId::compiled_calls,
     .name = "compiled-calls",
     .description = "a method of C1's with many places that have debug information, half of them "
                    "inlined",
     .trace = "framestorm/CompiledCalls.inlined|framestorm/CompiledCalls.called? "
              "framestorm/CompiledCalls.large? framestorm/CompiledCalls.loop "
              "framestorm/CompiledCalls.run framestorm/Victim.run",
     .asgct_percent = 75,
     .top = TopCode::nmethod,
     .top_name = "framestorm/CompiledCalls.called",
     .top_tier = 1,
     .note = "AsyncGetCallTrace gives -5 in prologues"},
    {.id = ScenarioId::c1_monitor,
     .name = "c1-monitor",
     .description = "C1's code calls the VM for a monitor, also in the handler of an exception",
     .trace = "framestorm/C1Monitor.throwing? framestorm/C1Monitor.catching|"
              "framestorm/C1Monitor.locking|framestorm/C1Monitor.handling? "
              "framestorm/C1Monitor.loop framestorm/C1Monitor.run framestorm/Victim.run",
     .asgct_percent = 1,
     .note = "AsyncGetCallTrace gives -5 in the stubs that throw and look for handlers"},
});

constexpr bool is_in_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].id) != i) return false;
  }
  return kRows.size() == static_cast<size_t>(ScenarioId::count);
}
static_assert(is_in_order(), "scenario_info() indexes the table by ScenarioId");

}  // namespace scenario_table

// In the order of ScenarioId.
constexpr std::span<const ScenarioInfo> all_scenarios() { return scenario_table::kRows; }

// id must not be ScenarioId::count.
constexpr const ScenarioInfo& scenario_info(ScenarioId id) {
  return scenario_table::kRows[static_cast<size_t>(id)];
}

}  // namespace framestorm
