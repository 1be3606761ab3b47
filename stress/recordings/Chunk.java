import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/**
 * A chunk of a recording, by its header. JFR's parser tells wall-clock time; the ticks that it
 * makes that of are a clock of which it is known what it counts.
 */
record Chunk(Path file, long at, long size, long startNanos, long startTicks, long ticksPerSecond) {
  private static final int MAGIC = 0x464c5200; // "FLR", 0
  private static final int HEADER = 68;
  private static final double SECOND = 1e9;

  static List<Chunk> of(Path file) throws IOException {
    List<Chunk> chunks = new ArrayList<>();
    try (RandomAccessFile input = new RandomAccessFile(file.toFile(), "r")) {
      long at = 0;
      while (at + HEADER <= input.length()) {
        input.seek(at);
        if (input.readInt() != MAGIC) break;
        input.seek(at + 8);
        long size = input.readLong();
        // One that was not completed has none.
        long left = input.length() - at;
        if (size <= 0 || size > left) size = left;
        input.seek(at + 32);
        long startNanos = input.readLong();
        input.readLong(); // its duration
        chunks.add(new Chunk(file, at, size, startNanos, input.readLong(), input.readLong()));
        at += size;
      }
    }
    return chunks;
  }

  void copyTo(Path other) throws IOException {
    try (FileChannel from = FileChannel.open(file);
        FileChannel to =
            FileChannel.open(
                other, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
      for (long done = 0; done < size; ) done += from.transferTo(at + done, size - done, to);
    }
  }

  /** What an event's start was in ticks, as far as wall-clock nanoseconds say. */
  long ticks(Instant start) {
    long nanos = start.getEpochSecond() * (long) SECOND + start.getNano() - startNanos;
    return startTicks + Math.round(nanos * (ticksPerSecond / SECOND));
  }
}
