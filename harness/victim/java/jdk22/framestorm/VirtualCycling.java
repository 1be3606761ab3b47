package framestorm;

import java.util.concurrent.locks.LockSupport;

/**
 * A virtual thread that parks and is unparked in cycles, deep in its stack. It comes back to the
 * innermost frames only, and each return from one of the others crosses the return barrier: they
 * are more than HotSpot thaws at once. Even victims have interpreted frames, odd ones compiled
 * frames.
 */
final class VirtualCycling extends VirtualScenario {
  private static final int DEPTH = 300;
  private static final long PARKED_NANOS = 1_000;

  @Override
  void prepare(Compiler compiler) {
    compiler.interpretOnly(Compiler.method(VirtualCycling.class, "recurseInterpreted"));
    compiler.compileAnyway(Compiler.method(VirtualCycling.class, "recurseCompiled"), Compiler.C1);
    compiler.compileAnyway(Compiler.method(VirtualCycling.class, "spin"), Compiler.C1);
  }

  @Override
  void run() {
    while (!Harness.stopped) {
      if (index % 2 == 0) {
        recurseInterpreted(DEPTH);
      } else {
        recurseCompiled(DEPTH);
      }
    }
    leave();
  }

  private void recurseInterpreted(int depth) {
    if (depth > 1) {
      recurseInterpreted(depth - 1);
    } else {
      park();
    }
    spin(500);
  }

  private void recurseCompiled(int depth) {
    if (depth > 1) {
      recurseCompiled(depth - 1);
    } else {
      park();
    }
    spin(500);
  }

  private void park() {
    LockSupport.parkNanos(PARKED_NANOS);
    enter(); // on whichever carrier it is now
    spin(100_000);
  }

  private void spin(int times) {
    int x = 1;
    for (int i = 0; i < times && !Harness.stopped; i++) {
      x = x * 31 + 7;
    }
    sink = x;
  }
}
