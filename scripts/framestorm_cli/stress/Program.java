/** Two threads with a known stack; what a test changes in its classes makes their traces wrong. */
public final class Program {
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
    long end = System.nanoTime() + 1_500_000_000L;
    while (System.nanoTime() < end) {
      sink++;
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
