package framestorm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/** Samples of profilers in flight recordings. */
final class RecordedSamples {
  private static final Set<String> SAMPLES =
      Set.of(
          "jdk.CPUTimeSample",
          "jdk.ExecutionSample",
          "jdk.NativeMethodSample",
          "datadog.ExecutionSample",
          "datadog.MethodSample");

  private static final Set<String> INITIALISERS = Set.of("<init>", "<clinit>");

  /** When the newest of those was taken that were asked for as new. */
  private static Instant newest = Instant.MIN;

  /** JFR's since then. A dump of all costs the more the longer it runs. */
  private static Recording sinceThen;

  private RecordedSamples() {}

  /**
   * The samples in a file, or in JFR's running recordings when it is null, in the order of their
   * times: "tid,Java's id of the thread;innermost;...;outermost". Called by the harness.
   *
   * @param onlyNew not those of such a call before, which the file may have or not have
   */
  static String[] read(String path, boolean onlyNew) throws IOException {
    List<RecordedEvent> samples = new ArrayList<>();
    if (path != null) {
      addSamples(Path.of(path), samples);
    } else {
      Path file = Files.createTempFile("framestorm", ".jfr");
      Recording before = sinceThen;
      List<Recording> others = new ArrayList<>(FlightRecorder.getFlightRecorder().getRecordings());
      others.remove(before);
      if (onlyNew) {
        // It begins before the other ends.
        sinceThen = new Recording();
        sinceThen.start();
      }
      try {
        for (Recording recording : onlyNew && before != null ? List.of(before) : others) {
          recording.dump(file);
          addSamples(file, samples);
        }
        if (onlyNew && before != null) before.close();
      } finally {
        Files.delete(file);
      }
    }
    samples.sort(Comparator.comparing(RecordedEvent::getStartTime));
    if (onlyNew) {
      samples.removeIf(sample -> !sample.getStartTime().isAfter(newest));
      if (!samples.isEmpty()) newest = samples.get(samples.size() - 1).getStartTime();
    }
    return samples.stream().map(RecordedSamples::line).toArray(String[]::new);
  }

  private static void addSamples(Path file, List<RecordedEvent> samples) throws IOException {
    try (RecordingFile events = new RecordingFile(file)) {
      while (events.hasMoreEvents()) {
        RecordedEvent event = events.readEvent();
        if (SAMPLES.contains(event.getEventType().getName())) samples.add(event);
      }
    } catch (InternalError refused) {
      // java-profiler 1.22.0 writes empty pools as long as it has no sample with a frame.
      if (!String.valueOf(refused.getMessage()).contains("must contain at least one element")) {
        throw refused;
      }
    }
  }

  private static String line(RecordedEvent event) {
    RecordedThread thread =
        event.hasField("sampledThread") ? event.getThread("sampledThread") : event.getThread();
    StringBuilder line = new StringBuilder();
    // A virtual thread has no id of the kernel's, nor its carrier's.
    line.append(thread == null ? 0 : thread.getOSThreadId()).append(',');
    line.append(thread == null ? 0 : thread.getJavaThreadId());
    if (event.getStackTrace() != null) {
      for (RecordedFrame frame : event.getStackTrace().getFrames()) {
        if (!frame.isJavaFrame()) continue;
        String type = frame.getMethod().getType().getName().replace('.', '/');
        String name = frame.getMethod().getName();
        // java-profiler's native frames, and its marks such as <vtable_receiver>.
        if (type.isEmpty() || (name.startsWith("<") && !INITIALISERS.contains(name))) continue;
        line.append(';').append(type).append('.').append(name);
      }
    }
    return line.toString();
  }
}
