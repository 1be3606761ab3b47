package framestorm;

import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import jdk.test.whitebox.WhiteBox;

/**
 * Brings methods to a chosen state of compilation, without warming up and waiting: every request is
 * made through WhiteBox and checked, and what cannot be reached is an {@link IllegalStateException}
 * that names it. Needs -XX:+WhiteBoxAPI and -XX:-BackgroundCompilation.
 */
final class Compiler {
  static final int C1 = 1;
  static final int C2 = 4;

  private static final int ATTEMPTS = 10;
  private static final int INVOCATION_ENTRY = -1;

  private final WhiteBox whiteBox;

  Compiler() {
    try {
      WhiteBox.registerNatives();
      whiteBox = new WhiteBox();
      // Registering prints a line for each native that WhiteBox does not declare, so the JVM is
      // started with -XX:-DisplayVMOutput; from here on its output is wanted again.
      whiteBox.setBooleanVMFlag("DisplayVMOutput", true);
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException(
          "WhiteBox is not available: the JVM needs -XX:+UnlockDiagnosticVMOptions"
              + " -XX:+WhiteBoxAPI and the victims on its boot class path",
          e);
    }
  }

  /** The only method of that name declared in {@code holder}. */
  static Method method(Class<?> holder, String name) {
    Method found = null;
    for (Method method : holder.getDeclaredMethods()) {
      if (method.getName().equals(name)) {
        if (found != null) {
          throw new IllegalStateException(holder.getName() + " has several methods " + name);
        }
        found = method;
      }
    }
    if (found == null) {
      throw new IllegalStateException(holder.getName() + " has no method " + name);
    }
    return found;
  }

  /** Compiles {@code method} at {@code tier}; it never runs at another tier afterwards. */
  void compile(Executable method, int tier) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (tier(method) == tier) {
        return;
      }
      if (whiteBox.isMethodCompiled0(method, false)) {
        whiteBox.deoptimizeMethod0(method, false);
        whiteBox.clearMethodState0(method);
      }
      whiteBox.enqueueMethodForCompilation0(method, tier, INVOCATION_ENTRY);
    }
    throw new IllegalStateException(
        "HotSpot did not compile "
            + nameOf(method)
            + " at tier "
            + tier
            + ", it is at "
            + tier(method));
  }

  /** {@link #compile}, and keeps it a frame of its own in compiled callers. */
  void compileSeparately(Executable method, int tier) {
    dontInline(method);
    compile(method, tier);
  }

  /** Compiles the wrapper of a native method, whatever tier this HotSpot gives wrappers. */
  void compileNativeWrapper(Executable method) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (whiteBox.isMethodCompiled0(method, false)) {
        return;
      }
      whiteBox.enqueueMethodForCompilation0(method, C1, INVOCATION_ENTRY);
    }
    throw new IllegalStateException("HotSpot did not compile a wrapper of " + nameOf(method));
  }

  /** Keeps {@code method} in the interpreter for good. */
  void interpretOnly(Executable method) {
    for (int tier = C1; tier <= C2; tier++) {
      whiteBox.makeMethodNotCompilable0(method, tier, false);
      whiteBox.makeMethodNotCompilable0(method, tier, true);
    }
    dontInline(method);
    if (whiteBox.isMethodCompiled0(method, false)) {
      whiteBox.deoptimizeMethod0(method, false);
    }
    if (tier(method) != 0) {
      throw new IllegalStateException(nameOf(method) + " stays compiled at tier " + tier(method));
    }
  }

  void dontInline(Executable method) {
    whiteBox.testSetDontInlineMethod0(method, true);
  }

  void forceInline(Executable method) {
    whiteBox.testSetForceInlineMethod0(method, true);
  }

  /** Marks every activation of the compiled {@code method} for deoptimisation. */
  void deoptimize(Executable method) {
    if (whiteBox.deoptimizeMethod0(method, false) == 0) {
      throw new IllegalStateException(nameOf(method) + " had no compiled code to deoptimise");
    }
  }

  private static String nameOf(Executable method) {
    return method.getDeclaringClass().getName() + "." + method.getName();
  }

  int tier(Executable method) {
    return whiteBox.getMethodCompilationLevel0(method, false);
  }

  int osrTier(Executable method) {
    return whiteBox.getMethodCompilationLevel0(method, true);
  }
}
