package framestorm;

import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;

/**
 * C1's code that reads a field whose class was not loaded when it was compiled: the read is to be
 * patched. But the field turns out to be volatile, so the code is thrown away instead, and the
 * interpreter executes the bytecode once more.
 */
final class CodePatching extends Scenario {
  private static final int VALUES = 3;

  private IntUnaryOperator overrun;
  private IntUnaryOperator ofObject;
  private IntUnaryOperator ofClass;

  @Override
  void prepare(Compiler compiler) throws Exception {
    compiler.require(Compiler.C1);
    compiler.compileAnyway(Compiler.method(Stay.class, "getAsInt"), Compiler.C2);
    overrun = new Overrun();
    compiler.compileSeparately(Compiler.method(Overrun.class, "applyAsInt"), Compiler.C1);
    ofObject = reader(compiler);
    ofClass = reader(compiler);
  }

  private IntUnaryOperator reader(Compiler compiler) throws ReflectiveOperationException {
    Class<?> copy =
        new Copies(Reader.class.getName(), Late.class.getName()).loadClass(Reader.class.getName());
    Object made = copy.getConstructor(IntSupplier.class).newInstance(new Stay(this));
    compiler.compileSeparately(Compiler.method(copy, "applyAsInt"), Compiler.C1);
    return (IntUnaryOperator) made;
  }

  @Override
  void run() {
    try {
      sink = overrun.applyAsInt(VALUES + 1);
    } catch (ArrayIndexOutOfBoundsException e) {
      sink = ofObject.applyAsInt(0);
      sink = ofClass.applyAsInt(1);
    }
  }

  /** Its index is out of bounds: C1's stub that throws goes on in another one, in its own frame. */
  private static final class Overrun implements IntUnaryOperator {
    private final int[] values = new int[VALUES];

    @Override
    public int applyAsInt(int count) {
      int sum = 0;
      for (int i = 0; i < count; i++) {
        sum += values[i];
      }
      return sum;
    }
  }

  /** Read by a copy of {@link Reader}, whose loader has a copy of this. */
  public static final class Late {
    public static volatile int ofClass = 1;
    public volatile int ofObject = 2;
  }

  /** Compiled before {@link Late} is there. */
  public static final class Reader implements IntUnaryOperator {
    private final IntSupplier stay;

    public Reader(IntSupplier stay) {
      this.stay = stay;
    }

    @Override
    public int applyAsInt(int x) {
      return x + (x == 0 ? new Late().ofObject : read() + stay.getAsInt());
    }

    private static int read() {
      return Late.ofClass;
    }
  }

  /** Where the victim stays, called by what was deoptimised. */
  private static final class Stay implements IntSupplier {
    private final CodePatching scenario;

    Stay(CodePatching scenario) {
      this.scenario = scenario;
    }

    @Override
    public int getAsInt() {
      scenario.enter();
      int x = 1;
      while (!Harness.stopped) {
        x = x * 31 + 7;
      }
      scenario.leave();
      return x;
    }
  }
}
