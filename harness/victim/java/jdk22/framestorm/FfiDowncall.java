package framestorm;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** In a C function called through java.lang.foreign. */
final class FfiDowncall extends SpinningScenario {
  private MethodHandle function;
  private MemorySegment spin;

  @Override
  void prepare(Compiler compiler) throws Throwable {
    Linker linker = Linker.nativeLinker();
    function = linker.downcallHandle(FunctionDescriptor.ofVoid());
    spin = MemorySegment.ofAddress(Harness.spinAddress());
    // The first call links the call sites; that is not the scenario.
    call(linker.defaultLookup().find("getpid").orElseThrow());
  }

  @Override
  void run() throws Throwable {
    enter();
    while (!Harness.stopped) {
      call(spin);
    }
    leave();
  }

  private void call(MemorySegment address) throws Throwable {
    function.invokeExact(address);
  }
}
