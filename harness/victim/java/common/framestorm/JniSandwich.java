package framestorm;

/** Java, native, Java, native. */
final class JniSandwich extends SpinningScenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(JniSandwich.class, "outer"), Compiler.C1);
  }

  @Override
  void run() {
    outer();
  }

  private void outer() {
    Harness.callBack(new Inner(this));
  }

  private static final class Inner implements Runnable {
    private final Scenario scenario;

    Inner(Scenario scenario) {
      this.scenario = scenario;
    }

    @Override
    public void run() {
      scenario.enter();
      while (!Harness.stopped) {
        Harness.spinInNative();
      }
      scenario.leave();
    }
  }
}
