package framestorm;

/** In C2's code for comparing strings, which has a word pushed on top of the method's frame. */
final class StringCompare extends Scenario {
  private static final int LENGTH = 64 * 1024;

  private final String one = "f".repeat(LENGTH);
  private final String longer = "f".repeat(LENGTH) + "s";

  @Override
  void prepare(Compiler compiler) throws NoSuchMethodException {
    compiler.require(Compiler.C2); // C1 calls the Java method
    compiler.compileSeparately(String.class.getMethod("compareTo", String.class), Compiler.C2);
    compiler.compileSeparately(Compiler.method(StringCompare.class, "compare"), Compiler.C2);
  }

  @Override
  void run() {
    compare();
  }

  private void compare() {
    enter();
    int x = 0;
    while (!Harness.stopped) {
      x += one.compareTo(longer);
    }
    sink = x;
    leave();
  }
}
