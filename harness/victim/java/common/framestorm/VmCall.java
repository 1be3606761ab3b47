package framestorm;

/**
 * Nearly always inside the VM: interning a copy of a long string that is interned already, which
 * compares all of it and allocates nothing in the Java heap.
 */
final class VmCall extends Scenario {
  private static final int LENGTH = 128 * 1024;

  private String text;

  @Override
  void prepare(Compiler compiler) throws NoSuchMethodException {
    "framestorm ".repeat(LENGTH / 11).intern();
    text = "framestorm ".repeat(LENGTH / 11);
    compiler.compileNativeWrapper(String.class.getMethod("intern"));
    compiler.compileAnyway(Compiler.method(VmCall.class, "call"), Compiler.C2);
  }

  @Override
  void run() {
    call();
  }

  private void call() {
    enter();
    while (!Harness.stopped) {
      text.intern();
    }
    leave();
  }
}
