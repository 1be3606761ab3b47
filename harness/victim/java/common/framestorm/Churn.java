package framestorm;

/** Starts a thread that ends at once, each time the harness permits it. */
abstract class Churn extends Scenario {
  @Override
  void prepare(Compiler compiler) {}

  @Override
  void run() throws InterruptedException {
    atPoint();
    while (!Harness.stopped) {
      Harness.churnPermit();
      Thread shortLived = new Thread(new Short(this), "short-lived");
      shortLived.setDaemon(true);
      shortLived.start();
      shortLived.join();
    }
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
