package framestorm.workloads;

/** Loaded in many copies, each of which compiles and deoptimises on its own. */
public final class DeoptKernel implements Kernel {
  /**
   * Its only loaded class until {@link Second} is: what C2 inlines on that assumption is invalid
   * then.
   */
  private static class First {
    long value(int n) {
      return n * 31L + 7;
    }
  }

  private static final class Second extends First {
    @Override
    long value(int n) {
      return n ^ 5;
    }
  }

  private First shape = new First();
  private long sink;

  @Override
  public long call(Object argument, int n) {
    if (argument == this) {
      return sink = recurse(n, true);
    }
    long sum = recurse(n, false);
    for (int i = 0; i < 8; i++) {
      sum += unusualIn(argument, i);
    }
    return sink = sum;
  }

  private long recurse(int n, boolean load) {
    if (n == 0) {
      if (load) {
        shape = new Second();
      }
      return 1;
    }
    return recurse(n - 1, load) + shape.value(n);
  }

  /** What C2 has seen of the argument: never null, always an Integer, never the smallest. */
  private static long unusualIn(Object argument, int i) {
    try {
      int value = (Integer) argument;
      if (value == Integer.MIN_VALUE) {
        return i / (value - Integer.MIN_VALUE);
      }
      return value * 31L + argument.hashCode();
    } catch (ClassCastException | NullPointerException | ArithmeticException e) {
      return -1;
    }
  }
}
