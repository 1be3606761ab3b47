package framestorm;

import java.util.concurrent.locks.LockSupport;

/** Parked without a time limit. */
final class Parked extends Scenario {
  @Override
  void prepare(Compiler compiler) {}

  @Override
  void run() {
    park();
  }

  private void park() {
    enter();
    while (!Harness.stopped) {
      LockSupport.park();
    }
    leave();
  }

  @Override
  Thread.State blockedState() {
    return Thread.State.WAITING;
  }
}
