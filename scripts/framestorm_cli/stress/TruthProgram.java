/** Calls that a shadow stack follows. With "wrong", it pushes what it never enters. */
public final class TruthProgram {
  static volatile long sink;

  static long descend(int depth) {
    if (depth > 0) return descend(depth - 1) + depth;
    long end = System.nanoTime() + 200_000;
    while (System.nanoTime() < end) {
      sink = Long.hashCode(sink) + 1;
    }
    return sink;
  }

  static void round() {
    for (int depth = 1; depth < 12; ++depth) {
      try {
        descend(depth);
        throw new IllegalStateException();
      } catch (IllegalStateException expected) {
        sink++;
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 0) {
      Class<?> shadow = Class.forName("framestorm.truth.Shadow", true, null);
      shadow.getMethod("enter", int.class).invoke(null, 0);
    }
    long end = System.nanoTime() + 8_000_000_000L;
    while (System.nanoTime() < end) {
      round();
    }
  }
}
