package framestorm;

/**
 * A program point a victim is brought to. One instance per victim. The class is found by name:
 * scenario {@code c2-inlined} is {@code framestorm.C2Inlined}.
 */
abstract class Scenario {
  /** Where busy scenarios leave their results, so that no compiler drops the work. */
  volatile long sink;

  /** How many victims of this scenario there were before this one. */
  int index;

  private volatile String name;
  private volatile boolean entered;
  private volatile Throwable failure;

  /** Brings the code to its state of compilation; on the starting thread. */
  abstract void prepare(Compiler compiler) throws Throwable;

  /**
   * Enters the program point, on the victim: calls {@link #enter} as deep as it can, stays until
   * {@link Harness#stopped}, calls {@link #leave}.
   */
  abstract void run() throws Throwable;

  /** The thread to run {@code victim} on, not yet started. */
  Thread thread(Victim victim) {
    return victim;
  }

  /** Stack size to ask for, in bytes; 0 for the JVM's default. */
  long stackBytes() {
    return 0;
  }

  /** The state the victim's thread has at the program point, or null when it is just running. */
  Thread.State blockedState() {
    return null;
  }

  /**
   * Whether the victim is at the program point; on the starting thread. Where that is in a method
   * called after {@link #enter}, it is not enough that this has returned: the thread may stay
   * before the call for as long as the kernel or a suspension keeps it there.
   */
  boolean isAtPoint() {
    return entered;
  }

  /** Undoes what keeps the victim blocked, once {@link Harness#stopped} is set. */
  void release() {}

  /** To be called at the program point: the calling OS thread is the victim. */
  final void enter() {
    Harness.enter(name);
    entered = true;
  }

  /** To be called before the program point is left. */
  final void leave() {
    Harness.leave();
  }

  final String name() {
    return name;
  }

  final void named(String scenarioName, int victimIndex) {
    name = scenarioName;
    index = victimIndex;
  }

  final Throwable failure() {
    return failure;
  }

  final void failed(Throwable cause) {
    failure = cause;
  }
}
