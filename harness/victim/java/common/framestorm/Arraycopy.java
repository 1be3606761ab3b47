package framestorm;

/** In the arraycopy stubs: disjoint bytes, overlapping ints, references. */
final class Arraycopy extends Scenario {
  private static final int BYTES = 256 * 1024;

  private final byte[] from = new byte[BYTES];
  private final byte[] to = new byte[BYTES];
  private final int[] overlapping = new int[BYTES / 4];
  private final String[] references = new String[BYTES / 4];
  private final Object[] objects = new Object[BYTES / 4];

  @Override
  void prepare(Compiler compiler) {
    // The interpreter calls System.arraycopy as any native method.
    compiler.requireCompiled();
    compiler.compileAnyway(Compiler.method(Arraycopy.class, "copy"), Compiler.C2);
  }

  @Override
  void run() {
    copy();
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
