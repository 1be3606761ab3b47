package framestorm.workloads;

import java.util.List;

/**
 * Every built-in workload. A table apart from the classes: some of them exist for newer JDKs only.
 *
 * <p>In JVM arguments {jar} stands for this jar, {natives} for the native library.
 */
enum Catalog {
  DEOPTIMISE_STORM(
      "compiles methods, and deoptimises them with dozens of their frames on the stack",
      17,
      // A call that makes a method due for compilation waits for it: as many storms on any machine.
      "-XX:CompileCommand=quiet",
      "-XX:CompileCommand=BackgroundCompilation,framestorm.workloads.DeoptKernel::*,false",
      "-XX:CompileCommand=CompileThresholdScaling,framestorm.workloads.DeoptKernel::*,0.1"),
  CLASS_UNLOADING("loads classes, runs their methods compiled, unloads them", 17, "-Xmx512m"),
  EXCEPTIONS("throws through interpreted, compiled, inlined and reflective frames", 17),
  STACK_OVERFLOW("runs out of stack in Java, JDK and reflective code, and recurses very deep", 17),
  MONITOR_CONTENTION("blocks on, waits for and inflates monitors; parks on locks", 17),
  JNI_SANDWICH(
      "alternates Java and native frames, returns exceptions through them, attaches threads",
      17,
      "-Dframestorm.workloads.natives={natives}",
      "--enable-native-access=ALL-UNNAMED"),
  METHOD_HANDLES(
      "calls through LambdaForm frames, call sites that change, fresh lambdas",
      17,
      // The JDK keeps LambdaForms by soft references: else they pile up in metaspace.
      "-Xmx256m",
      "-XX:SoftRefLRUPolicyMSPerMB=10"),
  INTRINSICS(
      "is in stubs and intrinsics: copies, checksums, ciphers, strings, big numbers",
      17,
      "-XX:CompileCommand=quiet",
      "-XX:CompileCommand=CompileThresholdScaling,framestorm.workloads.Intrinsics::*,0.1"),
  THREAD_CHURN("starts and ends threads, some by an exception", 17),
  THREAD_CROWD("keeps 10,000 threads parked, waiting or asleep, and wakes a few", 17),
  GC_PRESSURE(
      "allocates, with survivors, references and large arrays, in a small heap", 17, "-Xmx192m"),
  CODE_CACHE_FLUSHING(
      "fills a small code cache, so that compiled methods go away",
      17,
      "-XX:ReservedCodeCacheSize=8m",
      "-Xmx512m",
      "-XX:Tier4InvocationThreshold=500",
      "-XX:Tier4MinInvocationThreshold=200",
      "-XX:Tier4CompileThreshold=1500"),
  CLASS_REDEFINITION("replaces methods that are on the stack", 17, "-javaagent:{jar}"),
  JAVAC("compiles some hundred source files with javac, over and over", 17, "-Xmx1g"),
  // Several carriers on any machine, so that threads change theirs.
  VIRTUAL_THREAD_CHURN(
      "mounts, unmounts and pins virtual threads",
      21,
      "-Djdk.virtualThreadScheduler.parallelism=4"),
  VIRTUAL_THREAD_BUSY("computes on virtual threads that never yield", 21),
  FOREIGN_CALLS(
      "calls C and is called back from it, nested", 22, "--enable-native-access=ALL-UNNAMED");

  private final String summary;
  private final int minimumJdk;
  private final List<String> jvmArgs;

  Catalog(String summary, int minimumJdk, String... jvmArgs) {
    this.summary = summary;
    this.minimumJdk = minimumJdk;
    this.jvmArgs = List.of(jvmArgs);
  }

  String workload() {
    return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
  }

  /** Throws IllegalArgumentException with a message for a person. */
  static Catalog find(String workload) {
    for (Catalog entry : values()) {
      if (entry.workload().equals(workload)) {
        return entry;
      }
    }
    throw new IllegalArgumentException(
        "there is no workload " + workload + "; `--list` says which there are");
  }

  /** What it needs and this JDK does not have; empty when it can run. */
  String missing() {
    if (Runtime.version().feature() < minimumJdk) {
      return "JDK " + minimumJdk + " or later";
    }
    // A JDK has it, a runtime made from one may not.
    if (this == JAVAC && ModuleLayer.boot().findModule("jdk.compiler").isEmpty()) {
      return "the module jdk.compiler";
    }
    return "";
  }

  /** Throws IllegalArgumentException with the reason when this JDK has no such workload. */
  Workload create() throws ReflectiveOperationException {
    if (!missing().isEmpty()) {
      throw new IllegalArgumentException(
          workload() + " needs " + missing() + ", this is JDK " + Runtime.version());
    }
    StringBuilder name = new StringBuilder(Catalog.class.getPackageName()).append('.');
    for (String word : workload().split("-")) {
      name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
    }
    return (Workload) Class.forName(name.toString()).getDeclaredConstructor().newInstance();
  }

  String json() {
    StringBuilder arguments = new StringBuilder();
    for (String argument : jvmArgs) {
      arguments.append(arguments.length() == 0 ? "" : ",").append('"').append(argument).append('"');
    }
    return String.format(
        "{\"name\":\"%s\",\"summary\":\"%s\",\"missing\":\"%s\",\"jvm_args\":[%s],"
            + "\"threads\":\"--threads workers, by default one a core and at least two\"}",
        workload(), summary, missing(), arguments);
  }
}
