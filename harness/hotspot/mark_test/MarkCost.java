/**
 * What a walk costs by the depth of the stack, wholly and down to a mark that is ten frames below
 * the top; the property `agent` names the library. Prints a table.
 */
public class MarkCost {
  static native boolean mark(int up);

  /** Frames of a walk; with the mark: of the part that is walked. */
  static native int frames(boolean toMark);

  /** Nanoseconds of a walk, the best of several rounds. */
  static native double cost(boolean toMark, int walks);

  static final int NEAR_TOP = 10;

  static boolean measures;

  static int recursion(int depth) {
    return depth > 0 ? recursion(depth - 1) + 1 : atTop();
  }

  static int atTop() {
    if (!measures) return 0;
    if (!mark(NEAR_TOP)) throw new AssertionError("not marked");
    int whole = frames(false);
    int part = frames(true);
    // Two calls of the recursion may be one frame.
    if (part > 2 * NEAR_TOP + 2) throw new AssertionError(part + " frames to the mark");
    int walks = Math.max(5, 100_000 / whole);
    System.out.printf(
        "| %,d | %,d | %.2f | %.2f |%n",
        whole, part, cost(false, walks) / 1000, cost(true, walks) / 1000);
    return 0;
  }

  public static void main(String[] args) throws Exception {
    System.load(System.getProperty("agent"));
    System.out.println("| frames | walked to the mark | whole, us | to the mark, us |");
    System.out.println("|---:|---:|---:|---:|");
    Runnable body =
        () -> {
          for (int i = 0; i < 20_000; i++)
            recursion(60); // until it is compiled, where there is a compiler
          measures = true;
          for (int depth : new int[] {20, 100, 300, 1000, 3000, 10_000}) recursion(depth);
        };
    Thread thread = new Thread(null, body, "deep", 1 << 28);
    thread.start();
    thread.join();
  }
}
