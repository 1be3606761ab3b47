import java.io.IOException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/**
 * What JFR's samplers got into recordings, as JSON: {@code java Samples.java EVENT FILE...}. A file
 * whose end is missing is read as far as it goes.
 */
public final class Samples {
  private static final String LOST = "jdk.CPUTimeSamplesLost";

  private final String sampleEvent;
  private final Map<String, Long> codes = new TreeMap<>();
  private final Map<String, Long> frameTypes = new TreeMap<>();
  private final Set<Long> threads = new HashSet<>();
  private long samples;
  private long lost;
  private long biased;
  private long truncated;
  private long frames;
  private long mostFrames;
  private long traces;
  private long unreadable;
  private long firstNanos = Long.MAX_VALUE;
  private long lastNanos = Long.MIN_VALUE;

  private Samples(String sampleEvent) {
    this.sampleEvent = sampleEvent;
  }

  public static void main(String[] arguments) {
    Samples samples = new Samples(arguments[0]);
    for (int i = 1; i < arguments.length; i++) {
      samples.read(Path.of(arguments[i]));
    }
    System.out.println(samples.json());
  }

  private void read(Path file) {
    try (RecordingFile events = new RecordingFile(file)) {
      while (events.hasMoreEvents()) {
        RecordedEvent event = events.readEvent();
        String name = event.getEventType().getName();
        if (name.equals(sampleEvent)) {
          add(event);
        } else if (name.equals(LOST)) {
          lost += event.getInt("lostSamples");
        }
      }
    } catch (IOException | RuntimeException e) {
      // The parser throws anything on a chunk that the JVM died in.
      unreadable++;
      System.err.println(file + ": " + e);
    }
  }

  private void add(RecordedEvent event) {
    samples++;
    long at =
        event.getStartTime().getEpochSecond() * 1_000_000_000 + event.getStartTime().getNano();
    firstNanos = Math.min(firstNanos, at);
    lastNanos = Math.max(lastNanos, at);
    RecordedThread thread =
        event.getThread(event.hasField("sampledThread") ? "sampledThread" : "eventThread");
    if (thread != null) {
      threads.add(thread.getId());
    }
    biased += event.hasField("biased") && event.getBoolean("biased") ? 1 : 0;
    String state = event.hasField("state") ? event.getString("state") : "running";
    RecordedStackTrace trace = event.getStackTrace();
    String code;
    if (event.hasField("failed") && event.getBoolean("failed")) {
      code = "failed";
    } else if (trace == null || trace.getFrames().isEmpty()) {
      code = "empty";
    } else {
      code = trace.isTruncated() ? "truncated" : "ok";
      truncated += trace.isTruncated() ? 1 : 0;
      traces++;
      int depth = trace.getFrames().size();
      frames += depth;
      mostFrames = Math.max(mostFrames, depth);
      for (RecordedFrame frame : trace.getFrames()) {
        frameTypes.merge(frame.getType(), 1L, Long::sum);
      }
    }
    codes.merge(state + "\t" + code, 1L, Long::sum);
  }

  private String json() {
    StringBuilder text = new StringBuilder("{\"codes\":[");
    String separator = "";
    for (Map.Entry<String, Long> entry : codes.entrySet()) {
      String[] key = entry.getKey().split("\t", -1);
      text.append(separator).append("{\"state\":\"").append(key[0]).append("\",\"code\":\"");
      text.append(key[1]).append("\",\"count\":").append(entry.getValue()).append('}');
      separator = ",";
    }
    text.append("],\"frame_types\":{");
    separator = "";
    for (Map.Entry<String, Long> entry : frameTypes.entrySet()) {
      text.append(separator)
          .append('"')
          .append(entry.getKey())
          .append("\":")
          .append(entry.getValue());
      separator = ",";
    }
    text.append(
        String.format(
            "},\"samples\":%d,\"lost\":%d,\"biased\":%d,\"truncated\":%d,\"traces\":%d,\"frames\":%d,"
                + "\"most_frames\":%d,\"threads\":%d,\"unreadable\":%d,\"seconds\":%s}",
            samples,
            lost,
            biased,
            truncated,
            traces,
            frames,
            mostFrames,
            threads.size(),
            unreadable,
            samples == 0 ? "0" : Double.toString((lastNanos - firstNanos) / 1e9)));
    return text.toString();
  }
}
