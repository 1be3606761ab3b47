package framestorm.workloads;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.ByteBuffer;

/**
 * Replaces a class by another version of itself while its methods are on the stack, compiled and
 * interpreted, of the thread that does it and of others: obsolete methods under the walker.
 */
public final class ClassRedefinition extends Workload {
  private static final int FRAMES = 12;
  private static final int CALLS = 4_000;

  private static volatile Instrumentation instrumentation;

  private int versions;
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
      last = look(worker, last);
    }
    if (worker.index() % 2 == 0) {
      redefined.recurse(
          FRAMES,
          () -> {
            redefine();
            worker.count("redefinitions", 1);
          });
      look(worker, last);
    }
  }

  /** The version that runs now; counted when it is another than the last. */
  private int look(Worker worker, int last) {
    int version = redefined.version();
    worker.count("new versions seen", version != last ? 1 : 0);
    return version;
  }

  /** One at a time: the last version is the one that stays. */
  private synchronized void redefine() {
    try {
      byte[] code = FreshLoader.bytes(Redefined.class.getName()).clone();
      int version = ++versions;
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
  boolean enough(Run run) {
    return run.counted("redefinitions") > 1;
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("redefinitions", 1);
    run.require("last version run", redefined.version(), versions);
    run.require("new versions seen", run.counted("redefinitions"));
  }
}
