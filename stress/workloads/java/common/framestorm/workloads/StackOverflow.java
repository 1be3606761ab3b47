package framestorm.workloads;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * Recurses until the stack ends: in own code, in the JDK's (toString of a list in itself), by
 * reflection, with large frames; catches the error with next to no stack left or far above; and
 * recurses very deep without an overflow.
 */
final class StackOverflow extends Workload {
  private static final long SMALL_STACK = 256 << 10;
  private static final long LARGE_STACK = 256 << 20;
  private static final int VERY_DEEP = 20_000;

  private Method reflective;

  @Override
  void prepare(Run run) throws NoSuchMethodException {
    reflective = StackOverflow.class.getDeclaredMethod("byReflection", int.class);
  }

  @Override
  void iterate(Worker worker) throws InterruptedException {
    int kind = worker.random().nextInt(6);
    int some = worker.random().nextInt(1 << 20);
    Throwable[] failure = new Throwable[1];
    Runnable body =
        kind == 5
            ? () -> worker.count("frames of very deep stacks", deep(VERY_DEEP))
            : () -> overflow(worker, kind, some);
    Thread thread =
        new Thread(null, body, "overflow-" + kind, kind == 5 ? LARGE_STACK : SMALL_STACK);
    thread.setUncaughtExceptionHandler((t, e) -> failure[0] = e);
    thread.start();
    thread.join();
    if (failure[0] != null) {
      throw new IllegalStateException("recursion " + kind, failure[0]);
    }
  }

  private void overflow(Worker worker, int kind, int some) {
    worker.count("tried", 1);
    try {
      switch (kind) {
        case 0 -> small(some);
        case 1 -> large(some, 1, 2, 3, 4, 5, 6, 7, 8);
        case 2 -> caughtOnTheWay(some);
        case 3 -> inTheJdk();
        default -> byReflection(some);
      }
    } catch (StackOverflowError e) {
      worker.count("overflows", 1);
    }
  }

  private static long small(long x) {
    return small(x * 31) + 1;
  }

  private static long large(
      long a, long b, long c, long d, double e, double f, double g, double h, long i) {
    double j = a * 0.5 + e;
    double k = b * 0.5 - f;
    return large(b, c, d, a, k, j, h * 2, g + 1, i + 1) + (long) (j * k + e + f + g + h) + a + d;
  }

  /** The frame nearest the end that can handles the error, and goes on recursing. */
  private static long caughtOnTheWay(long x) {
    try {
      return caughtOnTheWay(x + 1) + 1;
    } catch (StackOverflowError e) {
      if ((x & 63) == 0) {
        return small(x);
      }
      throw e;
    }
  }

  private static long inTheJdk() {
    List<Object> list = new ArrayList<>();
    List<Object> inner = new ArrayList<>(List.of(1, list));
    list.add(inner);
    return list.hashCode();
  }

  private long byReflection(int x) {
    try {
      return (Long) reflective.invoke(this, x + 1);
    } catch (ReflectiveOperationException e) {
      Throwable cause = e;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      if (cause instanceof StackOverflowError error) {
        throw error;
      }
      throw new IllegalStateException(e);
    }
  }

  private static long deep(int n) {
    return n == 0 ? 0 : deep(n - 1) + 1;
  }

  @Override
  boolean enough(Run run) {
    return run.counted("overflows") > 0 && run.counted("frames of very deep stacks") > 0;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("overflows", Math.max(1, run.counted("tried")));
    run.require("frames of very deep stacks", VERY_DEEP);
  }
}
