package framestorm;

/**
 * A virtual thread that yielded deep in its stack and came back only to the innermost frames: the
 * others are still in the heap, beneath the return barrier. Even victims have interpreted frames,
 * odd ones compiled frames; more than HotSpot thaws at once (500 words,
 * src/hotspot/share/runtime/continuationFreezeThaw.cpp).
 */
final class VirtualRemounted extends VirtualScenario {
  private static final int DEPTH = 400;

  @Override
  void prepare(Compiler compiler) {
    compiler.interpretOnly(Compiler.method(VirtualRemounted.class, "recurseInterpreted"));
    compiler.compileAnyway(Compiler.method(VirtualRemounted.class, "recurseCompiled"), Compiler.C1);
    compiler.compileAnyway(Compiler.method(VirtualRemounted.class, "yieldAndSpin"), Compiler.C1);
  }

  @Override
  void run() {
    if (index % 2 == 0) {
      recurseInterpreted(DEPTH);
    } else {
      recurseCompiled(DEPTH);
    }
  }

  private void recurseInterpreted(int depth) {
    if (depth > 1) {
      recurseInterpreted(depth - 1);
    } else {
      yieldAndSpin();
    }
  }

  private void recurseCompiled(int depth) {
    if (depth > 1) {
      recurseCompiled(depth - 1);
    } else {
      yieldAndSpin();
    }
  }

  private void yieldAndSpin() {
    Thread.yield();
    enter();
    int x = 1;
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    sink = x;
    leave();
  }
}
