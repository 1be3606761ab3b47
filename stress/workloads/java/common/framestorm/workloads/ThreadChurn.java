package framestorm.workloads;

import java.lang.management.ManagementFactory;

/** Threads that start, do next to nothing and end, in bursts; some end by an exception. */
final class ThreadChurn extends Workload {
  private static final int BURST = 24;
  private static final long SMALL_STACK = 160 << 10;

  private long startedBefore;
  private volatile long sink;

  @Override
  void prepare(Run run) {
    startedBefore = ManagementFactory.getThreadMXBean().getTotalStartedThreadCount();
  }

  @Override
  void iterate(Worker worker) throws InterruptedException {
    Thread[] burst = new Thread[BURST];
    for (int i = 0; i < BURST; i++) {
      int kind = worker.random().nextInt(4);
      int some = worker.random().nextInt(20_000);
      burst[i] = new Thread(null, () -> live(kind, some), "churn-" + kind, i % 2 * SMALL_STACK);
      burst[i].setUncaughtExceptionHandler((thread, e) -> worker.count("ended by exception", 1));
      burst[i].start();
    }
    for (Thread thread : burst) {
      thread.join();
    }
  }

  private void live(int kind, int some) {
    switch (kind) {
      case 0:
        return;
      case 1:
        for (int i = 0; i < some; i++) {
          sink = sink * 31 + i;
        }
        return;
      case 2:
        Thread.yield();
        sink = Thread.currentThread().getStackTrace().length;
        return;
      default:
        throw new IllegalStateException("ends the thread");
    }
  }

  @Override
  boolean enough(Run run) {
    return run.counted("ended by exception") > 0;
  }

  @Override
  void prove(Run run) throws NotDone {
    long started = ManagementFactory.getThreadMXBean().getTotalStartedThreadCount();
    run.count("threads started", started - startedBefore);
    run.require("threads started", run.iterations() * BURST);
    run.require("ended by exception", 1);
  }
}
