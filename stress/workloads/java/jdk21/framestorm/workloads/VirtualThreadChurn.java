package framestorm.workloads;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that are mounted and unmounted at different depths, by yields, parks, queues and
 * locks, and some that block with a native frame beneath, which pins them to their carrier.
 */
final class VirtualThreadChurn extends Workload {
  private static final int BURST = 40;
  private static final int SWITCHES = 12;
  private static final int DEPTH = 30;

  private final ReentrantLock lock = new ReentrantLock();
  private final BlockingQueue<Long> queue = new LinkedBlockingQueue<>();
  private Events events;
  private volatile long sink;

  @Override
  void prepare(Run run) {
    events = new Events(Map.of("jdk.VirtualThreadPinned", "pinned"));
  }

  @Override
  void iterate(Worker worker) throws InterruptedException {
    List<Thread> burst = new ArrayList<>();
    Throwable[] failure = new Throwable[1];
    for (int i = 0; i < BURST; i++) {
      int kind = i % 5;
      int depth = worker.random().nextInt(DEPTH);
      burst.add(
          Thread.ofVirtual()
              .name("churn-" + kind)
              .uncaughtExceptionHandler((thread, e) -> failure[0] = e)
              .start(() -> live(worker, kind, depth)));
    }
    for (Thread thread : burst) {
      thread.join();
    }
    if (failure[0] != null) {
      throw new IllegalStateException("a virtual thread failed", failure[0]);
    }
    worker.count("virtual threads", BURST);
  }

  private void live(Worker worker, int kind, int depth) {
    String carrier = Carrier.ofThis();
    for (int i = 0; i < SWITCHES; i++) {
      switchDeep(kind == 4 && i > 0 ? 0 : kind, depth);
      String next = Carrier.ofThis();
      if (!next.equals(carrier)) {
        worker.count("moved to another carrier", 1);
        carrier = next;
      }
    }
  }

  private long switchDeep(int kind, int depth) {
    if (depth > 0) {
      return switchDeep(kind, depth - 1) + 1;
    }
    switch (kind) {
      case 0 -> Thread.yield();
      case 1 -> LockSupport.parkNanos(50_000);
      case 2 -> {
        queue.add(1L);
        sink = queue.poll() == null ? 0 : 1;
        Thread.yield();
      }
      case 3 -> {
        lock.lock();
        try {
          Thread.yield();
        } finally {
          lock.unlock();
        }
      }
      default -> pinned();
    }
    return 0;
  }

  /** Blocks in a class initialiser, which the VM calls: with a native frame beneath on any JDK. */
  private static void pinned() {
    try {
      FreshLoader.copyOf(ParksInInitialiser.class, Object.class);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  boolean enough(Run run) {
    return run.iterations() >= 5 && run.counted("moved to another carrier") > 0;
  }

  @Override
  void prove(Run run) throws Exception {
    events.addTo(run);
    run.require("virtual threads", run.iterations() * BURST);
    run.require("pinned", 1);
    run.require("moved to another carrier", 1);
  }
}
