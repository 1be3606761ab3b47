import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;

/**
 * The command line, metadata and output of Renaissance, for tests. What a benchmark does is said in
 * the metadata: benchmark.NAME.configuration.default.does.
 */
public final class FakeRenaissance {
  private static final Properties settings = new Properties();
  private static int repetitions = 2;
  private static double seconds;
  private static boolean check = true;

  private FakeRenaissance() {}

  public static void main(String[] arguments) throws Exception {
    try (InputStream in = FakeRenaissance.class.getResourceAsStream("/benchmarks.properties")) {
      settings.load(in);
    }
    List<String> names = new ArrayList<>();
    Path json = null;
    for (int i = 0; i < arguments.length; i++) {
      switch (arguments[i]) {
        case "-r", "--repetitions" -> repetitions = Integer.parseInt(arguments[++i]);
        case "-t", "--run-seconds" -> seconds = Integer.parseInt(arguments[++i]);
        case "--json" -> json = Path.of(arguments[++i]);
        case "--no-jvm-check" -> check = false;
        default -> names.add(arguments[i]);
      }
    }
    boolean failed = false;
    int done = 0;
    for (String name : names) {
      if (!settings.containsKey("benchmark." + name + ".name")) {
        System.err.println("Benchmark (or group) '" + name + "' does not exist.");
        System.exit(1);
      }
      String least = settings.getProperty("benchmark." + name + ".jvm_version_min");
      int oldest = Integer.parseInt(least.startsWith("1.") ? least.substring(2) : least);
      if (check && Runtime.version().feature() < oldest) {
        System.err.println(
            "Benchmark '"
                + name
                + "' excluded: requires JVM version >="
                + oldest
                + " (found "
                + Runtime.version().feature()
                + ").");
        continue;
      }
      String does = settings.getProperty("benchmark." + name + ".configuration.default.does", "");
      if (does.equals("not load")) {
        System.err.println(
            "Failed to load benchmark '" + name + "': failed to load benchmark " + name);
        failed = true;
        continue;
      }
      try {
        done += execute(name, does);
      } catch (IllegalStateException e) {
        System.err.println("Benchmark '" + name + "' failed result validation:\n" + e.getMessage());
        failed = true;
      } catch (Throwable e) {
        System.err.println("Benchmark '" + name + "' failed with exception:");
        e.printStackTrace();
        failed = true;
      }
      if (failed) {
        System.out.println("The following benchmarks failed: " + name);
      }
    }
    if (json != null) {
      String each = "{\"duration_ns\": 1}" + ", {\"duration_ns\": 1}".repeat(Math.max(0, done - 1));
      String results = done == 0 ? "" : "\"" + names.get(0) + "\": {\"results\": [" + each + "]}";
      Files.writeString(json, "{\"format_version\": 6, \"data\": {" + results + "}}");
    }
    System.exit(failed ? 1 : 0);
  }

  private static int execute(String name, String does) throws Exception {
    String group = settings.getProperty("benchmark." + name + ".groups");
    long began = System.nanoTime();
    int index = 0;
    while (seconds > 0 ? System.nanoTime() - began < seconds * 1e9 : index < repetitions) {
      String line = "====== " + name + " (" + group + ") [default], iteration " + index;
      System.out.println(line + " started ======");
      long start = System.nanoTime();
      try {
        iterate(does);
      } catch (Throwable e) {
        System.out.println(line + " failed (" + e.getClass().getSimpleName() + ") ======");
        throw e;
      }
      double millis = (System.nanoTime() - start) / 1e6;
      System.out.println(line + String.format(Locale.ROOT, " completed (%.3f ms) ======", millis));
      index++;
    }
    return index;
  }

  private static void iterate(String does) throws Exception {
    long end = System.nanoTime() + 20_000_000;
    while (System.nanoTime() < end) {
      Thread.onSpinWait();
    }
    switch (does) {
      case "give a wrong result" -> throw new IllegalStateException("expected 1 but got 2");
      case "throw" -> throw new java.net.ConnectException("refused");
      case "use up the heap" -> System.out.println(new long[Integer.MAX_VALUE - 8].length);
      case "break the JVM" ->
          throw new InternalError("a fault occurred in an unsafe memory access");
      case "be killed" -> {
        String self = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("kill", "-SEGV", self).start().waitFor();
      }
      default -> {}
    }
  }
}
