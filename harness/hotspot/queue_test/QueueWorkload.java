import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Leaves frames in all ways there are, for as many seconds as its argument says. */
public class QueueWorkload {
  interface Shape {
    int sides(int n);
  }

  static final class Loaded implements Shape {
    public int sides(int n) {
      return n + 1;
    }
  }

  static final int DEPTH = 450;
  static volatile long sink;
  static final MethodHandle HANDLE = handle();

  static MethodHandle handle() {
    try {
      MethodType type = MethodType.methodType(int.class, int.class, int.class);
      return MethodHandles.lookup().findStatic(QueueWorkload.class, "leaf", type);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  static int leaf(int a, int b) {
    int sum = a;
    for (int i = 0; i < 40; i++) sum = sum * 31 + (b ^ i);
    return sum;
  }

  static int recursion(int depth) {
    return depth == 0 ? leaf(depth, 3) : recursion(depth - 1) + leaf(depth, 1);
  }

  static int thrower(int n) throws Exception {
    if (n == 0) throw new Exception("x");
    int below = n % 3 == 0 ? caught(n - 1) : thrower(n - 1);
    return below + leaf(n, below);
  }

  static int caught(int n) throws Exception {
    try {
      return thrower(n);
    } catch (Exception e) {
      if (n % 2 == 0) throw e;
      return leaf(n, 7) + implicit(n);
    }
  }

  static int implicit(int n) {
    int[] array = n % 2 == 0 ? null : new int[1];
    try {
      return array[n % 3];
    } catch (RuntimeException e) {
      return leaf(n, 5);
    }
  }

  static int replacedOnStack(int rounds) {
    int sum = 0;
    for (int i = 0; i < rounds; i++) sum += leaf(i, sum);
    return sum;
  }

  static int deoptimised(Shape shape, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += shape.sides(i);
    return sum;
  }

  static int natives(int n) throws Exception {
    char[] from = new char[600];
    char[] to = new char[600];
    System.arraycopy(from, 0, to, n % 10, 500);
    Object copy = new int[][] {{n}}.clone();
    Thread.currentThread().isAlive();
    if (n % 50 == 0) Thread.sleep(0, 200_000);
    if (n % 70 == 0) LockSupport.parkNanos(100_000);
    return copy.hashCode() + to[3] + Thread.activeCount();
  }

  static synchronized int locked(int n) {
    return leaf(n, 2);
  }

  static void work(long end) {
    int n = 0;
    while (System.nanoTime() < end) {
      n++;
      try {
        sink += recursion(n % 60) + caught(n % 17) + replacedOnStack(n % 300);
        sink += natives(n) + locked(n);
        sink += (int) HANDLE.invokeExact(n, 4);
        sink += deoptimised(n % 1000 < 500 ? x -> x + 2 : new Loaded(), n % 90);
        sink += List.of(1, 2, n).stream().mapToInt(x -> leaf(x, 9)).sum();
      } catch (Throwable e) {
        sink++;
      }
    }
  }

  /** More than HotSpot thaws at once: behind a yield at the bottom most of them stay frozen. */
  static int down(int depth) {
    return depth == 0 ? bottom() : down(depth - 1) + leaf(depth, 1);
  }

  static int bottom() {
    Thread.yield();
    int sum = leaf(1, 2);
    LockSupport.parkNanos(1000);
    for (int i = 0; i < 200; i++) sum += leaf(i, sum);
    return sum;
  }

  static void virtual(long end) {
    int n = 0;
    while (System.nanoTime() < end) {
      sink += recursion(n++ % 30);
      if (n % 3 == 0) sink += down(DEPTH);
      if (n % 20 == 0) Thread.yield();
      if (n % 100 == 0) LockSupport.parkNanos(50_000);
    }
  }

  /** Never leaves its carrier. */
  static void busy(long end) {
    while (System.nanoTime() < end) sink += recursion(20);
  }

  public static void main(String[] args) throws Exception {
    long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; i++) threads.add(Thread.ofPlatform().start(() -> work(end)));
    long middle = (System.nanoTime() + end) / 2;
    threads.add(Thread.ofVirtual().start(() -> busy(middle)));
    for (int i = 0; i < 3; i++) threads.add(Thread.ofVirtual().start(() -> virtual(end)));
    while (System.nanoTime() < end) {
      Thread brief = new Thread(() -> sink += replacedOnStack(2000));
      brief.start();
      brief.join();
    }
    for (Thread thread : threads) thread.join();
  }
}
