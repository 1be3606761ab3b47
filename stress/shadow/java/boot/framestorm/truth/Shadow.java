package framestorm.truth;

import jdk.internal.misc.Unsafe;

/**
 * What instrumented methods call: pushes and pops entries of the calling thread's shadow stack,
 * which is native memory (shadow_stack.h has the layout). On the boot class path, so that every
 * class sees it.
 *
 * <p>The stack is that of the logical thread, so that a virtual thread keeps its own on every
 * carrier. It is found by the thread's number in a table; what is found there is asked whose it is.
 */
public final class Shadow {
  private static final Unsafe UNSAFE = Unsafe.getUnsafe();
  private static final long NUMBER = UNSAFE.objectFieldOffset(Thread.class, "tid");
  private static final long TABLE = table();
  private static final long MASK = (1 << 16) - 1;
  // Of shadow_stack.h.
  private static final long OWNER = 0,
      ENTRIES = 8,
      DEPTH = 16,
      LIMIT = 20,
      SERIAL = 24,
      IS_VIRTUAL = 28;

  private Shadow() {}

  /**
   * Pushes a method and returns what exit() is to be given: how deep the stack was; -1: nothing was
   * pushed.
   */
  public static int enter(int method) {
    long number = UNSAFE.getLong(Thread.currentThread(), NUMBER);
    long stack = UNSAFE.getLong(TABLE + ((number & MASK) << 3));
    int depth = UNSAFE.getInt(stack + DEPTH);
    // A stack that is due for a check, or full, has a limit that is reached.
    if (UNSAFE.getLong(stack + OWNER) != number || depth >= UNSAFE.getInt(stack + LIMIT)) {
      return slowEnter(number, method);
    }
    int serial = UNSAFE.getInt(stack + SERIAL) + 1;
    UNSAFE.putInt(stack + SERIAL, serial);
    UNSAFE.putLong(
        UNSAFE.getLong(stack + ENTRIES) + ((long) depth << 3), (long) serial << 32 | method);
    // The entry is there before the depth says so. The fences order what a compiler makes of this.
    UNSAFE.storeFence();
    UNSAFE.putInt(stack + DEPTH, depth + 1);
    UNSAFE.storeFence();
    return depth;
  }

  /** The stack is `depth` entries deep again, whatever was left above by exceptions. */
  public static void exit(int depth) {
    long number = UNSAFE.getLong(Thread.currentThread(), NUMBER);
    long stack = UNSAFE.getLong(TABLE + ((number & MASK) << 3));
    if (UNSAFE.getLong(stack + OWNER) != number
        || depth <= 0 && UNSAFE.getInt(stack + IS_VIRTUAL) != 0) {
      slowExit(number, depth);
      return;
    }
    if (depth < 0) return;
    UNSAFE.storeFence();
    UNSAFE.putInt(stack + DEPTH, depth);
    UNSAFE.storeFence();
  }

  /** In an exception's handler of the method that enter() gave `depth` to. */
  public static void caught(int depth) {
    if (depth >= 0) exit(depth + 1);
  }

  /** The number of a method; the same for the same name, whatever its class's loader. */
  static native int number(String owner, String name, String descriptor);

  /**
   * Bytecode indices: where it pushes itself, and of its calls, with the names of the methods that
   * are called there, null for any.
   */
  static native void describe(int method, int push, int[] indices, String[] callees);

  private static native long table();

  private static native int slowEnter(long thread, int method);

  private static native void slowExit(long thread, int depth);
}
