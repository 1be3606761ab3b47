package framestorm.workloads;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import javax.management.JMException;

/**
 * Compiles more than a small code cache holds, from classes that stay loaded: HotSpot throws out
 * the methods that have not been called for long.
 */
final class CodeCacheFlushing extends Workload {
  private static final int MOST_COPIES = 600;
  private static final int LEAST_GONE = 10;
  private static final int CALLS = 4_000;
  private static final int ITERATIONS_A_CHECK = 25;

  // Never dropped: a method that is gone was flushed, not unloaded with its class.
  private final List<Kernel> copies = new ArrayList<>();
  private final Set<Integer> seen = new HashSet<>();

  @Override
  void iterate(Worker worker) throws ReflectiveOperationException, JMException {
    Kernel kernel = next(worker);
    for (int i = 0; i < CALLS; i++) {
      kernel.call(null, i & 15);
    }
    if (worker.run().iterations() % ITERATIONS_A_CHECK == 0) {
      look();
    }
  }

  private Kernel next(Worker worker) throws ReflectiveOperationException {
    synchronized (copies) {
      if (copies.size() < MOST_COPIES) {
        copies.add(FreshLoader.copyOf(SmallKernel.class, Kernel.class));
        return copies.get(copies.size() - 1);
      }
      return copies.get(worker.random().nextInt(MOST_COPIES));
    }
  }

  /** Which methods are compiled now; returns how many of those seen before are not. */
  private long look() throws JMException {
    synchronized (seen) {
      Set<Integer> now = Compiled.ids(SmallKernel.class);
      seen.addAll(now);
      return seen.size() - now.size();
    }
  }

  @Override
  boolean enough(Run run) throws JMException {
    return look() >= LEAST_GONE;
  }

  @Override
  void prove(Run run) throws Exception {
    run.count("compiled methods gone", look());
    run.count("compiled methods seen", seen.size());
    run.require("compiled methods gone", LEAST_GONE);
  }
}
