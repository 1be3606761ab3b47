package framestorm;

/**
 * Starts a thread that ends at once, each time the harness permits it. The thread that enters is
 * the creator: the harness knows by it whose permits {@link Harness#churnPermit} waits for.
 */
abstract class Churn extends Scenario {
  @Override
  void prepare(Compiler compiler) {}

  @Override
  void run() throws InterruptedException {
    enter();
    while (!Harness.stopped) {
      Harness.churnPermit();
      Thread shortLived = new Thread(new Short(this), "short-lived");
      shortLived.setDaemon(true);
      shortLived.start();
      shortLived.join();
    }
    leave();
  }

  private static final class Short implements Runnable {
    private final Scenario scenario;

    Short(Scenario scenario) {
      this.scenario = scenario;
    }

    @Override
    public void run() {
      scenario.sink = 1;
    }
  }
}
