package framestorm;

/** In Thread.sleep, for years unless the victims are stopped. */
final class Sleeping extends Scenario {
  private static final long MILLIS = 1L << 40;

  @Override
  void prepare(Compiler compiler) {}

  @Override
  void run() {
    sleep();
  }

  private void sleep() {
    enter();
    while (!Harness.stopped) {
      try {
        Thread.sleep(MILLIS);
      } catch (InterruptedException e) {
        continue; // stopAll interrupts
      }
    }
    leave();
  }

  @Override
  Thread.State blockedState() {
    return Thread.State.TIMED_WAITING;
  }
}
