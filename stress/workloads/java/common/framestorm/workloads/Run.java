package framestorm.workloads;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** One run of a workload: when it ends, and what it did. Used by all workers. */
final class Run {
  /** A run whose time is up goes on for what its workload has to show, until it has used this. */
  private static final long MOST_CPU_NANOS = 30_000_000_000L;

  private static final long BETWEEN_LOOKS_NANOS = 100_000_000;

  private final Options options;
  private final Workload workload;
  private final Map<String, LongAdder> work = new ConcurrentHashMap<>();
  private final AtomicLong tickets = new AtomicLong();
  private final LongAdder iterations = new LongAdder();
  private final AtomicLong ended = new AtomicLong();
  private volatile Throwable failure;
  private volatile boolean enough;
  private long nextLook;
  private long began;
  private long deadline;

  Run(Options options, Workload workload) {
    this.options = options;
    this.workload = workload;
  }

  Options options() {
    return options;
  }

  void begin() {
    began = System.nanoTime();
    deadline = began + (long) (options.seconds() * 1e9);
    nextLook = deadline;
  }

  /** Whether it had not ended before. */
  boolean end() {
    return ended.compareAndSet(0, System.nanoTime());
  }

  double seconds() {
    return (ended.get() - began) / 1e9;
  }

  /** Whether there is another iteration for a worker. */
  boolean next() throws Exception {
    if (failure != null || over() && enough()) {
      return false;
    }
    return options.iterations() == 0 || tickets.getAndIncrement() < options.iterations();
  }

  /** Whether the run's time is up. */
  boolean over() {
    return options.seconds() > 0 && System.nanoTime() - deadline >= 0;
  }

  private boolean enough() throws Exception {
    if (enough) {
      return true;
    }
    synchronized (this) {
      long now = System.nanoTime();
      if (!enough && now - nextLook >= 0) {
        nextLook = now + BETWEEN_LOOKS_NANOS;
        enough = workload.enough(this) || cpuNanos() > MOST_CPU_NANOS;
      }
      return enough;
    }
  }

  private static long cpuNanos() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
  }

  void iterated() {
    iterations.increment();
  }

  long iterations() {
    return iterations.sum();
  }

  /** Ends the run; the first failure is kept. */
  synchronized void fail(Throwable e) {
    if (failure == null) {
      failure = e;
    }
  }

  Throwable failure() {
    return failure;
  }

  void count(String what, long more) {
    work.computeIfAbsent(what, key -> new LongAdder()).add(more);
  }

  long counted(String what) {
    LongAdder counter = work.get(what);
    return counter == null ? 0 : counter.sum();
  }

  Map<String, Long> counts() {
    Map<String, Long> counts = new TreeMap<>();
    work.forEach((what, counter) -> counts.put(what, counter.sum()));
    return counts;
  }

  /** What a workload counted has to be at least `least`. */
  void require(String what, long least) throws NotDone {
    require(what, counted(what), least);
  }

  void require(String what, long count, long least) throws NotDone {
    if (count < least) {
      throw new NotDone(what + " is " + count + ", has to be at least " + least);
    }
  }
}
