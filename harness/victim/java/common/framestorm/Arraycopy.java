package framestorm;

import java.util.Arrays;

/**
 * In the arraycopy stubs: disjoint bytes, overlapping ints, references. On the way there C2's code
 * makes arrays and clears them, which is other code for few words, for many, and for a number that
 * it knows.
 */
final class Arraycopy extends Scenario {
  private static final int BYTES = 256 * 1024;
  private static final int MOST_WORDS = 24;

  private final byte[] from = new byte[BYTES];
  private final byte[] to = new byte[BYTES];
  private final int[] overlapping = new int[BYTES / 4];
  private final String[] references = new String[BYTES / 4];
  private final Object[] objects = new Object[BYTES / 4];
  private final int[] few = {1, 2, 3};
  private Object made;

  @Override
  void prepare(Compiler compiler) {
    // The interpreter calls System.arraycopy as any native method.
    compiler.requireCompiled();
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "copy"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "make"), Compiler.C2);
  }

  @Override
  void run() {
    for (int words = 0; words < MOST_WORDS; words++) {
      make(words);
    }
    copy();
  }

  private void make(int words) {
    made = new long[words];
    made = new byte[8 * words + 4];
    made = Arrays.copyOf(few, few.length + words);
    made = new long[5];
    made = new long[700];
  }

  private void copy() {
    enter();
    while (!Harness.stopped) {
      System.arraycopy(from, 0, to, 0, BYTES);
      System.arraycopy(overlapping, 0, overlapping, 1, overlapping.length - 1);
      System.arraycopy(references, 0, objects, 0, references.length);
    }
    leave();
  }
}
