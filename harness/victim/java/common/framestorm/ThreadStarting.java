package framestorm;

/** Threads to be halted while the VM sets them up. */
final class ThreadStarting extends Churn {}
