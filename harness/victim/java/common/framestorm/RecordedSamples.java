package framestorm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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

  private RecordedSamples() {}

  /**
   * The samples in a file, or in JFR's running recordings when it is null, in the order of their
   * times: "tid;innermost;...;outermost". Called by the harness.
   */
  static String[] read(String path) throws IOException {
    List<RecordedEvent> samples = new ArrayList<>();
    if (path != null) {
      addSamples(Path.of(path), samples);
    } else {
      Path file = Files.createTempFile("framestorm", ".jfr");
      try {
        for (Recording recording : FlightRecorder.getFlightRecorder().getRecordings()) {
          recording.dump(file);
          addSamples(file, samples);
        }
      } finally {
        Files.delete(file);
      }
    }
    samples.sort(Comparator.comparing(RecordedEvent::getStartTime));
    return samples.stream().map(RecordedSamples::line).toArray(String[]::new);
  }

  private static void addSamples(Path file, List<RecordedEvent> samples) throws IOException {
    try (RecordingFile events = new RecordingFile(file)) {
      while (events.hasMoreEvents()) {
        RecordedEvent event = events.readEvent();
        if (SAMPLES.contains(event.getEventType().getName())) samples.add(event);
      }
    }
  }

  private static String line(RecordedEvent event) {
    RecordedThread thread =
        event.hasField("sampledThread") ? event.getThread("sampledThread") : event.getThread();
    StringBuilder line = new StringBuilder();
    line.append(thread == null ? 0 : thread.getOSThreadId());
    if (event.getStackTrace() != null) {
      for (RecordedFrame frame : event.getStackTrace().getFrames()) {
        if (!frame.isJavaFrame()) continue;
        String type = frame.getMethod().getType().getName().replace('.', '/');
        line.append(';').append(type).append('.').append(frame.getMethod().getName());
      }
    }
    return line.toString();
  }
}
