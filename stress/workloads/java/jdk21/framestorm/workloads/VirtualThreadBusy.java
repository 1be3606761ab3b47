package framestorm.workloads;

import java.util.ArrayList;
import java.util.List;

/**
 * Virtual threads that compute and never yield: all their frames are on their carrier's stack,
 * above the carrier's own.
 */
final class VirtualThreadBusy extends Workload {
  private static final int BURST = 4;
  private static final int DEPTH = 60;
  private static final int ROUNDS = 1500;

  private volatile long sink;

  @Override
  void iterate(Worker worker) throws InterruptedException {
    List<Thread> burst = new ArrayList<>();
    for (int i = 0; i < BURST; i++) {
      int seed = worker.random().nextInt();
      burst.add(Thread.ofVirtual().name("busy").start(() -> live(worker, seed)));
    }
    for (Thread thread : burst) {
      thread.join();
    }
    worker.count("virtual threads", BURST);
  }

  private void live(Worker worker, int seed) {
    String carrier = Carrier.ofThis();
    long sum = seed;
    for (int i = 0; i < ROUNDS; i++) {
      sum = compute(DEPTH, sum);
    }
    sink = sum;
    if (Carrier.ofThis().equals(carrier)) {
      worker.count("stayed on its carrier", 1);
    }
  }

  private static long compute(int depth, long sum) {
    if (depth == 0) {
      return sum;
    }
    long next = compute(depth - 1, sum * 31 + depth);
    return next ^ (next >>> 7);
  }

  @Override
  void prove(Run run) throws Exception {
    run.require("virtual threads", run.iterations() * BURST);
    run.require("stayed on its carrier", run.counted("virtual threads"));
  }
}
