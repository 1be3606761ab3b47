package framestorm.workloads;

/**
 * Java calls C calls Java, dozens deep; exceptions on the way back; threads that C made and
 * attached.
 */
final class JniSandwich extends Workload {
  private static final String LIBRARY = "framestorm.workloads.natives";
  private static final int CALLS = 30;
  private static final int DEPTH = 40;

  /** Thrown at the far end; C hands it on, or clears it on the way. */
  private static final class Bounced extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  @Override
  void prepare(Run run) {
    String library = System.getProperty(LIBRARY);
    if (library == null) {
      throw new IllegalStateException("needs its native library: -D" + LIBRARY + "=PATH");
    }
    try {
      System.load(library);
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException("native library: " + e.getMessage(), e);
    }
  }

  /**
   * Calls {@code bounce(worker, depth - 1, kind)} of this object; clears exceptions when `clear`.
   */
  private native long down(Worker worker, int depth, int kind, boolean clear);

  /** Work in C on an array held by GetPrimitiveArrayCritical; its new sum. */
  private static native long critical(int[] array, int rounds);

  /** Work in C alone. */
  private static native long spin(int rounds);

  /** Runs `body` on a thread that C starts, attaches and detaches. */
  private static native void onAttachedThread(Runnable body);

  /** How often C called {@link #bounce}. */
  private static native long callsFromC();

  @Override
  void iterate(Worker worker) {
    int[] array = new int[256];
    for (int i = 0; i < CALLS; i++) {
      int depth = 1 + worker.random().nextInt(DEPTH);
      int kind = worker.random().nextInt(5);
      try {
        worker.count("calls into C", 1);
        down(worker, depth, kind, worker.random().nextBoolean());
      } catch (Bounced e) {
        worker.count("exceptions through C", 1);
      }
      worker.count("calls into C", 1);
      array[i] = (int) critical(array, 500);
    }
    worker.count("calls into C", 1);
    onAttachedThread(() -> worker.count("attached threads", 1));
  }

  /** Called by C only. */
  @SuppressWarnings("unused")
  private long bounce(Worker worker, int depth, int kind) {
    worker.count("calls from C", 1);
    if (depth > 0) {
      worker.count("calls into C", 1);
      return down(worker, depth, kind, (depth & 7) == 0) + 1;
    }
    if (kind == 0) {
      throw new Bounced();
    }
    worker.count("calls into C", 1);
    return spin(kind * 1_000);
  }

  @Override
  boolean enough(Run run) {
    return run.counted("exceptions through C") > 0;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("calls into C", 1);
    run.require("calls from C", callsFromC());
    run.require("calls C says it made", callsFromC(), Math.max(1, run.counted("calls from C")));
    run.require("attached threads", run.iterations());
    run.require("exceptions through C", 1);
  }
}
