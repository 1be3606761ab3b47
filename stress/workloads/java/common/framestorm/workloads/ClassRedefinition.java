package framestorm.workloads;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.ByteBuffer;

/**
 * Replaces classes by other versions of themselves while their methods are on the stack, compiled
 * and interpreted, of the thread that does it and of others: obsolete methods under the walker, and
 * threads that stand still while one class after the other is being replaced.
 */
public final class ClassRedefinition extends Workload {
  private static final int CLASSES = 24;
  private static final int CALLS = 2_000;

  /** Each that a class has had stays in its constant pool, which has room for 65,535. */
  private static final int VERSIONS = 100;

  private static volatile Instrumentation instrumentation;

  private final Versioned[] all = new Versioned[CLASSES];
  private int version;
  private volatile long sink;

  /** The JVM's call with -javaagent. */
  public static void premain(String arguments, Instrumentation given) {
    instrumentation = given;
  }

  @Override
  void prepare(Run run) throws ReflectiveOperationException {
    if (instrumentation == null) {
      throw new IllegalStateException("needs this jar as its agent: -javaagent:PATH");
    }
    for (int i = 0; i < all.length; i++) {
      all[i] = FreshLoader.copyOf(Redefined.class, Versioned.class);
    }
  }

  @Override
  void iterate(Worker worker) throws Exception {
    int last = all[0].version();
    for (int i = 0; i < CALLS; i++) {
      sink = all[0].descend(all, 1, null);
      last = look(worker, last);
    }
    if (worker.index() % 2 == 0) {
      all[0].descend(
          all,
          1,
          () -> {
            redefine();
            worker.count("redefinitions", 1);
          });
      look(worker, last);
    }
  }

  /** The version that runs now; counted when it is another than the last. */
  private int look(Worker worker, int last) {
    int version = all[0].version();
    worker.count("new versions seen", version != last ? 1 : 0);
    return version;
  }

  /** One at a time: the last version is the one that stays. */
  private synchronized void redefine() {
    try {
      byte[] code = FreshLoader.bytes(Redefined.class.getName()).clone();
      version = version % VERSIONS + 1;
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
      ClassDefinition[] definitions = new ClassDefinition[all.length];
      for (int i = 0; i < all.length; i++) {
        definitions[i] = new ClassDefinition(all[i].getClass(), code);
      }
      instrumentation.redefineClasses(definitions);
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
    for (Versioned one : all) {
      if (one.version() != version) {
        throw new NotDone("version " + one.version() + " runs, the last is " + version);
      }
    }
    run.require("new versions seen", run.counted("redefinitions"));
  }
}
