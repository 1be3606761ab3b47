package framestorm;

import java.util.concurrent.CountDownLatch;

/**
 * C1's code enters and leaves a monitor for which the VM is needed: behind a call that has caught
 * an exception, and in the handler of an exception.
 */
final class C1Monitor extends Scenario {
  private static final RuntimeException THROWN = new RuntimeException("framestorm");

  // Someone waits for it, so that its object's header never says all about it.
  private final Object lock = new Object();
  private int count;

  @Override
  void prepare(Compiler compiler) throws InterruptedException {
    compiler.require(Compiler.C1);
    compiler.compileAnyway(Compiler.method(C1Monitor.class, "throwing"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(C1Monitor.class, "catching"), Compiler.C2);
    compiler.compileSeparately(Compiler.method(C1Monitor.class, "locking"), Compiler.C1);
    compiler.compileSeparately(Compiler.method(C1Monitor.class, "handling"), Compiler.C1);
    compiler.compileSeparately(Compiler.method(C1Monitor.class, "loop"), Compiler.C1);
    CountDownLatch waits = new CountDownLatch(1);
    Thread waiter =
        new Thread(
            () -> {
              synchronized (lock) {
                waits.countDown();
                while (!Harness.stopped) {
                  try {
                    lock.wait();
                  } catch (InterruptedException e) {
                    return;
                  }
                }
              }
            },
            "monitor-waiter");
    waiter.setDaemon(true);
    waiter.start();
    waits.await();
    // Who gets it now gets it from the one that waits.
    synchronized (lock) {
      count = 1;
    }
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    enter();
    while (!Harness.stopped) {
      catching();
      locking();
      handling();
    }
    sink = count;
    leave();
  }

  private void catching() {
    try {
      throwing();
    } catch (RuntimeException e) {
      count++;
    }
  }

  private void throwing() {
    throw THROWN;
  }

  private void locking() {
    synchronized (lock) {
      count++;
    }
  }

  private void handling() {
    try {
      throw THROWN;
    } catch (RuntimeException e) {
      synchronized (lock) {
        count++;
      }
    }
  }
}
