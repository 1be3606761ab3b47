package framestorm;

import java.lang.reflect.Method;

/**
 * A running C2 method whose caller's code was thrown away beneath it: the frame still has the
 * compiled layout, with an inlined method in it, and the return address into it leads to the
 * deoptimisation handler. Even victims have one more frame above the deoptimised one.
 */
final class DeoptimizedCaller extends Scenario {
  private Compiler compiler;
  private Method caller;
  private Method outermost;

  @Override
  void prepare(Compiler preparing) throws ReflectiveOperationException {
    preparing.requireCompiled();
    preparing.resolveOwnClass(DeoptimizedCaller.class);
    compiler = preparing;
    caller = Compiler.method(DeoptimizedCaller.class, "caller");
    preparing.forceInline(Compiler.method(DeoptimizedCaller.class, "inlinedCaller"));
    preparing.compileAnyway(Compiler.method(DeoptimizedCaller.class, "callee"), Compiler.C2);
    preparing.compileAnyway(Compiler.method(DeoptimizedCaller.class, "between"), Compiler.C2);
    preparing.compileAnyway(caller, Compiler.C2);
    outermost = Compiler.method(DeoptimizedCaller.class, "outermost");
    preparing.compileAnyway(outermost, Compiler.C2);
  }

  private static Class<?> ownClass() {
    return DeoptimizedCaller.class;
  }

  @Override
  void run() {
    sink = outermost(3);
  }

  /** Deoptimised as well; a frame with nothing inlined. */
  private long outermost(long a) {
    return caller(a + 1) * a;
  }

  private long caller(long a) {
    return inlinedCaller(a + 1) * a;
  }

  private long inlinedCaller(long a) {
    return (index % 2 == 0 ? between(a) : callee(a + 1)) + a;
  }

  private long between(long a) {
    return callee(a + 2) ^ a;
  }

  private long callee(long x) {
    compiler.deoptimize(caller);
    compiler.deoptimize(outermost);
    enter();
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }
}
