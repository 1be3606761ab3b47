package framestorm;

/** A native method whose C code calls more of it by way of code that has no unwind table. */
final class NativeUntabled extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled();
    compiler.compileNativeWrapper(Compiler.method(Harness.class, "spinBelowUntabled"));
    compiler.compileAnyway(Compiler.method(NativeUntabled.class, "call"), Compiler.C2);
  }

  @Override
  void run() {
    call();
  }

  private void call() {
    enter();
    while (!Harness.stopped) {
      Harness.spinBelowUntabled();
    }
    leave();
  }
}
