package framestorm.workloads;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Replaces a class by another version of itself while its methods are on the stack, compiled and
 * interpreted, of the thread that does it and of others: obsolete methods under the walker.
 */
public final class ClassRedefinition extends Workload {
  private static final int FRAMES = 12;
  private static final int CALLS = 4_000;

  private static volatile Instrumentation instrumentation;

  private final AtomicInteger versions = new AtomicInteger();
  private final Redefined redefined = new Redefined();
  private volatile long sink;

  /** The JVM's call with -javaagent. */
  public static void premain(String arguments, Instrumentation given) {
    instrumentation = given;
  }

  @Override
  void prepare(Run run) {
    if (instrumentation == null) {
      throw new IllegalStateException("needs this jar as its agent: -javaagent:PATH");
    }
  }

  @Override
  void iterate(Worker worker) throws Exception {
    int last = redefined.version();
    for (int i = 0; i < CALLS; i++) {
      sink = redefined.recurse(FRAMES, null);
      int version = redefined.version();
      if (version != last) {
        worker.count("new versions seen", 1);
        last = version;
      }
    }
    if (worker.index() % 2 == 0) {
      redefined.recurse(
          FRAMES,
          () -> {
            redefine();
            worker.count("redefinitions", 1);
          });
    }
  }

  private void redefine() {
    try {
      byte[] code = FreshLoader.bytes(Redefined.class.getName()).clone();
      int version = versions.incrementAndGet();
      int changed = 0;
      ByteBuffer buffer = ByteBuffer.wrap(code);
      // The constant is nowhere else in the class file, and nothing else is at its place.
      for (int at = 0; at + 5 <= code.length; at++) {
        if (code[at] == Redefined.CONSTANT_INTEGER && buffer.getInt(at + 1) == Redefined.MARK) {
          buffer.putInt(at + 1, version);
          changed++;
        }
      }
      if (changed != 1) {
        throw new IllegalStateException("the version is in the class file " + changed + " times");
      }
      instrumentation.redefineClasses(new ClassDefinition(Redefined.class, code));
    } catch (ReflectiveOperationException | java.lang.instrument.UnmodifiableClassException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("redefinitions", 1);
    run.require("last version run", redefined.version(), versions.get());
    run.require("new versions seen", run.counted("redefinitions") / 2);
  }
}
