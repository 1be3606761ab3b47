package framestorm;

/** Java, native, Java, native. */
final class JniSandwich extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(JniSandwich.class, "outer"), Compiler.C1);
  }

  @Override
  void run() {
    outer();
  }

  @Override
  boolean isAtPoint() {
    return isSpinning();
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
