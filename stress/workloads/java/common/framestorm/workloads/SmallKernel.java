package framestorm.workloads;

/** Some small methods that call each other. */
public final class SmallKernel implements Kernel {
  private interface Step {
    long next(long x);
  }

  private final Step[] steps = {x -> x * 31 + 7, x -> x ^ x >>> 3, x -> a(x, 2)};
  private long state = 1;

  @Override
  public long call(Object argument, int n) {
    for (int i = 0; i <= n; i++) {
      state = steps[i % steps.length].next(b(state));
    }
    return state;
  }

  private static long a(long x, int n) {
    return n == 0 ? x : a(x + n, n - 1) * 3;
  }

  private static long b(long x) {
    return c(x + 1) - d(x);
  }

  private static long c(long x) {
    return Long.rotateLeft(x, 5);
  }

  private static long d(long x) {
    return x == 0 ? 1 : x % 1_000_003;
  }
}
