import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/**
 * What the agent's tests sample: busy threads whose result is known, so that a sample which did
 * harm shows, and as many idle or short-lived threads as asked for.
 *
 * <p>Arguments: busy threads, milliseconds, idle threads, threads that come and go, and if there
 * are to be any, stack overflows. Busy threads run for the milliseconds, and until each has had
 * half of its share of the processors for as long: where other load takes them, the work is no
 * less. While the file that the property "keep" names is there, nothing ends.
 */
public class Sampled {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static final Path KEEP =
      System.getProperty("keep") == null ? null : Path.of(System.getProperty("keep"));

  private static long fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
  }

  private static long work(int depth) {
    if (depth > 0) return work(depth - 1);
    Map<Integer, Long> sums = new HashMap<>();
    for (int i = 0; i < 100; i++) sums.merge(i % 7, (long) i, Long::sum);
    return fibonacci(12) + sums.values().stream().mapToLong(Long::longValue).sum();
  }

  private static int overflow(int n) {
    return overflow(n + 1) + 1;
  }

  /** Until when a busy thread runs. */
  private record Quota(long end, long processorTime) {
    static Quota of(int busy, long milliseconds) {
      long nanoseconds = milliseconds * 1_000_000;
      int processors = Math.min(busy, Runtime.getRuntime().availableProcessors());
      long share = nanoseconds * processors / Math.max(busy, 1);
      return new Quota(System.nanoTime() + nanoseconds, share / 2);
    }

    boolean isUsed() {
      return System.nanoTime() >= end
          && THREADS.getCurrentThreadCpuTime() >= processorTime
          && !isKept();
    }
  }

  /**
   * None has its time over before the last one is there, however long other load lets that take.
   */
  private static void countDownAndWait(CountDownLatch latch) {
    latch.countDown();
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean isKept() {
    return KEEP != null && Files.exists(KEEP);
  }

  public static void main(String[] arguments) throws InterruptedException {
    int busy = Integer.parseInt(arguments[0]);
    int idle = Integer.parseInt(arguments[2]);
    int churn = Integer.parseInt(arguments[3]);
    int overflows = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 0;
    boolean[] wrong = new boolean[1];
    for (int i = 0; i < idle; i++) {
      Thread thread =
          new Thread(
              null,
              () -> {
                try {
                  Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException e) {
                  // It is to end.
                }
              },
              "idle",
              128 << 10);
      thread.setDaemon(true);
      thread.start();
    }
    long milliseconds = Long.parseLong(arguments[1]);
    CountDownLatch started = new CountDownLatch(busy);
    Thread[] threads = new Thread[busy];
    for (int i = 0; i < busy; i++) {
      threads[i] =
          new Thread(
              () -> {
                countDownAndWait(started);
                Quota quota = Quota.of(busy, milliseconds);
                do {
                  if (work(30) != 144 + 4950) wrong[0] = true;
                } while (!quota.isUsed());
              });
      threads[i].start();
    }
    for (int i = 0; i < churn || (churn > 0 && isKept()); i++) {
      Thread thread = new Thread(() -> work(10));
      thread.start();
      if (i % 8 == 7) thread.join();
    }
    for (int i = 0; i < overflows; i++) {
      try {
        overflow(0);
      } catch (StackOverflowError e) {
        continue;
      }
      wrong[0] = true;
    }
    for (Thread thread : threads) thread.join();
    System.out.println(wrong[0] ? "a result was wrong" : "all results were right");
    System.exit(wrong[0] ? 1 : 0);
  }
}
