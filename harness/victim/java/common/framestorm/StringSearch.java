package framestorm;

/**
 * In C2's code for searching in strings. What is short and begins at the end of a page it copies to
 * the stack, so that up to eight words are on top of the method's frame.
 */
final class StringSearch extends Scenario {
  private static final int MOST = 1 << 20;

  private String in;
  private String longer;
  private String sought;
  private byte[] between;

  @Override
  void prepare(Compiler compiler) throws NoSuchMethodException {
    compiler.require(Compiler.C2); // C1 calls the Java method
    compiler.compileSeparately(String.class.getMethod("indexOf", String.class), Compiler.C2);
    compiler.compileSeparately(Compiler.method(StringSearch.class, "search"), Compiler.C2);
    in = atPageEnd("ababc");
    longer = atPageEnd("ababababababababababc");
    sought = atPageEnd("abc");
  }

  @Override
  void run() {
    search();
  }

  private void search() {
    enter();
    int x = 0;
    while (!Harness.stopped) {
      x += in.indexOf(sought) + longer.indexOf(sought);
    }
    sink = x;
    leave();
  }

  private String atPageEnd(String text) {
    for (int i = 0; i < MOST; i++) {
      between = new byte[8 * (i % 7)]; // so that they come to lie at all places of a page
      final String copy = new String(text.toCharArray());
      if (Harness.isAtPageEnd(copy)) {
        return copy;
      }
    }
    throw new IllegalStateException("no string begins at the end of a page");
  }
}
