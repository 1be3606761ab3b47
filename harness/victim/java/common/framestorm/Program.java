package framestorm;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/** Runs another program's main method on a thread of its own. */
public final class Program {
  private Program() {}

  /** It has returned, or has called {@link System#exit}. */
  static volatile boolean over;

  static void start(String mainClass, String[] arguments) throws ReflectiveOperationException {
    ClassLoader loader = ClassLoader.getSystemClassLoader();
    Method main = Class.forName(mainClass, true, loader).getMethod("main", String[].class);
    // The harness ends the process, once it has written what it has seen.
    Runtime.getRuntime().addShutdownHook(new Thread(Program::stay));
    Thread thread = new Thread(() -> run(main, arguments), "main");
    thread.setContextClassLoader(loader);
    thread.start();
  }

  private static void run(Method main, String[] arguments) {
    try {
      main.invoke(null, (Object) arguments);
    } catch (InvocationTargetException e) {
      e.getCause().printStackTrace();
    } catch (IllegalAccessException e) {
      e.printStackTrace();
    } finally {
      over = true;
    }
  }

  private static void stay() {
    over = true;
    while (true) {
      LockSupport.park();
    }
  }
}
