package framestorm.bench;

/**
 * What one call costs: prints nanoseconds, the median of rounds. Each call does the least that is
 * instrumented.
 */
public final class Calls {
  private static final int ROUNDS = 21;
  static volatile long sink;

  private Calls() {}

  static int leaf(int value) {
    int bits = 0;
    for (int i = value & 1; i >= 0; i--) bits += i;
    return bits;
  }

  static long round(int calls) {
    long sum = 0;
    for (int i = 0; i < calls; i++) sum += leaf(i);
    return sum;
  }

  public static void main(String[] arguments) {
    int calls = Integer.parseInt(arguments[0]);
    double[] each = new double[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
      long begin = System.nanoTime();
      sink += round(calls);
      each[i] = (System.nanoTime() - begin) / (double) calls;
    }
    java.util.Arrays.sort(each);
    System.out.println("ns " + each[ROUNDS / 2]);
  }
}
