package framestorm.workloads;

/** One workload: one object a run, its iterations on several threads at once. */
abstract class Workload {
  /**
   * Once, before the workers start. Throws IllegalStateException with the reason when this JVM
   * cannot run it.
   */
  void prepare(Run run) throws Exception {}

  /** One unit of work, some milliseconds long, so that a run ends when it should. */
  abstract void iterate(Worker worker) throws Throwable;

  /**
   * Whether it has done enough of what it is named after for a run to end when its time is up,
   * which may be before its threads have started. Called rarely, by one worker at a time.
   */
  boolean enough(Run run) throws Exception {
    return run.iterations() > 0;
  }

  /** On each worker's thread after its last iteration. */
  void leave(Worker worker) throws Exception {}

  /**
   * Once, after the workers have ended: adds what the VM counted, and holds the counts to what the
   * workload is named after.
   */
  abstract void prove(Run run) throws Exception;
}
