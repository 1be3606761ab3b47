package framestorm;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Blocked on entering a monitor that another thread holds. */
final class MonitorBlocked extends Scenario {
  private final Object lock = new Object();
  private Thread holder;

  @Override
  void prepare(Compiler compiler) throws InterruptedException {
    // Also where -Xcomp would compile it: AsyncGetCallTrace gives nothing of a compiled method that
    // waits here, in a runtime stub, which frame::safe_for_sender never takes for complete.
    compiler.interpretOnly(Compiler.method(MonitorBlocked.class, "contend"));
    CountDownLatch held = new CountDownLatch(1);
    holder =
        new Thread(
            () -> {
              synchronized (lock) {
                held.countDown();
                while (!Harness.stopped) {
                  LockSupport.park();
                }
              }
            },
            "monitor-holder");
    holder.setDaemon(true);
    holder.start();
    held.await();
  }

  @Override
  void run() {
    contend();
  }

  private void contend() {
    enter();
    synchronized (lock) {
      leave();
    }
  }

  @Override
  Thread.State blockedState() {
    return Thread.State.BLOCKED;
  }

  @Override
  void release() {
    LockSupport.unpark(holder);
  }
}
