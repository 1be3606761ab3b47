package framestorm.workloads;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Ten thousand threads, each parked, waiting or asleep at some depth, of which a few are woken at a
 * time.
 */
final class ThreadCrowd extends Workload {
  private static final int THREADS = 10_000;
  private static final int DEPTH = 20;
  private static final long STACK_BYTES = 160 << 10;
  private static final int STARTERS = 8;
  private static final int WOKEN = 40;

  private final List<Thread> crowd = new ArrayList<>();
  private final Object monitor = new Object();
  private final LongAdder woken = new LongAdder();
  private volatile boolean ended;

  @Override
  void prepare(Run run) throws InterruptedException {
    // Each start waits for the new thread to run: several at once.
    List<Thread> starters = new ArrayList<>();
    for (int i = 0; i < STARTERS; i++) {
      int first = i;
      starters.add(new Thread(() -> start(first)));
    }
    starters.forEach(Thread::start);
    for (Thread starter : starters) {
      starter.join();
    }
    if (crowd.size() < THREADS) {
      release();
      throw new IllegalStateException(
          "this machine has no room for "
              + THREADS
              + " threads, only for "
              + crowd.size()
              + ": raise its limits of threads (ulimit -u, pids.max) or of memory");
    }
    run.count("threads", crowd.size());
  }

  private void start(int first) {
    for (int i = first; i < THREADS; i += STARTERS) {
      int kind = i % 3;
      int depth = i % DEPTH;
      Thread thread = new Thread(null, () -> live(kind, depth), "crowd-" + i, STACK_BYTES);
      thread.setDaemon(true);
      try {
        thread.start();
      } catch (OutOfMemoryError e) {
        return; // No further one can be started: prepare() says so.
      }
      synchronized (crowd) {
        crowd.add(thread);
      }
    }
  }

  private long live(int kind, int depth) {
    if (depth > 0) {
      return live(kind, depth - 1) + 1;
    }
    while (!ended) {
      try {
        switch (kind) {
          case 0 -> {
            LockSupport.park(this);
            Thread.interrupted(); // else it would never park again
          }
          case 1 -> {
            synchronized (monitor) {
              monitor.wait();
            }
          }
          default -> Thread.sleep(3_600_000);
        }
      } catch (InterruptedException e) {
        // Woken for the sake of it.
      }
      woken.increment();
    }
    return 0;
  }

  @Override
  void iterate(Worker worker) throws InterruptedException {
    for (int i = 0; i < WOKEN; i++) {
      Thread thread = crowd.get(worker.random().nextInt(crowd.size()));
      if (i % 2 == 0) {
        thread.interrupt();
      } else {
        LockSupport.unpark(thread);
      }
      synchronized (monitor) {
        monitor.notify();
      }
    }
    Thread.sleep(1);
  }

  private void release() {
    ended = true;
    for (Thread thread : crowd) {
      thread.interrupt();
    }
  }

  @Override
  boolean enough(Run run) {
    return woken.sum() > 0;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.count("woken", woken.sum());
    long alive = crowd.stream().filter(Thread::isAlive).count();
    release();
    run.require("threads alive at the end", alive, THREADS);
    run.require("woken", 1);
  }
}
