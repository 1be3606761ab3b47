package framestorm;

/**
 * A method compiled by C1 with more places that have debug information than a look-up remembers or
 * steps over at once, half of them in a method that is inlined.
 */
final class CompiledCalls extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.require(Compiler.C1);
    compiler.forceInline(Compiler.method(CompiledCalls.class, "inlined"));
    compiler.compileSeparately(Compiler.method(CompiledCalls.class, "called"), Compiler.C1);
    compiler.compileSeparately(Compiler.method(CompiledCalls.class, "large"), Compiler.C1);
    compiler.compileSeparately(Compiler.method(CompiledCalls.class, "loop"), Compiler.C1);
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    enter();
    int x = 1;
    while (!Harness.stopped) {
      x = large(x, x | 1);
    }
    sink = x;
    leave();
  }

  private int large(int from, int by) {
    int x = from;
    x = called(x + inlined(x, by));
    x = called(x - inlined(x, by));
    x = called(x ^ inlined(x, by));
    x = called(x * inlined(x, by));
    x = called(x | inlined(x, by));
    x = called(inlined(x, by) - x);
    x = called(x + inlined(x, by) + 1);
    x = called(x - inlined(x, by) + 2);
    x = called((x ^ inlined(x, by)) + 3);
    x = called(x * inlined(x, by) + 4);
    x = called((x | inlined(x, by)) + 5);
    x = called(inlined(x, by) - x + 6);
    x = called((x + inlined(x, by)) * 31);
    x = called((x - inlined(x, by)) * 31);
    x = called((x ^ inlined(x, by)) * 31);
    x = called(x * inlined(x, by) * 31);
    x = called((x | inlined(x, by)) * 31);
    x = called((inlined(x, by) - x) * 31);
    x = called((x + inlined(x, by)) ^ 7);
    x = called((x - inlined(x, by)) ^ 7);
    x = called(x ^ inlined(x, by) ^ 7);
    x = called((x * inlined(x, by)) ^ 7);
    x = called((x | inlined(x, by)) ^ 7);
    x = called((inlined(x, by) - x) ^ 7);
    x = called((x + inlined(x, by)) >> 1);
    x = called((x - inlined(x, by)) >> 1);
    x = called((x ^ inlined(x, by)) >> 1);
    x = called((x * inlined(x, by)) >> 1);
    x = called((x | inlined(x, by)) >> 1);
    x = called((inlined(x, by) - x) >> 1);
    x = called((x + inlined(x, by)) << 1);
    x = called((x - inlined(x, by)) << 1);
    x = called((x ^ inlined(x, by)) << 1);
    x = called((x * inlined(x, by)) << 1);
    x = called((x | inlined(x, by)) << 1);
    x = called((inlined(x, by) - x) << 1);
    return x;
  }

  /** The division may trap: that place has debug information. */
  private int inlined(int x, int by) {
    return x / by;
  }

  /** Polls in its loop. */
  private int called(int x) {
    int sum = x;
    for (int i = 0; i < 4; i++) {
      sum = sum * 31 + i;
    }
    return sum;
  }
}
