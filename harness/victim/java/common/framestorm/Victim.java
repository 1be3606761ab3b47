package framestorm;

/**
 * Runs a scenario. A Thread itself, so that its run method is the first frame of platform victims
 * on every JDK; only the body of virtual ones.
 */
final class Victim extends Thread {
  private final Scenario scenario;

  Victim(Scenario scenario, String name, long stackBytes) {
    super(null, null, name, stackBytes);
    this.scenario = scenario;
    setDaemon(true);
  }

  @Override
  public void run() {
    try {
      Harness.beginStepping();
      scenario.run();
    } catch (Throwable e) {
      scenario.failed(e);
    }
    // Not in `finally`: that needs one more local, and artifacts count words of the frames above.
    Harness.endStepping();
  }
}
