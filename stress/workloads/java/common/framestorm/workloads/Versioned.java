package framestorm.workloads;

/** A class that is replaced by other versions of itself, in many copies. */
public interface Versioned {
  int version();

  /** Calls the next of `all` on the stack, and at the end of them that. */
  long descend(Versioned[] all, int next, Runnable atTheEnd);
}
