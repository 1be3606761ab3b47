package framestorm;

/** Inside a static initialiser that does not end. */
public final class ClassInit extends Scenario {
  private static Scenario initializing;

  @Override
  void prepare(Compiler compiler) {
    initializing = this;
    compiler.compileAnyway(Compiler.method(ClassInit.class, "spin"), Compiler.C2);
  }

  @Override
  void run() throws Exception {
    trigger();
  }

  private void trigger() throws Exception {
    Class.forName(Running.class.getName(), true, new Copies(Running.class.getName()));
  }

  /** Called by the static initialiser of {@link Running}, which is in another run-time package. */
  public static void spin() {
    initializing.enter();
    long x = 1;
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    initializing.sink = x;
    initializing.leave();
  }

  /** Initialised once per class loader, so each victim has a loader of its own. */
  public static final class Running {
    static {
      spin();
    }
  }
}
