package framestorm.workloads;

/**
 * What a run was asked for.
 *
 * @param seconds how long workers start new iterations; 0: no limit of time
 * @param iterations how many of all workers together; 0: no limit of number
 */
record Options(String name, double seconds, long iterations, int threads, long seed) {
  private static final double DEFAULT_SECONDS = 10;

  /** Throws IllegalArgumentException with a message for a person. */
  static Options parse(String[] arguments) {
    String name = null;
    double seconds = 0;
    long iterations = 0;
    int threads = Math.max(2, Runtime.getRuntime().availableProcessors());
    long seed = 1;
    for (int i = 0; i < arguments.length; i++) {
      String argument = arguments[i];
      if (!argument.startsWith("--")) {
        if (name != null) {
          throw new IllegalArgumentException(
              "one workload a run, not " + name + " and " + argument);
        }
        name = argument;
        continue;
      }
      if (i + 1 == arguments.length) {
        throw new IllegalArgumentException(argument + " needs a value");
      }
      String value = arguments[++i];
      try {
        switch (argument) {
          case "--seconds" -> seconds = positive(argument, Double.parseDouble(value));
          case "--iterations" -> iterations = (long) positive(argument, Long.parseLong(value));
          case "--threads" -> threads = (int) positive(argument, Integer.parseInt(value));
          case "--seed" -> seed = Long.parseLong(value);
          default -> throw new IllegalArgumentException("there is no option " + argument);
        }
      } catch (NumberFormatException e) {
        throw new IllegalArgumentException(argument + " is a number, not " + value);
      }
    }
    if (name == null) {
      throw new IllegalArgumentException(
          "usage: Main NAME [--seconds N] [--iterations N] [--threads N] [--seed N], or Main"
              + " --list");
    }
    if (seconds == 0 && iterations == 0) {
      seconds = DEFAULT_SECONDS;
    }
    return new Options(name, seconds, iterations, threads, seed);
  }

  private static double positive(String option, double value) {
    if (!(value > 0)) {
      throw new IllegalArgumentException(option + " is more than 0, not " + value);
    }
    return value;
  }
}
