package framestorm;

/**
 * On the way between compiled code and an interpreted method that it calls, and from there to
 * compiled code again: enough arguments to be moved by the adapters for a while. In between other
 * calls leave their words where the next one's frames will be, as they do in other programs.
 */
final class Adapters extends Scenario {
  private static final int COVERING = 2;

  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled();
    compiler.compileAnyway(Compiler.method(Adapters.class, "leaf"), Compiler.C2);
    compiler.interpretOnly(Compiler.method(Adapters.class, "cover"));
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
    return leaf(cover(a, COVERING), b, c, d, e, f, g, h, i, j, k, l);
  }

  private long cover(long a, int calls) {
    return calls > 1 ? cover(a, calls - 1) : a;
  }

  private long leaf(
      long a, int b, long c, int d, long e, int f, long g, int h, long i, int j, long k, int l) {
    return a + b + c + d + e + f + g + h + i + j + k + l;
  }
}
