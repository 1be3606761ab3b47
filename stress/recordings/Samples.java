import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/**
 * What a profiler got into its recordings, as JSON: {@code java Samples.java EVENT,EVENT DEPTH JDK
 * CLASSPATH TRACES FILE...}. Each trace of a Java thread is held to the bytecode of the program. A
 * file whose end is missing is read as far as it goes. TRACES, where it is not empty, is written:
 * samples and traces one by one (stress/agent/recorded_truth.h).
 */
public final class Samples {
  private static final String LOST = "jdk.CPUTimeSamplesLost";
  private static final int MOST_EXAMPLES = 20;
  // Threads of Java's that run no Java method, and profilers' own.
  private static final Pattern NATIVE_THREADS =
      Pattern.compile(
          "Signal Dispatcher|Notification Thread|Attach Listener|Service Thread|Monitor Deflation"
              + " Thread|C[12] CompilerThread\\d+|JFR .*|Async-profiler .*|.*-profiler Timer");

  /** A trace's place among the others. */
  private enum Verdict {
    WHOLE, // down to where the thread begins, and every call possible
    SHORT, // it ends before that
    CUT, // at the profiler's greatest depth
    WRONG, // a method that the one below it never calls
    MISPLACED, // one that it calls, but not where it stands
    NONE // no frame of Java
  }

  /**
   * {@code why} is empty where a verdict says it all; {@code did} says it in words of no program.
   */
  private record Judgement(Verdict verdict, String why, String did) {
    Judgement(Verdict verdict, String why) {
      this(verdict, why, "");
    }
  }

  private record Call(String caller, String callee) {}

  /** Why a trace has its verdict, how often, and the first of those traces. */
  private static final class Example {
    final String did;
    final List<String> frames;
    long count;

    Example(String did, List<String> frames) {
      this.did = did;
      this.frames = frames;
    }
  }

  private final Set<String> events;
  private final Calls calls;
  private final int depth;
  private final Map<String, Long> codes = new TreeMap<>();
  private final Map<String, Long> frameTypes = new TreeMap<>();
  private final Map<Verdict, Long> verdicts = new TreeMap<>();
  private final Map<Verdict, Map<String, Example>> examples = new TreeMap<>();
  private final Map<Call, Calls.Answer> answers = new HashMap<>();
  // How often: the parser keeps a trace once for all samples of one place.
  private final Map<RecordedStackTrace, Long> seen = new IdentityHashMap<>();
  private final Set<Long> threads = new HashSet<>();
  // Each sample, where they are asked for.
  private final Writer each;
  private final Map<RecordedStackTrace, Integer> written = new IdentityHashMap<>();
  private Chunk chunk;
  private long samples;
  private long taken;
  private long lost;
  private long biased;
  private long truncated;
  private long frames;
  private long mostFrames;
  private long traces;
  private long otherThreads;
  private long callsJudged;
  private long callsUnknown;
  private long unreadable;

  private Samples(Set<String> events, Calls calls, int depth, Writer each) {
    this.events = events;
    this.calls = calls;
    this.depth = depth;
    this.each = each;
  }

  public static void main(String[] arguments) throws IOException {
    Set<String> events = Set.of(arguments[0].split(","));
    int depth = Integer.parseInt(arguments[1]);
    List<Path> classPath =
        Arrays.stream(arguments[3].split(File.pathSeparator)).map(Path::of).toList();
    String traces = arguments[4];
    List<Path> files = Arrays.stream(arguments).skip(5).map(Path::of).toList();
    Set<String> types = new HashSet<>();
    for (Path file : files) {
      Map<RecordedStackTrace, Boolean> seen = new IdentityHashMap<>();
      read(file, event -> addTypes(events, event, seen, types));
    }
    Calls calls = new Calls(Path.of(arguments[2]), classPath, types);
    Samples found;
    try (Writer each = traces.isEmpty() ? null : Files.newBufferedWriter(Path.of(traces))) {
      found = new Samples(events, calls, depth, each);
      for (Path file : files) {
        if (!found.readChunks(file)) found.unreadable++;
      }
    }
    found.seen.forEach(found::conclude);
    System.out.println(found.json());
  }

