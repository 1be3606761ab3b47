package framestorm.workloads;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Throws, implicitly and explicitly, at the end of a recursion, through frames with and without
 * handlers; checks that each exception arrives, and that it saw its frames.
 */
final class Exceptions extends Workload {
  private static final int THROWS = 200;
  private static final int DEPTH = 40;
  private static final int KINDS = 8;
  private static final long[] NONE = {};

  private static final class Own extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  private Method reflective;

  @Override
  void prepare(Run run) throws NoSuchMethodException {
    reflective = Exceptions.class.getDeclaredMethod("thrower", int.class);
  }

  @Override
  void iterate(Worker worker) {
    for (int i = 0; i < THROWS; i++) {
      int kind = worker.random().nextInt(KINDS);
      int depth = 1 + worker.random().nextInt(DEPTH);
      worker.count("thrown", 1);
      try {
        descend(depth, kind);
      } catch (RuntimeException e) {
        worker.count("caught", 1);
        // HotSpot leaves out the trace of implicit ones thrown often: count those of our own.
        if (e instanceof Own) {
          worker.count("own", 1);
          worker.count("own with all frames", e.getStackTrace().length > depth ? 1 : 0);
        }
      }
    }
  }

  private long descend(int depth, int kind) {
    if (depth == 0) {
      return kind == 7 ? throughReflection(kind) : thrower(kind);
    }
    switch (depth % 4) {
      case 0:
        try {
          return descend(depth - 1, kind) + 1;
        } finally {
          Thread.onSpinWait();
        }
      case 1:
        try {
          return descend(depth - 1, kind) + 2;
        } catch (IllegalStateException e) {
          throw new IllegalStateException(e);
        }
      case 2:
        synchronized (this) {
          return descend(depth - 1, kind) + 3;
        }
      default:
        return descend(depth - 1, kind) + 4;
    }
  }

  private long throughReflection(int kind) {
    try {
      return (Long) reflective.invoke(null, kind);
    } catch (InvocationTargetException e) {
      throw (RuntimeException) e.getCause();
    } catch (IllegalAccessException e) {
      throw new AssertionError(e);
    }
  }

  private static long thrower(int kind) {
    int zero = kind >> 8;
    return switch (kind) {
      case 0 -> 1 / zero;
      case 1 -> NONE[kind];
      case 2 -> String.valueOf(kind).charAt(zero - 1);
      case 3 -> ((Integer) (Object) Integer.toString(kind)).longValue();
      case 4 -> new int[zero - 1].length;
      case 5 -> Long.parseLong("no number");
      case 6 -> throw new IllegalStateException("explicit");
      default -> throw new Own();
    };
  }

  @Override
  boolean enough(Run run) {
    return run.counted("own") > 0;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("thrown", run.iterations() * THROWS);
    run.require("caught", run.counted("thrown"));
    run.require("own", 1);
    run.require("own with all frames", run.counted("own"));
  }
}
