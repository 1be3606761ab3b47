package framestorm;

/** Forty interpreted activations of one method, an interpreted loop above them. */
final class InterpretedRecursion extends Scenario {
  private static final int DEPTH = 40;

  @Override
  void prepare(Compiler compiler) {
    compiler.interpretOnly(Compiler.method(InterpretedRecursion.class, "recurse"));
    compiler.interpretOnly(Compiler.method(InterpretedRecursion.class, "spin"));
  }

  @Override
  void run() {
    recurse(DEPTH);
  }

  private void recurse(int depth) {
    if (depth > 1) {
      recurse(depth - 1);
    } else {
      spin();
    }
  }

  private void spin() {
    enter();
    int x = 1;
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    sink = x;
    leave();
  }
}
