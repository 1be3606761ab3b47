package framestorm.workloads;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** {@code Main <name> [options]} runs one workload; {@code Main --list} says which there are. */
public final class Main {
  /** The workload ran and did not do what it is named after. */
  static final int NOT_DONE = 3;

  /** Wrong arguments, or a JVM that cannot run this workload. */
  static final int USAGE = 2;

  private static final int FAILED = 1;

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 1 && arguments[0].equals("--list")) {
      for (Catalog entry : Catalog.values()) {
        System.out.println(entry.json());
      }
      return;
    }
    System.exit(run(arguments));
  }

  private static int run(String[] arguments) throws Exception {
    Options options;
    Workload workload;
    try {
      options = Options.parse(arguments);
      workload = Catalog.find(options.name()).create();
    } catch (IllegalArgumentException e) {
      System.err.println("framestorm-workload: " + e.getMessage());
      return USAGE;
    }
    Run run = new Run(options, workload);
    try {
      workload.prepare(run);
    } catch (IllegalStateException e) {
      System.err.println("framestorm-workload: " + options.name() + ": " + e.getMessage());
      return USAGE;
    }
    run.begin();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> reportUnfinished(run)));
    List<Thread> threads = new ArrayList<>();
    for (int index = 0; index < options.threads(); index++) {
      Worker worker = new Worker(run, index, new SplittableRandom(options.seed() * 31 + index));
      Thread thread = new Thread(() -> work(workload, worker), options.name() + "-" + index);
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    run.end();
    if (run.failure() != null) {
      System.err.println("framestorm-workload: " + options.name() + " failed:");
      run.failure().printStackTrace();
      return FAILED;
    }
    try {
      workload.prove(run);
      run.require("iterations", run.iterations(), 1);
    } catch (NotDone e) {
      System.out.println(report(run));
      System.err.println("framestorm-workload: " + options.name() + ": " + e.getMessage());
      return NOT_DONE;
    }
    System.out.println(report(run));
    return 0;
  }

  /** What was done when the run is ended from outside. */
  private static void reportUnfinished(Run run) {
    if (run.end()) {
      System.out.println(report(run));
    }
  }

  private static void work(Workload workload, Worker worker) {
    try {
      while (worker.run().next()) {
        workload.iterate(worker);
        worker.run().iterated();
      }
      workload.leave(worker);
    } catch (Throwable e) {
      worker.run().fail(e);
    }
  }

  /** The line a run ends with; who runs workloads looks for its first word. */
  private static String report(Run run) {
    StringBuilder work = new StringBuilder();
    for (Map.Entry<String, Long> entry : run.counts().entrySet()) {
      work.append(work.length() == 0 ? "" : ",");
      work.append('"').append(entry.getKey()).append("\":").append(entry.getValue());
    }
    return String.format(
        java.util.Locale.ROOT,
        "framestorm-workload {\"name\":\"%s\",\"iterations\":%d,\"seconds\":%.3f,\"work\":{%s}}",
        run.options().name(),
        run.iterations(),
        run.seconds(),
        work);
  }
}
