package framestorm.workloads;

import java.util.Map;

/**
 * Warms up code until it is compiled on assumptions, and breaks these: in the method itself
 * (uncommon traps), and by a class loaded while dozens of frames of the method are on the stack,
 * which then return one by one through the deoptimisation handler.
 */
final class DeoptimiseStorm extends Workload {
  private static final int WARM_CALLS = 3_000;
  private static final int FRAMES = 60;

  private Events events;

  @Override
  void prepare(Run run) {
    events = new Events(Map.of("jdk.Deoptimization", "deoptimisations"));
  }

  @Override
  void iterate(Worker worker) throws ReflectiveOperationException {
    Kernel kernel = FreshLoader.copyOf(DeoptKernel.class, Kernel.class);
    Integer usual = 1;
    for (int i = 0; i < WARM_CALLS; i++) {
      kernel.call(usual, i % 4);
    }
    Object unusual =
        switch (worker.random().nextInt(4)) {
          case 0 -> null;
          case 1 -> "another class";
          case 2 -> new int[0];
          default -> Integer.MIN_VALUE;
        };
    kernel.call(unusual, 1);
    for (int i = 0; i < WARM_CALLS; i++) {
      kernel.call(usual, i % 4);
    }
    // The kernel loads a class at the far end of this recursion.
    kernel.call(kernel, FRAMES + worker.random().nextInt(FRAMES));
    worker.count("classes loaded under frames", 1);
  }

  @Override
  boolean enough(Run run) {
    return run.iterations() >= 8;
  }

  @Override
  void prove(Run run) throws Exception {
    events.addTo(run);
    run.count("compiled methods invalidated", Compiled.invalidated(DeoptKernel.class).size());
    if (run.counted("deoptimisations") == 0) {
      // C1 has no uncommon traps, which alone are events; its frames are deoptimised all the same.
      run.require("compiled methods invalidated", 1);
    } else {
      run.require("deoptimisations", Math.max(1, run.iterations() / 4));
    }
  }
}
