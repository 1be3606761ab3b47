package framestorm.workloads;

import java.lang.management.ManagementFactory;

/**
 * Loads copies of a class, runs them until they are compiled, drops them, makes the collector run.
 */
final class ClassUnloading extends Workload {
  private static final int COPIES = 20;
  private static final int KEPT = 7;
  private static final int CALLS = 300;
  private static final int ITERATIONS_A_COLLECTION = 10;

  private final Kernel[] kept = new Kernel[KEPT];
  private long unloadedBefore;

  @Override
  void prepare(Run run) {
    unloadedBefore = ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount();
  }

  @Override
  void iterate(Worker worker) throws ReflectiveOperationException {
    for (int copy = 0; copy < COPIES; copy++) {
      Kernel kernel = FreshLoader.copyOf(SmallKernel.class, Kernel.class);
      worker.count("classes loaded", 1);
      int calls = copy % 5 == 0 ? CALLS * 10 : CALLS;
      for (int i = 0; i < calls; i++) {
        kernel.call(null, i & 7);
      }
      kept[worker.random().nextInt(KEPT)] = kernel;
    }
    Kernel other = kept[worker.random().nextInt(KEPT)];
    if (other != null) {
      other.call(null, 30);
    }
    if (worker.random().nextInt(ITERATIONS_A_COLLECTION) == 0) {
      System.gc();
      worker.count("collections asked for", 1);
    }
  }

  @Override
  void prove(Run run) throws NotDone {
    java.util.Arrays.fill(kept, null);
    System.gc();
    long unloaded = ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount();
    run.count("classes unloaded", unloaded - unloadedBefore);
    // Copies of the JDK's own lambdas and accessors are unloaded as well: no upper bound.
    run.require("classes unloaded", run.counted("classes loaded") / 2);
  }
}
