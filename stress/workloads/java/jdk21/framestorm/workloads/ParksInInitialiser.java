package framestorm.workloads;

import java.util.concurrent.locks.LockSupport;

/** Its initialiser blocks for a moment; loaded in many copies. */
public final class ParksInInitialiser {
  static {
    LockSupport.parkNanos(20_000);
  }

  public ParksInInitialiser() {}
}
