package framestorm;

import java.util.Arrays;

/**
 * In the arraycopy stubs: disjoint bytes, overlapping ints, references. On the way there C2's code
 * makes arrays and clears them, which is other code for few words, for many, and for a number that
 * it knows. It copies a few elements of arrays whose types it does not know, too, and of those
 * whose elements' types have to be checked: stubs that call, or go on in, others.
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
  private final Object[] pairs = {
    new byte[64], new byte[64],
    new short[64], new short[64],
    new int[64], new int[64],
    new long[64], new long[64],
    new String[64], new Object[64],
    new Object[64], new String[64],
    new Object[] {"", this}, new String[2],
    new int[64], new long[64],
  };
  private final Object[] strings = new Object[64];
  private final String[] checked = new String[64];
  private Object made;

  @Override
  void prepare(Compiler compiler) {
    // The interpreter calls System.arraycopy as any native method.
    compiler.requireCompiled();
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "copy"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "make"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "copyAny"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "copyByC1"), Compiler.C1);
  }

  @Override
  void run() {
    for (int i = 0; i < pairs.length; i += 2) {
      copyByC1(pairs[i], pairs[i + 1]);
      copyAny(pairs[i], pairs[i + 1]);
    }
    for (int words = 0; words < MOST_WORDS; words++) {
      make(words);
    }
    copy();
  }

  /** C1 calls these stubs at once; C2 traps first where an element's type has to be checked. */
  private void copyByC1(Object source, Object target) {
    System.arraycopy(strings, 0, checked, 0, checked.length);
    try {
      System.arraycopy(source, 1, target, 2, 3);
      System.arraycopy(source, -1, target, 2, 3);
    } catch (ArrayStoreException | ArrayIndexOutOfBoundsException e) {
      made = e;
    }
  }

  private void copyAny(Object source, Object target) {
    try {
      System.arraycopy(source, 0, target, 0, 2);
      System.arraycopy(source, 1, source, 0, 2);
      System.arraycopy(source, 3, target, 5, 17);
      System.arraycopy(target, 5, target, 9, 40);
    } catch (ArrayStoreException | ArrayIndexOutOfBoundsException e) {
      // Some of the arrays are of types that do not fit, or too short.
      made = e;
    }
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
