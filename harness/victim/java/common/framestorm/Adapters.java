package framestorm;

/**
 * On the way between compiled code and an interpreted method that it calls, and from there to
 * compiled code again: enough arguments to be moved by the adapters for a while.
 */
final class Adapters extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled();
    compiler.compileAnyway(Compiler.method(Adapters.class, "leaf"), Compiler.C2);
    compiler.interpretOnly(Compiler.method(Adapters.class, "interpreted"));
    compiler.compileAnyway(Compiler.method(Adapters.class, "compiled"), Compiler.C2);
  }

  @Override
  void run() {
    compiled();
  }

  private void compiled() {
    enter();
    long x = 1;
    while (!Harness.stopped) {
      x = interpreted(x, 2, x, 4, x, 6, x, 8, x, 10, x, 12);
    }
    sink = x;
    leave();
  }

  private long interpreted(
      long a, int b, long c, int d, long e, int f, long g, int h, long i, int j, long k, int l) {
    return leaf(a, b, c, d, e, f, g, h, i, j, k, l);
  }

  private long leaf(
      long a, int b, long c, int d, long e, int f, long g, int h, long i, int j, long k, int l) {
    return a + b + c + d + e + f + g + h + i + j + k + l;
  }
}
