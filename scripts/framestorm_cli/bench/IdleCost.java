import com.sun.management.OperatingSystemMXBean;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * What a JVM does that framestorm's additions have a part in, while nobody profiles. Prints a line
 * for each: its name, and the nanoseconds of one. They are the process's processor time over all
 * batches, which other processes change least; of what waits for other threads, time by the clock
 * in the best batch.
 */
public final class IdleCost {
  private static final int BATCHES = 7;
  private static final int PARKED = 50;

  private static volatile boolean stop;

  /** What is loaded again and again. */
  static final class Loaded {
    static int twice(int number) {
      return 2 * number;
    }
  }

  private static final class Loader extends ClassLoader {
    Class<?> define(byte[] bytes) {
      Class<?> defined = defineClass(null, bytes, 0, bytes.length);
      resolveClass(defined);
      return defined;
    }
  }

  private interface Work {
    void run(int times) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    int scale = Integer.parseInt(args[0]);
    byte[] bytes;
    try (InputStream in = IdleCost.class.getResourceAsStream("IdleCost$Loaded.class")) {
      bytes = in.readAllBytes();
    }
    List<Class<?>> loaded = new ArrayList<>();
    Work load =
        times -> {
          for (int i = 0; i < times; i++) {
            loaded.add(new Loader().define(bytes));
          }
        };
    measure("thread", 20 * scale, IdleCost::startThreads, () -> {});
    measure(
        "class-load",
        20 * scale,
        load,
        () -> {
          loaded.clear();
          System.gc();
        });
    int unloaded = 20 * scale;
    measure(
        "class-unload",
        unloaded,
        times -> System.gc(),
        () -> {
          loaded.clear();
          System.gc();
          load.run(unloaded);
          loaded.clear();
        });
    for (int i = 0; i < PARKED; i++) {
      start(LockSupport::park);
    }
    ThreadMXBean bean = ManagementFactory.getThreadMXBean();
    measureByClock(
        "safepoint",
        20 * scale,
        times -> {
          for (int i = 0; i < times; i++) {
            bean.findDeadlockedThreads();
          }
        });
    Thread running = start(IdleCost::spin);
    measureByClock(
        "handshake",
        2 * scale,
        times -> {
          for (int i = 0; i < times; i++) {
            running.getStackTrace();
          }
        });
    stop = true;
  }

  private interface Preparation {
    void run() throws Exception;
  }

  /** {@code before} is not timed. */
  private static void measure(String name, int times, Work work, Preparation before)
      throws Exception {
    OperatingSystemMXBean process =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    double all = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
      before.run();
      long begin = process.getProcessCpuTime();
      work.run(times);
      all += process.getProcessCpuTime() - begin;
    }
    System.out.println(name + " " + all / BATCHES / times);
  }

  private static void measureByClock(String name, int times, Work work) throws Exception {
    double best = Double.MAX_VALUE;
    for (int batch = 0; batch < BATCHES; batch++) {
      long begin = System.nanoTime();
      work.run(times);
      best = Math.min(best, (double) (System.nanoTime() - begin) / times);
    }
    System.out.println(name + " " + best);
  }

  private static void startThreads(int times) throws InterruptedException {
    for (int i = 0; i < times; i++) {
      Thread thread = new Thread(() -> {});
      thread.start();
      thread.join();
    }
  }

  private static Thread start(Runnable body) {
    Thread thread =
        new Thread(
            () -> {
              while (!stop) {
                body.run();
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private static void spin() {
    int x = 1;
    for (int i = 0; i < 1_000_000 && !stop; i++) {
      x = x * 31 + 7;
    }
  }
}
