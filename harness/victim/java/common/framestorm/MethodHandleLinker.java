package framestorm;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * An interpreted method below a method handle's linker (linkToSpecial), which has popped its last
 * argument: the interpreted caller's sp is a word above what the callee has noted of it.
 */
final class MethodHandleLinker extends Scenario {
  private java.lang.invoke.MethodHandle handle;
  private boolean called;

  @Override
  void prepare(Compiler compiler) throws ReflectiveOperationException {
    compiler.interpretOnly(Compiler.method(MethodHandleLinker.class, "spin"));
    compiler.interpretOnly(Compiler.method(MethodHandleLinker.class, "loop"));
    handle =
        MethodHandles.lookup()
            .findVirtual(MethodHandleLinker.class, "spin", MethodType.methodType(void.class));
  }

  @Override
  void run() throws Throwable {
    handle.invokeExact(this);
  }

  @Override
  boolean isAtPoint() {
    return sink != 0; // call() is left
  }

  private void spin() {
    called = false;
    enter();
    loop();
    leave();
  }

  // Its first bytecode is come to again after another one has called.
  private void loop() {
    do {
      if (!called) call();
      sink = sink * 31 + 7;
    } while (!Harness.stopped);
  }

  private void call() {
    called = true;
  }
}
