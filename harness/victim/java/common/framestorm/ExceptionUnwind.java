package framestorm;

/** Throws through three frames, compiled where there is a compiler, over and over. */
final class ExceptionUnwind extends Scenario {
  private static final RuntimeException THROWN = new RuntimeException("framestorm");

  @Override
  void prepare(Compiler compiler) {
    // Callees first: none is to be inlined.
    compiler.compileAnyway(Compiler.method(ExceptionUnwind.class, "level3"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(ExceptionUnwind.class, "level2"), Compiler.C1);
    compiler.compileAnyway(Compiler.method(ExceptionUnwind.class, "level1"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(ExceptionUnwind.class, "loop"), Compiler.C1);
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    enter();
    long x = 1;
    while (!Harness.stopped) {
      try {
        x = level1(x);
      } catch (RuntimeException e) {
        x = x * 31 + 7;
      }
    }
    sink = x;
    leave();
  }

  private long level1(long x) {
    return level2(x + 1) + x;
  }

  private long level2(long x) {
    return level3(x * 3) + x;
  }

  private long level3(long x) {
    sink = x;
    throw THROWN;
  }
}
