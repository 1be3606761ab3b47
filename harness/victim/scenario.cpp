#include "harness/victim/scenario.h"

#include <array>
#include <cstddef>

namespace framestorm {
namespace {

constexpr size_t kScenarios = static_cast<size_t>(ScenarioId::count);

// Oldest JDK with java.lang.foreign and virtual threads as final features; its victims are compiled
// for that one.
constexpr int kForeignAndVirtual = 22;

constexpr std::array<ScenarioInfo, kScenarios> kTable = {{
    {.id = ScenarioId::interpreted_recursion,
     .description = "forty interpreted activations of one method",
     .trace = "framestorm/InterpretedRecursion.spin framestorm/InterpretedRecursion.recurse+ "
              "framestorm/InterpretedRecursion.run framestorm/Victim.run",
     .top = TopCode::interpreter},
    {.id = ScenarioId::c1,
     .description = "three methods compiled by C1, no inlining",
     .trace = "framestorm/C1.spin framestorm/C1.middle framestorm/C1.outer framestorm/C1.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/C1.spin",
     .top_tier = 1},
    {.id = ScenarioId::c2_inlined,
     .description = "three methods inlined by C2 into a fourth, called from a fifth",
     .trace = "framestorm/C2Inlined.leaf framestorm/C2Inlined.level2 framestorm/C2Inlined.level1 "
              "framestorm/C2Inlined.root framestorm/C2Inlined.boundary framestorm/C2Inlined.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/C2Inlined.root",
     .top_tier = 4},
    {.id = ScenarioId::osr,
     .description = "a loop replaced on the stack by compiled code",
     .trace = "framestorm/Osr.checkpoint? framestorm/Osr.loop framestorm/Osr.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/Osr.loop",
     .top_tier = 4},
    {.id = ScenarioId::native_method,
     .description = "a native method called by compiled Java",
     .trace = "framestorm/Harness.spinInNative framestorm/NativeMethod.call "
              "framestorm/NativeMethod.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::jni_sandwich,
     .description = "Java, native, Java, native",
     .trace = "framestorm/Harness.spinInNative framestorm/JniSandwich$Inner.run "
              "framestorm/Harness.callBack framestorm/JniSandwich.outer framestorm/JniSandwich.run "
              "framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::monitor_blocked,
     .description = "blocked on entering a monitor",
     .halt = Halt::blocked,
     .trace = "framestorm/MonitorBlocked.contend framestorm/MonitorBlocked.run "
              "framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::parked,
     .description = "in LockSupport.park",
     .halt = Halt::blocked,
     .trace = "jdk/internal/misc/Unsafe.park java/util/concurrent/locks/LockSupport.park "
              "framestorm/Parked.park framestorm/Parked.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::sleeping,
     .description = "in Thread.sleep",
     .halt = Halt::blocked,
     .trace = "java/lang/Thread.sleepNanos0? java/lang/Thread.sleepNanos? java/lang/Thread.sleep "
              "framestorm/Sleeping.sleep framestorm/Sleeping.run framestorm/Victim.run",
     .top = TopCode::native,
     .note = "Thread.sleepNanos since JDK 22"},
    {.id = ScenarioId::vm_call,
     .description = "inside the VM, in String.intern of a long string",
     .trace = "java/lang/String.intern? framestorm/VmCall.call framestorm/VmCall.run "
              "framestorm/Victim.run",
     .asgct_percent = 95,
     .top = TopCode::native,
     .note = "some halts are in the native wrapper on the way in or out"},
    {.id = ScenarioId::arraycopy,
     .description = "in the arraycopy stubs, called by compiled code",
     .trace = "framestorm/Arraycopy.copy framestorm/Arraycopy.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::stub,
     .top_name = "arraycopy",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::digest,
     .description = "in the SHA-256 stub, called by C2's code",
     .trace = "sun/security/provider/*|jdk/internal/*|java/security/*|java/util/*+? "
              "framestorm/Digest.update "
              "framestorm/Digest.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::stub,
     .top_name = "sha256_implCompress",
     .note = "AsyncGetCallTrace gives -5 in stubs that have no frame size (JDK-8178287)"},
    {.id = ScenarioId::vtable_dispatch,
     .description = "virtual calls with four receivers, through vtable stubs",
     .trace = "framestorm/VtableDispatch$*.value? framestorm/VtableDispatch.dispatch "
              "framestorm/VtableDispatch.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::nmethod,
     .top_name = "framestorm/VtableDispatch.dispatch",
     .top_tier = 4,
     .note = "AsyncGetCallTrace gives -5 in the stubs and in prologues"},
    {.id = ScenarioId::itable_dispatch,
     .description = "interface calls with four receivers, through itable stubs",
     .trace = "framestorm/ItableDispatch$*.value? framestorm/ItableDispatch.dispatch "
              "framestorm/ItableDispatch.run framestorm/Victim.run",
     .asgct_percent = 1,
     .top = TopCode::stub,
     .top_name = "itable stub",
     .note = "AsyncGetCallTrace gives -5 in the stubs and in prologues"},
    {.id = ScenarioId::lambda,
     .description = "in the body of a lambda",
     .trace = "framestorm/Lambda.lambda$* framestorm/Lambda$$Lambda*.applyAsLong "
              "framestorm/Lambda.apply framestorm/Lambda.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/Lambda.lambda$prepare$0",
     .top_tier = 4},
    {.id = ScenarioId::method_handle,
     .description = "below a method handle that is no constant",
     .trace = "framestorm/MethodHandle.spin java/lang/invoke/*+ framestorm/MethodHandle.call "
              "framestorm/MethodHandle.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/MethodHandle.spin",
     .top_tier = 4},
    {.id = ScenarioId::exception_unwind,
     .description = "an exception on its way through three frames",
     .trace = "framestorm/ExceptionUnwind.level3? framestorm/ExceptionUnwind.level2? "
              "framestorm/ExceptionUnwind.level1? framestorm/ExceptionUnwind.loop "
              "framestorm/ExceptionUnwind.run framestorm/Victim.run",
     .asgct_percent = 1,
     .note = "mostly in libjvm, looking for handlers; AsyncGetCallTrace gives -4, -5 and -6 there"},
    {.id = ScenarioId::class_init,
     .description = "inside a running static initialiser",
     .trace = "framestorm/ClassInit.spin framestorm/ClassInit$Running.<clinit> "
              "java/lang/Class.forName0 java/lang/Class.forName+ framestorm/ClassInit.trigger "
              "framestorm/ClassInit.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/ClassInit.spin",
     .top_tier = 4},
    {.id = ScenarioId::deoptimized_caller,
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
     .description = "two frames of kilobytes, one of them interpreted",
     .trace = "framestorm/LargeFrame.spin framestorm/LargeFrame.compiled "
              "framestorm/LargeFrame.interpreted framestorm/LargeFrame.run framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/LargeFrame.spin",
     .top_tier = 4},
    {.id = ScenarioId::deep_stack,
     .description = "12,500 frames",
     .trace = "framestorm/DeepStack.spin framestorm/DeepStack.recurse+ framestorm/DeepStack.run "
              "framestorm/Victim.run",
     .top = TopCode::nmethod,
     .top_name = "framestorm/DeepStack.spin",
     .top_tier = 1},
    {.id = ScenarioId::stack_overflow,
     .description = "handling a StackOverflowError in the innermost frame",
     .trace = "framestorm/StackOverflow.recurse+? framestorm/StackOverflow.attempt "
              "framestorm/StackOverflow.run framestorm/Victim.run",
     .asgct_percent = 75,
     .top = TopCode::nmethod,
     .top_name = "framestorm/StackOverflow.recurse",
     .top_tier = 1,
     .note = "some halts are where the error is thrown and unwinds"},
    {.id = ScenarioId::ffi_downcall,
     .description = "in a C function called through java.lang.foreign",
     .min_feature = kForeignAndVirtual,
     .trace = "java/lang/invoke/*|jdk/internal/foreign/*+ framestorm/FfiDowncall.call "
              "framestorm/FfiDowncall.run framestorm/Victim.run",
     .top = TopCode::native},
    {.id = ScenarioId::ffi_upcall,
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
     .description = "a virtual thread that has never yielded",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/VirtualFresh.spin framestorm/VirtualFresh.recurse+ "
              "framestorm/VirtualFresh.run framestorm/Victim.run java/lang/Thread.runWith? "
              "java/lang/VirtualThread.run ...",
     .top = TopCode::nmethod,
     .top_name = "framestorm/VirtualFresh.spin",
     .top_tier = 4,
     .note = "AsyncGetCallTrace goes on into the carrier's frames"},
    {.id = ScenarioId::virtual_remounted,
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
     .description = "a virtual thread with a native frame on its stack",
     .min_feature = kForeignAndVirtual,
     .trace = "framestorm/VirtualPinned$Inner.run framestorm/Harness.callBack "
              "framestorm/VirtualPinned.call framestorm/VirtualPinned.run framestorm/Victim.run "
              "java/lang/Thread.runWith? java/lang/VirtualThread.run ...",
     .top = TopCode::nmethod,
     .top_name = "framestorm/VirtualPinned$Inner.run",
     .top_tier = 1},
    {.id = ScenarioId::thread_starting,
     .description = "a Java thread before its first Java frame",
     .java = false,
     .halt = Halt::special,
     .note = "the Java side only starts short-lived threads; their creator is only told when to"},
    {.id = ScenarioId::thread_exiting,
     .description = "a Java thread after its last Java frame",
     .java = false,
     .halt = Halt::special,
     .note = "the Java side only starts short-lived threads; their creator is only told when to"},
    {.id = ScenarioId::native_attached,
     .description = "a native thread attached to the VM, with no Java frames",
     .java = false,
     .halt = Halt::busy,
     .top = TopCode::native},
    {.id = ScenarioId::native_unattached,
     .description = "a native thread the VM has never seen",
     .java = false,
     .halt = Halt::busy,
     .top = TopCode::native},
    {.id = ScenarioId::compiler_thread,
     .description = "a thread of C1 or C2",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::gc_thread,
     .description = "a worker of the collector",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::vm_thread,
     .description = "the VM thread",
     .java = false,
     .halt = Halt::vm_internal,
     .top = TopCode::native},
    {.id = ScenarioId::string_compare,
     .description = "in C2's string comparison, which pushes a word on the method's frame",
     .trace = "java/lang/String*? java/lang/String.compareTo? framestorm/StringCompare.compare "
              "framestorm/StringCompare.run framestorm/Victim.run",
     .asgct_percent = 0,
     .top = TopCode::nmethod,
     .top_name = "java/lang/String.compareTo",
     .top_tier = 4,
     .note = "AsyncGetCallTrace takes the return address a word too low, and gives -6"},
    {.id = ScenarioId::adapters,
     .description = "between compiled code and an interpreted method that it calls",
     .trace = "framestorm/Adapters.leaf? framestorm/Adapters.interpreted? "
              "framestorm/Adapters.compiled framestorm/Adapters.run framestorm/Victim.run",
     .asgct_percent = 1,
     .note = "AsyncGetCallTrace gives -5 in adapters and stubs (JDK-8178287)"},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].id) != i) {
      return false;
    }
  }
  return true;
}
static_assert(in_order(), "scenario_info() indexes the table by ScenarioId");

}  // namespace

std::span<const ScenarioInfo> all_scenarios() { return kTable; }

const ScenarioInfo& scenario_info(ScenarioId id) { return kTable.at(static_cast<size_t>(id)); }

}  // namespace framestorm
