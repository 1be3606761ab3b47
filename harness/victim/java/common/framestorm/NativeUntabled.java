package framestorm;

/** A native method below C code with unusual unwind tables, and some with none. */
final class NativeUntabled extends SpinningScenario {
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
