package framestorm;

/** Three methods compiled by C1 at tier 1, which has no counters: they stay at it. */
final class C1 extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.require(Compiler.C1);
    for (String name : new String[] {"spin", "middle", "outer"}) {
      compiler.compileSeparately(Compiler.method(C1.class, name), Compiler.C1);
    }
  }

  @Override
  void run() {
    sink = outer(3, 5L);
  }

  private long outer(int a, long b) {
    return middle(a + 1, b, 2.5) + a;
  }

  private long middle(int a, long b, double c) {
    return spin(b + a) + (long) c;
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
