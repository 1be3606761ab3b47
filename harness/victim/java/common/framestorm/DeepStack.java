package framestorm;

/** More frames than anybody asks for, compiled where there is a compiler. */
final class DeepStack extends Scenario {
  private static final int DEPTH = 12_500;
  private static final long STACK_BYTES = 64L << 20;

  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(DeepStack.class, "spin"), Compiler.C1);
    compiler.compileAnyway(Compiler.method(DeepStack.class, "recurse"), Compiler.C1);
  }

  @Override
  long stackBytes() {
    return STACK_BYTES;
  }

  @Override
  void run() {
    sink = recurse(DEPTH);
  }

  private long recurse(int depth) {
    return depth > 1 ? recurse(depth - 1) + depth : spin();
  }

  private long spin() {
    enter();
    long x = 1;
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }
}
