package framestorm;

import java.lang.reflect.Method;

/** A method entered interpreted and still running, now in the code compiled for its loop. */
final class Osr extends Scenario {
  private static final int ITERATIONS = 4096;
  private static final int MAX_CHECKPOINTS = 100_000;

  /**
   * HotSpot looks for better code of a loop every few thousand iterations (at most 2^13,
   * Tier3BackedgeNotifyFreqLog): after this many checkpoints the loop runs what was compiled.
   */
  private static final int CHECKPOINTS_TO_SWITCH = 64;

  private Compiler compiler;
  private Method loop;
  private int checkpoints;
  private int checkpointsCompiled;

  @Override
  void prepare(Compiler preparing) {
    preparing.requireCompiled();
    compiler = preparing;
    loop = Compiler.method(Osr.class, "loop");
    preparing.dontInline(loop);
    preparing.compileAnyway(Compiler.method(Osr.class, "checkpoint"), Compiler.C1);
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    long x = 1;
    while (!Harness.stopped) {
      for (int i = 0; i < ITERATIONS; i++) {
        x = x * 31 + i;
      }
      checkpoint(x);
    }
    leave();
  }

  private void checkpoint(long x) {
    sink = x;
    if (checkpointsCompiled > CHECKPOINTS_TO_SWITCH) {
      return;
    }
    if (compiler.osrTier(loop) == compiler.highestTier()) {
      checkpointsCompiled++;
      if (checkpointsCompiled > CHECKPOINTS_TO_SWITCH) {
        enter();
      }
    } else if (++checkpoints > MAX_CHECKPOINTS) {
      throw new IllegalStateException("HotSpot did not compile the loop of " + loop);
    }
  }
}
