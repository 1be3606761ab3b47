package framestorm;

/** The native side of the harness; every method here is bound by RegisterNatives at JVM start. */
public final class Harness {
  private Harness() {}

  /** Set once, by {@link Victims#stopAll}: victims leave their program points. */
  public static volatile boolean stopped;

  /** The calling OS thread is the victim of this scenario from now on. */
  static native void enter(String scenario);

  /** The calling OS thread is no victim any more. */
  static native void leave();

  /**
   * Whether the victim of this scenario is in C code that runs until the harness stops its victims.
   */
  static native boolean isSpinning(String scenario);

  /** Spins in C until the harness stops its victims. */
  static native void spinInNative();

  /** The same, below C code with unusual unwind tables, and some with none and a frame pointer. */
  static native void spinBelowUntabled();

  /** The same, below C frames each of which ends in its call. */
  static native void spinBelowNoReturn();

  /** Counts in C for a moment. */
  static native void countInNative();

  /** Calls {@code runnable.run()} from C. */
  static native void callBack(Runnable runnable);

  /** Address of the C function {@code void (void)} that spins as {@link #spinInNative} does. */
  static native long spinAddress();

  /** Whether a read of 16 bytes from the string's first one goes on into the next page. */
  static native boolean isAtPageEnd(String string);

  /** From here on the calling thread runs instruction by instruction, if the harness wants that. */
  static native void beginStepping();

  /** The calling thread runs at full speed again. */
  static native void endStepping();

  /** Blocks until the harness wants another short thread, or is stopping. */
  static native void churnPermit();

  /** Opens a package to a module, as --add-opens does. */
  static native void open(Module module, String packageName, Module to);

  /**
   * Waits for a moment. Where a thread yields over and over, Linux 6.18 may keep others from a core
   * for 300 ms: the one that tells of compiled code, too. It is no method of Java's, which would be
   * compiled for the victims that call it.
   */
  static native void glance();
}