  private static boolean read(Path file, Consumer<RecordedEvent> each) {
    try (RecordingFile events = new RecordingFile(file)) {
      while (events.hasMoreEvents()) {
        each.accept(events.readEvent());
      }
      return true;
    } catch (IOException | RuntimeException | InternalError e) {
      // The parser throws anything on a chunk that the JVM died in.
      System.err.println(file + ": " + e);
      return false;
    }
  }

  /** Chunk by chunk, where samples are to be told by the recording's own ticks. */
  private boolean readChunks(Path file) throws IOException {
    if (each == null) return read(file, this::add);
    Path part = Files.createTempFile("framestorm", ".jfr");
    try {
      boolean whole = true;
      for (Chunk one : Chunk.of(file)) {
        chunk = one;
        one.copyTo(part);
        whole &= read(part, this::add);
      }
      return whole;
    } finally {
      Files.delete(part);
    }
  }

  private static void addTypes(
      Set<String> events,
      RecordedEvent event,
      Map<RecordedStackTrace, Boolean> seen,
      Set<String> types) {
    if (!events.contains(event.getEventType().getName())) return;
    RecordedStackTrace trace = event.getStackTrace();
    if (trace == null || seen.put(trace, true) != null) return;
    for (RecordedFrame frame : trace.getFrames()) {
      if (isJava(frame)) types.add(frame.getMethod().getType().getName());
    }
  }

