package framestorm;

/** A virtual thread that has never yielded: its whole stack is on the carrier. */
final class VirtualFresh extends VirtualScenario {
  @Override
  void prepare(Compiler compiler) {
    compiler.compileAnyway(Compiler.method(VirtualFresh.class, "spin"), Compiler.C2);
  }

  @Override
  void run() {
    recurse(20);
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
