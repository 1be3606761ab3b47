package framestorm;

import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleSupplier;
import java.util.zip.CRC32;

/**
 * Functions of mathematics, conversions and checksums that HotSpot has stubs for, called by the
 * interpreter, by C1's code and by C2's.
 */
final class MathStubs extends Scenario {
  private final List<DoubleSupplier> callers = new ArrayList<>();

  @Override
  void prepare(Compiler compiler) throws ReflectiveOperationException {
    add(compiler, Compiler.C2, true);
    add(compiler, Compiler.C1, true);
    // Compiled before it has called anything, it does not know the functions for what they are. It
    // calls their entries in the interpreter, which call the stubs without a frame.
    add(compiler, Compiler.C1, false);
    DoubleSupplier interpreted = Copies.of(Functions.class, DoubleSupplier.class);
    compiler.interpretOnly(Compiler.method(interpreted.getClass(), "getAsDouble"));
    callers.add(interpreted);
    compiler.compileAnyway(Compiler.method(MathStubs.class, "loop"), Compiler.C1);
    // The first call loads classes, which is not the program point.
    callers.forEach(DoubleSupplier::getAsDouble);
  }

  private void add(Compiler compiler, int tier, boolean linked)
      throws ReflectiveOperationException {
    if (compiler.has(tier)) {
      DoubleSupplier caller = Copies.of(Functions.class, DoubleSupplier.class);
      if (linked) {
        caller.getAsDouble();
      }
      compiler.compileSeparately(Compiler.method(caller.getClass(), "getAsDouble"), tier);
      callers.add(caller);
    }
  }

  @Override
  void run() {
    loop();
  }

  private void loop() {
    enter();
    double sum = 0;
    while (!Harness.stopped) {
      for (int i = 0; i < callers.size(); i++) {
        sum += callers.get(i).getAsDouble();
      }
    }
    sink = (long) sum;
    leave();
  }

  /** Each caller has a copy of its own, which is compiled in its own way. */
  public static final class Functions implements DoubleSupplier {
    // Of both signs, small, one that is reduced by many bits of pi, and none.
    private static final double[] NUMBERS = {0.7, -3.3, 1e-9, 713.5, 1e22, Double.NaN};

    // The stub of CRC-32 takes 256 bytes and more in another way than less.
    private static final byte[] BYTES = new byte[600];

    private final CRC32 crc = new CRC32();

    @Override
    public double getAsDouble() {
      double sum = 0;
      for (double x : NUMBERS) {
        sum += Math.sin(x) + Math.cos(x) + Math.tan(x) + Math.tanh(x) + Math.cbrt(x);
        sum += Math.exp(x) + Math.log(x) + Math.log10(x) + Math.pow(x, 0.3) + x % 3;
        sum += (int) x + (long) x + (int) (float) x + (long) (float) x;
      }
      crc.update(BYTES, 1, BYTES.length - 1);
      crc.update(BYTES, 0, 99);
      return sum + crc.getValue();
    }
  }
}
