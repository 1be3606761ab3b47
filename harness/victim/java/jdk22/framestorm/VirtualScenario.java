package framestorm;

/** A scenario whose victim is a virtual thread, mounted on a carrier of its own. */
abstract class VirtualScenario extends Scenario {
  /** Busy victims never leave their carriers, so there must be one for each. */
  private static final String CARRIERS = "32";

  static {
    System.setProperty("jdk.virtualThreadScheduler.parallelism", CARRIERS);
    System.setProperty("jdk.virtualThreadScheduler.maxPoolSize", "256");
  }

  @Override
  final Thread thread(Victim victim) {
    return Thread.ofVirtual().name(victim.getName()).unstarted(victim);
  }
}
