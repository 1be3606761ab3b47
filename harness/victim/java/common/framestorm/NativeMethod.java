package framestorm;

/** A native method called by compiled Java through its compiled wrapper. */
final class NativeMethod extends SpinningScenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled();
    compiler.compileNativeWrapper(Compiler.method(Harness.class, "spinInNative"));
    compiler.compileAnyway(Compiler.method(NativeMethod.class, "call"), Compiler.C2);
  }

  @Override
  void run() {
    call();
  }

  private void call() {
    enter();
    while (!Harness.stopped) {
      Harness.spinInNative();
    }
    leave();
  }
}
