package framestorm;

/** An interpreted method that calls interpreted ones, a native one, and the VM. */
final class InterpretedCalls extends Scenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.interpretOnly(Compiler.method(InterpretedCalls.class, "loop"));
    compiler.interpretOnly(Compiler.method(InterpretedCalls.class, "one"));
    compiler.interpretOnly(Compiler.method(InterpretedCalls.class, "two"));
    // Without a wrapper it is called by the interpreter, whose frame it has.
    compiler.interpretOnly(Compiler.method(Harness.class, "countInNative"));
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    enter();
    int x = 1;
    while (!Harness.stopped) {
      x = ((x * 31 + 7) ^ (x >>> 3)) * 17 - (x << 2) + ((x | 5) * 3 & 0xffff);
      x += one(x);
      x = ((x * 13 - 5) ^ (x >>> 5)) * 19 + (x << 1) - ((x | 9) * 7 & 0xffff);
      x += two(x);
      x += new byte[x & 7].length;
      Harness.countInNative();
    }
    sink = x;
    leave();
  }

  private int one(int x) {
    return x + 1;
  }

  private int two(int x) {
    return x * 31 + 2;
  }
}
