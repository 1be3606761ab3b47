package framestorm;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Below a method handle that is no constant: its lambda forms stand on the stack. */
final class MethodHandle extends Scenario {
  private java.lang.invoke.MethodHandle handle;

  @Override
  void prepare(Compiler compiler) throws ReflectiveOperationException {
    compiler.compileAnyway(Compiler.method(MethodHandle.class, "spin"), Compiler.C2);
    MethodHandles.Lookup lookup = MethodHandles.lookup();
    java.lang.invoke.MethodHandle spin =
        lookup.findVirtual(
            MethodHandle.class, "spin", MethodType.methodType(long.class, long.class));
    java.lang.invoke.MethodHandle plus =
        lookup.findStatic(
            Math.class, "addExact", MethodType.methodType(long.class, long.class, long.class));
    handle =
        MethodHandles.filterReturnValue(
            spin.bindTo(this), MethodHandles.insertArguments(plus, 0, (long) index));
  }

  @Override
  void run() throws Throwable {
    sink = call(handle);
  }

  private long call(java.lang.invoke.MethodHandle target) throws Throwable {
    return (long) target.invokeExact(3L);
  }

  private long spin(long x) {
    enter();
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }
}