  private void add(RecordedEvent event) {
    String name = event.getEventType().getName();
    if (name.equals(LOST)) {
      lost += event.getInt("lostSamples");
      return;
    }
    if (!events.contains(name)) return;
    RecordedThread thread =
        event.getThread(event.hasField("sampledThread") ? "sampledThread" : "eventThread");
    // async-profiler and java-profiler take the JVM's own threads, too.
    if (thread != null && !runsJava(thread)) {
      otherThreads++;
      return;
    }
    samples++;
    // async-profiler tells a waiting thread's samples by one event.
    taken += event.hasField("samples") ? Math.max(1, event.getInt("samples")) : 1;
    if (thread != null) threads.add(thread.getId());
    biased += isBiased(event) ? 1 : 0;
    String state = event.hasField("state") ? event.getString("state") : "running";
    boolean failed = event.hasField("failed") && event.getBoolean("failed");
    codes.merge(state + "\t" + (failed ? "failed" : add(event.getStackTrace())), 1L, Long::sum);
    if (failed) verdicts.merge(Verdict.NONE, 1L, Long::sum);
    if (each != null && thread != null) {
      try {
        write(event, thread, failed ? null : event.getStackTrace());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private void write(RecordedEvent event, RecordedThread thread, RecordedStackTrace trace)
      throws IOException {
    int id = -1;
    if (trace != null && !trace.getFrames().isEmpty()) {
      Integer known = written.putIfAbsent(trace, written.size());
      id = known == null ? written.size() - 1 : known;
      if (known == null) {
        List<RecordedFrame> frames = trace.getFrames();
        // java-profiler calls also those truncated that end where no thread begins: they are short.
        each.write("trace\t%d\t%d".formatted(id, frames.size() >= depth ? 1 : 0));
        for (RecordedFrame frame : frames) each.write("\t" + plain(frame));
        each.write('\n');
      }
    }
    long tid = thread.isVirtual() ? 0 : thread.getOSThreadId();
    each.write(
        "sample\t%d\t%d\t%d\t%d\t%d\n"
            .formatted(
                tid,
                thread.getJavaThreadId(),
                chunk.ticks(event.getStartTime()),
                id,
                isBiased(event) ? 1 : 0));
  }

  private static boolean isBiased(RecordedEvent event) {
    return event.hasField("biased") && event.getBoolean("biased");
  }

  private static String plain(RecordedFrame frame) {
    if (!isJava(frame)) return "-";
    RecordedMethod method = frame.getMethod();
    return "%s.%s%s@%d"
        .formatted(
            method.getType().getName().replace('.', '/'),
            method.getName(),
            method.getDescriptor(),
            frame.getBytecodeIndex());
  }

  private static boolean runsJava(RecordedThread thread) {
    String name = thread.getJavaName();
    return thread.getJavaThreadId() > 0
        && (name == null || !NATIVE_THREADS.matcher(name).matches());
  }

  private String add(RecordedStackTrace trace) {
    if (trace == null || trace.getFrames().isEmpty()) {
      verdicts.merge(Verdict.NONE, 1L, Long::sum);
      return "empty";
    }
    seen.merge(trace, 1L, Long::sum);
    return trace.isTruncated() ? "truncated" : "ok";
  }

  private void conclude(RecordedStackTrace trace, long times) {
    List<RecordedFrame> all = trace.getFrames();
    truncated += trace.isTruncated() ? times : 0;
    traces += times;
    frames += all.size() * times;
    mostFrames = Math.max(mostFrames, all.size());
    for (RecordedFrame frame : all) {
      frameTypes.merge(frame.getType(), times, Long::sum);
    }
    Judgement judgement = judge(all, times);
    verdicts.merge(judgement.verdict(), times, Long::sum);
    if (judgement.why().isEmpty()) return;
    Map<String, Example> known =
        examples.computeIfAbsent(judgement.verdict(), ignored -> new LinkedHashMap<>());
    known.computeIfAbsent(
                judgement.why(),
                ignored -> new Example(judgement.did(), all.stream().map(Samples::text).toList()))
            .count +=
        times;
  }

  private Judgement judge(List<RecordedFrame> trace, long times) {
    RecordedFrame callee = null;
    RecordedFrame outermost = null;
    Verdict verdict = null;
    String why = "";
    String did = "";
    for (RecordedFrame frame : trace) {
      if (!isJava(frame)) {
        callee = null; // the JVM or native code is between
        continue;
      }
      outermost = frame;
      Calls.Answer answer = callee == null ? Calls.Answer.POSSIBLE : answer(frame, callee, times);
      boolean misplaced = answer == Calls.Answer.ELSEWHERE;
      if (misplaced || answer == Calls.Answer.IMPOSSIBLE) {
        if (verdict == null || (verdict == Verdict.MISPLACED && !misplaced)) {
          verdict = misplaced ? Verdict.MISPLACED : Verdict.WRONG;
          why = text(callee) + " under " + text(frame) + ", which " + calls.doing(frame);
          did = kind(callee) + " under " + kind(frame) + ", " + position(trace, callee);
        }
      }
      callee = frame;
    }
    RecordedFrame last = trace.getLast();
    if (outermost == null) return new Judgement(Verdict.NONE, text(trace.getFirst()));
    if (verdict != null) return new Judgement(verdict, why, did);
    if (calls.begins(outermost.getMethod())) return new Judgement(Verdict.WHOLE, "");
    if (trace.size() >= depth) return new Judgement(Verdict.CUT, "");
    String beyond = last == outermost ? "" : ", then " + text(last);
    return new Judgement(
        Verdict.SHORT, "ends with " + text(outermost) + " (" + outermost.getType() + ")" + beyond);
  }

  private Calls.Answer answer(RecordedFrame caller, RecordedFrame callee, long times) {
    Call call =
        new Call(
            text(caller) + caller.getMethod().getDescriptor(),
            text(callee) + callee.getMethod().getDescriptor());
    Calls.Answer answer = answers.computeIfAbsent(call, ignored -> calls.calls(caller, callee));
    if (answer == Calls.Answer.UNKNOWN) {
      callsUnknown += times;
    } else {
      callsJudged += times;
    }
    return answer;
  }

  /** Profilers say frames of native code as methods without a descriptor of Java's. */
  private static boolean isJava(RecordedFrame frame) {
    RecordedMethod method = frame.getMethod();
    return method != null
        && method.getType() != null
        && !frame.getType().equals("Kernel")
        && method.getDescriptor() != null
        && method.getDescriptor().startsWith("(")
        && !method.getDescriptor().equals("()L;");
  }

  /** A frame without its method: "Inlined", "JIT compiled at its start". */
  private static String kind(RecordedFrame frame) {
    return frame.getType() + (frame.getBytecodeIndex() == 0 ? " at its start" : "");
  }

  /**
   * Where in a trace a frame of Java is: the innermost one by the stub or native method that ran.
   * What the JVM or the kernel did there says nothing of the walk.
   */
  private static String position(List<RecordedFrame> trace, RecordedFrame frame) {
    List<RecordedFrame> inside = trace.stream().takeWhile(one -> one != frame).toList();
    if (inside.stream().anyMatch(Samples::isJava)) return "further out";
    for (RecordedFrame one : inside) {
      if (!one.getType().equals("Kernel") && !one.getType().equals("C++")) {
        return "below " + text(one).replaceAll("0x[0-9a-f]+", "*");
      }
    }
    boolean isBelowTheJvm = inside.stream().anyMatch(one -> one.getType().equals("C++"));
    return isBelowTheJvm ? "below the JVM's code" : "innermost";
  }

  private static String text(RecordedFrame frame) {
    RecordedMethod method = frame.getMethod();
    if (method == null) return "?";
    String type = method.getType() == null ? "" : method.getType().getName() + ".";
    String place = isJava(frame) ? "@" + frame.getBytecodeIndex() : "";
    return type + method.getName() + place;
  }

  private String json() {
    List<String> fields = new ArrayList<>();
    List<String> list = new ArrayList<>();
    codes.forEach(
        (key, count) -> {
          String[] parts = key.split("\t", -1);
          list.add(
              "{\"state\":%s,\"code\":%s,\"count\":%d}"
                  .formatted(quoted(parts[0]), quoted(parts[1]), count));
        });
    fields.add("\"codes\":[" + String.join(",", list) + "]");
    fields.add("\"frame_types\":" + object(frameTypes));
    Map<String, Long> byName = new LinkedHashMap<>();
    verdicts.forEach((verdict, count) -> byName.put(name(verdict), count));
    fields.add("\"verdicts\":" + object(byName));
    list.clear();
    examples.forEach((verdict, known) -> addExamples(verdict, known, list));
    fields.add("\"examples\":[" + String.join(",", list) + "]");
    fields.add(
        ("\"samples\":%d,\"taken\":%d,\"lost\":%d,\"biased\":%d,\"truncated\":%d,\"traces\":%d,\"frames\":%d,"
             + "\"most_frames\":%d,\"threads\":%d,\"other_threads\":%d,\"calls_judged\":%d,"
             + "\"calls_unknown\":%d,\"unreadable\":%d")
            .formatted(
                samples,
                taken,
                lost,
                biased,
                truncated,
                traces,
                frames,
                mostFrames,
                threads.size(),
                otherThreads,
                callsJudged,
                callsUnknown,
                unreadable));
    return "{" + String.join(",", fields) + "}";
  }

  private static void addExamples(Verdict verdict, Map<String, Example> known, List<String> into) {
    known.entrySet().stream()
        .sorted((a, b) -> Long.compare(b.getValue().count, a.getValue().count))
        .limit(MOST_EXAMPLES)
        .forEach(
            entry ->
                into.add(
                    "{\"verdict\":%s,\"why\":%s,\"did\":%s,\"count\":%d,\"frames\":[%s]}"
                        .formatted(
                            quoted(name(verdict)),
                            quoted(entry.getKey()),
                            quoted(entry.getValue().did),
                            entry.getValue().count,
                            String.join(
                                ",",
                                entry.getValue().frames.stream().map(Samples::quoted).toList()))));
  }

  private static String name(Verdict verdict) {
    return verdict.name().toLowerCase(java.util.Locale.ROOT);
  }

  private static String object(Map<String, Long> counts) {
    List<String> list = new ArrayList<>();
    counts.forEach((key, count) -> list.add(quoted(key) + ":" + count));
    return "{" + String.join(",", list) + "}";
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : (text == null ? "" : text).toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append("\\u%04x".formatted((int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
