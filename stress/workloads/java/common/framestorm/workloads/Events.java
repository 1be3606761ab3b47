package framestorm.workloads;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import jdk.jfr.EventSettings;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/** Counts events of the VM's that have no other counter. Of long runs the last part only. */
final class Events {
  private static final long MOST_BYTES = 16 << 20;

  private final Recording recording = new Recording();
  private final Map<String, String> counters;

  /**
   * Starts to count; without stack traces, which would be walks of their own.
   *
   * @param counters names of counters by names of events
   */
  Events(Map<String, String> counters) {
    this.counters = counters;
    recording.setMaxSize(MOST_BYTES);
    for (String name : counters.keySet()) {
      EventSettings settings = recording.enable(name);
      settings.withoutStackTrace().withThreshold(Duration.ZERO);
    }
    recording.start();
  }

  /** Ends the counting and adds each event's number to its counter. */
  void addTo(Run run) throws IOException {
    recording.stop();
    Path file = Files.createTempFile("framestorm-workload", ".jfr");
    try {
      recording.dump(file);
      try (RecordingFile events = new RecordingFile(file)) {
        while (events.hasMoreEvents()) {
          RecordedEvent event = events.readEvent();
          // Events that another recording of this JVM has on are in ours, too.
          String counter = counters.get(event.getEventType().getName());
          if (counter != null) {
            run.count(counter, 1);
          }
        }
      }
    } finally {
      recording.close();
      Files.delete(file);
    }
  }
}
