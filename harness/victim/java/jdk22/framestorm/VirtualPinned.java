package framestorm;

/** A virtual thread with a native frame on its stack, which keeps it on its carrier. */
final class VirtualPinned extends VirtualScenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(Inner.class, "run"), Compiler.C1);
  }

  @Override
  void run() {
    call();
  }

  private void call() {
    Harness.callBack(new Inner(this));
  }

  private static final class Inner implements Runnable {
    private final Scenario scenario;

    Inner(Scenario scenario) {
      this.scenario = scenario;
    }

    @Override
    public void run() {
      Thread.yield(); // to no effect: pinned
      scenario.enter();
      int x = 1;
      while (!Harness.stopped) {
        x = x * 31 + 7;
      }
      scenario.sink = x;
      scenario.leave();
    }
  }
}
