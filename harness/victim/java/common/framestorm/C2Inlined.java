package framestorm;

/** Four methods in one C2-compiled one, called from another. */
final class C2Inlined extends Scenario {
  @Override
  void prepare(Compiler compiler) throws ReflectiveOperationException {
    compiler.require(Compiler.C2);
    compiler.resolveOwnClass(C2Inlined.class);
    for (String name : new String[] {"level1", "level2", "leaf"}) {
      compiler.forceInline(Compiler.method(C2Inlined.class, name));
    }
    compiler.compileSeparately(Compiler.method(C2Inlined.class, "root"), Compiler.C2);
    compiler.compileSeparately(Compiler.method(C2Inlined.class, "boundary"), Compiler.C2);
  }

  private static Class<?> ownClass() {
    return C2Inlined.class;
  }

  @Override
  void run() {
    sink = boundary(3, 5L);
  }

  private long boundary(int a, long b) {
    return root(a + 1, b) + a;
  }

  private long root(int a, long b) {
    return level1(b + a) ^ a;
  }

  private long level1(long a) {
    return level2(a * 3) + a;
  }

  private long level2(long a) {
    return leaf(a * 5) - a;
  }

  private long leaf(long x) {
    enter();
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }
}
