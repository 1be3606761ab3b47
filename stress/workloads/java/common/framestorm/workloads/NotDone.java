package framestorm.workloads;

/** A workload did not do what it is named after. */
final class NotDone extends Exception {
  private static final long serialVersionUID = 1;

  NotDone(String what) {
    super("did not do what it is named after: " + what);
  }
}
