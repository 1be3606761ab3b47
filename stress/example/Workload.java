/** Something to profile: two methods that share the time, one third and two thirds. */
public final class Workload {
  private Workload() {}

  private static long less(int n) {
    return n < 2 ? n : less(n - 1) + less(n - 2);
  }

  private static long more(int n) {
    return n < 2 ? n : more(n - 1) + more(n - 2);
  }

  public static void main(String[] arguments) {
    long sum = 0;
    for (long end = System.nanoTime() + 2_000_000_000L; System.nanoTime() < end; ) {
      sum += less(20) + more(20) + more(20);
    }
    System.out.println(sum);
  }
}
