package framestorm;

/**
 * Runs out of stack, catches the error in the innermost frame that can, works there with next to no
 * stack left, unwinds, starts again.
 */
final class StackOverflow extends Scenario {
  private static final long STACK_BYTES = 512 << 10;
  private static final int WORK = 40_000_000;

  private boolean handled;

  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(StackOverflow.class, "recurse"), Compiler.C1);
  }

  @Override
  long stackBytes() {
    return STACK_BYTES;
  }

  @Override
  void run() {
    attempt();
  }

  private void attempt() {
    enter();
    while (!Harness.stopped) {
      handled = false;
      try {
        sink = recurse(1);
      } catch (StackOverflowError e) {
        sink++;
      }
    }
    leave();
  }

  private long recurse(long x) {
    try {
      return recurse(x + 1) + x;
    } catch (StackOverflowError e) {
      if (!handled) {
        handled = true;
        for (int i = 0; i < WORK && !Harness.stopped; i++) {
          x = x * 31 + i;
        }
        sink = x;
      }
      throw e;
    }
  }
}
