package framestorm;

import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jdk.test.whitebox.WhiteBox;

/**
 * Brings methods to a chosen state of compilation, without warming up and waiting: every request is
 * made through WhiteBox and checked, and what cannot be reached is an {@link IllegalStateException}
 * that names it. Needs -XX:+WhiteBoxAPI and -XX:-BackgroundCompilation.
 */
final class Compiler {
  static final int C1 = 1;
  static final int C2 = 4;

  /** How often a method is called before HotSpot compiles it by itself. */
  private static final List<String> CALL_THRESHOLDS =
      List.of(
          "Tier3InvocationThreshold",
          "Tier3CompileThreshold",
          "Tier4InvocationThreshold",
          "Tier4CompileThreshold");

  private static final int ATTEMPTS = 10;
  private static final int INVOCATION_ENTRY = -1;

  private final WhiteBox whiteBox;
  private final boolean hasC1;
  private final boolean hasC2;
  private final Map<String, Long> thresholds = new HashMap<>();

  Compiler() {
    try {
      WhiteBox.registerNatives();
      whiteBox = new WhiteBox();
      hasC1 = canCompile("sampleForC1", C1);
      hasC2 = canCompile("sampleForC2", C2);
      // Registering prints a line for each native that WhiteBox does not declare, and so do
      // requests for a compiler that is not there: the JVM is started with -XX:-DisplayVMOutput,
      // and from here on its output is wanted again.
      whiteBox.setBooleanVMFlag("DisplayVMOutput", true);
      for (String name : CALL_THRESHOLDS) {
        Long value = whiteBox.getIntxVMFlag(name);
        if (value != null) { // a JVM that only interprets has none
          thresholds.put(name, value);
        }
      }
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException(
          "WhiteBox is not available: the JVM needs -XX:+UnlockDiagnosticVMOptions"
              + " -XX:+WhiteBoxAPI and the victims on its boot class path",
          e);
    }
  }

  /**
   * A method has to be called {@code factor} times as often as the JVM's options say before HotSpot
   * compiles it by itself. What starts a victim runs once: compiling it takes a quarter of a JVM's
   * start.
   */
  void multiplyThresholds(long factor) {
    thresholds.forEach((name, value) -> whiteBox.setIntxVMFlag(name, value * factor));
  }

  /** Whether this JVM compiles at {@code tier}: -Xint, TieredStopAtLevel and others forbid it. */
  boolean has(int tier) {
    return tier == C1 ? hasC1 : hasC2;
  }

  /** The highest tier that this JVM compiles at; 0 when it only interprets. */
  int highestTier() {
    return hasC2 ? C2 : hasC1 ? C1 : 0;
  }

  /** For scenarios that only one compiler's code can bring about. */
  void require(int tier) {
    if (!has(tier)) {
      throw new IllegalStateException(
          "needs " + (tier == C1 ? "C1" : "C2") + "; this JVM has " + describe());
    }
  }

  /** For scenarios that need compiled code, whoever's it is. */
  void requireCompiled() {
    if (highestTier() == 0) {
      throw new IllegalStateException("needs compiled code; this JVM has " + describe());
    }
  }

  private String describe() {
    return hasC1 ? "only C1" : hasC2 ? "only C2" : "only its interpreter";
  }

  private boolean canCompile(String sample, int tier) {
    Method method = method(Compiler.class, sample);
    whiteBox.enqueueMethodForCompilation0(method, tier, INVOCATION_ENTRY);
    return tier(method) == tier;
  }

  private static int sampleForC1(int x) {
    return x + 1;
  }

  private static int sampleForC2(int x) {
    return x + 1;
  }

  /** See {@link Victims#compileLast}. */
  boolean compileLast() {
    if (highestTier() == 0) {
      return false;
    }
    compile(method(Compiler.class, "last"), hasC1 ? C1 : C2);
    return true;
  }

  private static int last(int x) {
    return x + 1;
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

  /**
   * {@link #compileSeparately} for scenarios that are what they are at any tier: at the other
   * compiler's where this JVM lacks the one, interpreted where it has neither.
   */
  void compileAnyway(Executable method, int preferred) {
    if (highestTier() == 0) {
      interpretOnly(method);
    } else {
      compileSeparately(method, has(preferred) ? preferred : highestTier());
    }
  }

  /**
   * Compiles the wrapper of a native method, whatever tier this HotSpot gives wrappers; leaves it
   * to an interpreter that is alone.
   */
  void compileNativeWrapper(Executable method) {
    if (highestTier() == 0) {
      return;
    }
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (whiteBox.isMethodCompiled0(method, false)) {
        return;
      }
      whiteBox.enqueueMethodForCompilation0(method, hasC1 ? C1 : C2, INVOCATION_ENTRY);
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

  /**
   * For a method that does no more than return its own class: without an interpreter (-Xcomp), C2
   * inlines only methods of classes that the constant pool of the caller has resolved
   * (InlineTree::pass_initial_checks), and compiled code has no need to resolve its own.
   */
  void resolveOwnClass(Class<?> holder) throws ReflectiveOperationException {
    Method method = method(holder, "ownClass");
    interpretOnly(method);
    method.setAccessible(true);
    if (method.invoke(null) != holder) {
      throw new IllegalStateException(nameOf(method) + " does not return its own class");
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
