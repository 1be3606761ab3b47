package framestorm.workloads;

/** The platform thread that a virtual thread is mounted on. */
final class Carrier {
  private Carrier() {}

  /** "VirtualThread[#22,name]/runnable@ForkJoinPool-1-worker-1": what is behind the @. */
  static String ofThis() {
    String text = Thread.currentThread().toString();
    return text.substring(text.indexOf('@') + 1);
  }
}
