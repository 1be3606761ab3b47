package framestorm.workloads;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Several threads on few monitors: entered, re-entered, waited on, hashed while locked; and on
 * locks.
 */
final class MonitorContention extends Workload {
  private static final int MONITORS = 3;
  private static final int ROUNDS = 40;

  private final Object[] monitors = new Object[MONITORS];
  private final ReentrantLock lock = new ReentrantLock();
  private long[] shared = new long[MONITORS];
  private long sharedUnderLock;

  @Override
  void prepare(Run run) {
    if (run.options().threads() < 2) {
      throw new IllegalStateException("contention takes two threads: --threads 2 or more");
    }
    java.util.Arrays.setAll(monitors, i -> new Object());
  }

  @Override
  void iterate(Worker worker) throws InterruptedException {
    for (int round = 0; round < ROUNDS; round++) {
      int which = worker.random().nextInt(MONITORS);
      switch (worker.random().nextInt(5)) {
        case 0 -> nested(which, 5);
        case 1 -> waiting(which);
        case 2 -> freshMonitor(worker);
        case 3 -> locked();
        default -> spinning(which, 2_000);
      }
    }
    Object replaced = new Object();
    synchronized (replaced) {
      monitors[worker.random().nextInt(MONITORS)] = replaced;
      spinning(0, 500);
    }
  }

  private long nested(int which, int depth) {
    synchronized (monitors[which]) {
      return depth == 0 ? shared[which]++ : nested(which, depth - 1);
    }
  }

  private void waiting(int which) throws InterruptedException {
    Object monitor = monitors[which];
    synchronized (monitor) {
      monitor.notifyAll();
      monitor.wait(1);
    }
  }

  /** Inflated by a hash code while it is locked. */
  private void freshMonitor(Worker worker) {
    Object monitor = new Object();
    synchronized (monitor) {
      worker.count("hash codes", monitor.hashCode() != 0 ? 1 : 0);
    }
  }

  private void locked() {
    lock.lock();
    try {
      for (int i = 0; i < 2_000; i++) {
        sharedUnderLock = sharedUnderLock * 31 + i;
      }
    } finally {
      lock.unlock();
    }
  }

  private void spinning(int which, int rounds) {
    synchronized (monitors[which]) {
      for (int i = 0; i < rounds; i++) {
        shared[which] = shared[which] * 31 + i;
      }
    }
  }

  @Override
  void leave(Worker worker) {
    ThreadInfo info =
        ManagementFactory.getThreadMXBean().getThreadInfo(Thread.currentThread().getId());
    worker.count("blocked", info.getBlockedCount());
    worker.count("waited", info.getWaitedCount());
  }

  @Override
  boolean enough(Run run) {
    return run.iterations() >= 50;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("blocked", 1);
    run.require("waited", 1);
  }
}
