package framestorm;

/** A native method below whose C code are calls that are their functions' last instructions. */
final class NativeNoReturn extends SpinningScenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled();
    compiler.compileNativeWrapper(Compiler.method(Harness.class, "spinBelowNoReturn"));
    compiler.compileAnyway(Compiler.method(NativeNoReturn.class, "call"), Compiler.C2);
  }

  @Override
  void run() {
    call();
  }

  private void call() {
    enter();
    while (!Harness.stopped) {
      Harness.spinBelowNoReturn();
    }
    leave();
  }
}
