import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Two threads with a known stack; what a test changes in its classes makes their traces wrong. */
public final class Program {
  // By processor time: on a busy machine the program runs longer, so that it is sampled as often.
  static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  static volatile long sink;

  static final class Spinner extends Thread {
    @Override
    public void run() {
      outer();
    }
  }

  static void outer() {
    inner();
  }

  static void inner() {
    long end = THREADS.getCurrentThreadCpuTime() + 1_500_000_000L;
    while (THREADS.getCurrentThreadCpuTime() < end) {
      for (int i = 0; i < 1_000_000; i++) {
        sink++;
      }
    }
  }

  static void other() {}

  public static void main(String[] arguments) throws InterruptedException {
    Spinner spinner = new Spinner();
    spinner.start();
    outer();
    spinner.join();
  }
}
