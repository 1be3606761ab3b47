package framestorm;

/** Threads to be halted while the VM takes them down. */
final class ThreadExiting extends Churn {}
