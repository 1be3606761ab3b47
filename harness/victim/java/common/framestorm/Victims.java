package framestorm;

import java.util.ArrayList;
import java.util.List;

/** Starts and stops victims; called by the harness. */
public final class Victims {
  private static final long REACH_NANOS = 60_000_000_000L;
  private static final long JOIN_MILLIS = 10_000;
  private static final long WHILE_STARTING = 10;

  private static final List<Scenario> scenarios = new ArrayList<>();
  private static final List<Thread> threads = new ArrayList<>();
  private static Compiler compiler;

  private Victims() {}

  /**
   * Starts a victim and returns once it is at its program point. For virtual scenarios the thread
   * returned is the virtual one; its carrier is the thread that called {@link Harness#enter}.
   *
   * @param index how many victims of this scenario there are already
   * @throws IllegalStateException when the point cannot be reached, with the reason
   */
  public static synchronized Thread start(String scenarioName, int index) {
    String reason = unavailableReason(scenarioName);
    if (reason != null) {
      throw new IllegalStateException(scenarioName + ": " + reason);
    }
    try {
      if (compiler == null) {
        compiler = new Compiler();
      }
      compiler.multiplyThresholds(WHILE_STARTING);
      Scenario scenario =
          (Scenario) scenarioClass(scenarioName).getDeclaredConstructor().newInstance();
      scenario.named(scenarioName, index);
      scenario.prepare(compiler);
      Victim victim = new Victim(scenario, scenarioName + "-" + index, scenario.stackBytes());
      Thread thread = scenario.thread(victim);
      thread.start();
      scenarios.add(scenario);
      threads.add(thread);
      awaitPoint(scenario, thread);
      return thread;
    } catch (Throwable e) {
      throw new IllegalStateException(scenarioName + ": " + reasonOf(e), e);
    } finally {
      if (compiler != null) {
        compiler.multiplyThresholds(1);
      }
    }
  }

  /**
   * Compiles one more method. HotSpot's service thread tells of compiled methods some time later,
   * and in their order: who has heard of {@code Compiler.last} has heard of those before.
   *
   * @return whether this JVM compiles
   */
  public static synchronized boolean compileLast() {
    return compiler != null && compiler.compileLast();
  }

  /** Why the scenario does not exist on this JDK, or null when it does. */
  public static String unavailableReason(String scenarioName) {
    try {
      scenarioClass(scenarioName);
      return null;
    } catch (ClassNotFoundException e) {
      int feature = Runtime.version().feature();
      return feature < 22
          ? "needs JDK 22 or later, this is " + feature
          : "the victims' classes have no " + className(scenarioName);
    } catch (LinkageError e) {
      return reasonOf(e);
    }
  }

  /**
   * Sets {@link Harness#stopped} and waits for the victims to end, a bounded time each. The harness
   * must have released {@link Harness#spinInNative} and {@link Harness#churnPermit} before.
   */
  public static synchronized void stopAll() throws InterruptedException {
    Harness.stopped = true;
    for (Scenario scenario : scenarios) {
      scenario.release();
    }
    for (Thread thread : threads) {
      thread.interrupt();
    }
    for (Thread thread : threads) {
      thread.join(JOIN_MILLIS);
    }
    scenarios.clear();
    threads.clear();
    Harness.stopped = false;
  }

  private static void awaitPoint(Scenario scenario, Thread thread) {
    Thread.State blocked = scenario.blockedState();
    long deadline = System.nanoTime() + REACH_NANOS;
    while (!scenario.isAtPoint() || (blocked != null && thread.getState() != blocked)) {
      Throwable failure = scenario.failure();
      if (failure != null) {
        throw new IllegalStateException(reasonOf(failure), failure);
      }
      if (!thread.isAlive() && !scenario.isAtPoint()) {
        throw new IllegalStateException("the victim ended before its program point");
      }
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException(
            "the victim did not reach its program point within 60 s, it is " + thread.getState());
      }
      Harness.glance();
    }
  }

  private static Class<?> scenarioClass(String scenarioName) throws ClassNotFoundException {
    return Class.forName(className(scenarioName));
  }

  private static String className(String scenarioName) {
    StringBuilder name = new StringBuilder("framestorm.");
    for (String word : scenarioName.split("-")) {
      name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
    }
    return name.toString();
  }

  private static String reasonOf(Throwable e) {
    return e instanceof IllegalStateException && e.getMessage() != null
        ? e.getMessage()
        : e.toString();
  }
}
