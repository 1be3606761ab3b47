import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Where an agent is loaded it dies in native code after two seconds ("crash"), or never ends when
 * it is asked to ("hang"); without one it runs until it is asked to end, and does.
 */
public final class EndsBadly {
  private static volatile long count;

  private EndsBadly() {}

  public static void main(String[] arguments) throws Exception {
    // It may be asked to end soon, and the hook has to stand by then: JMX takes too long to start.
    boolean sampled = Files.readString(Path.of("/proc/self/cmdline")).contains("\0-agentpath:");
    boolean crashes = sampled && arguments[0].equals("crash");
    if (sampled && arguments[0].equals("hang")) {
      Object lock = new Object();
      Thread holder = new Thread(() -> keep(lock), "holder");
      holder.setDaemon(true);
      holder.start();
      Runtime.getRuntime().addShutdownHook(new Thread(() -> keep(lock), "waits-for-holder"));
    }
    long end = System.nanoTime() + 2_000_000_000L;
    while (!crashes || System.nanoTime() < end) {
      count++;
    }
    // What crashes a JVM in all releases, without a library.
    Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    unsafe.setAccessible(true);
    ((sun.misc.Unsafe) unsafe.get(null)).putAddress(0, 1);
  }

  private static void keep(Object lock) {
    synchronized (lock) {
      while (true) {
        count++;
      }
    }
  }
}
