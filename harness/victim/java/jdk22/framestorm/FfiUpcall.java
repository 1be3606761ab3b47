package framestorm;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** In Java called by libc's qsort, which Java called through java.lang.foreign. */
final class FfiUpcall extends Scenario {
  private final Arena arena = Arena.global();
  private MethodHandle qsort;
  private MemorySegment comparator;

  @Override
  void prepare(Compiler compiler) throws ReflectiveOperationException {
    compiler.compileAnyway(Compiler.method(FfiUpcall.class, "compare"), Compiler.C2);
    Linker linker = Linker.nativeLinker();
    qsort =
        linker.downcallHandle(
            linker.defaultLookup().find("qsort").orElseThrow(),
            FunctionDescriptor.ofVoid(
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.ADDRESS));
    MethodHandle compare =
        MethodHandles.lookup()
            .bind(
                this,
                "compare",
                MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
    comparator =
        linker.upcallStub(
            compare,
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS),
            arena);
  }

  @Override
  void run() throws Throwable {
    sort();
  }

  private void sort() throws Throwable {
    MemorySegment array = arena.allocateFrom(ValueLayout.JAVA_INT, 2, 1);
    qsort.invokeExact(array, 2L, (long) Integer.BYTES, comparator);
  }

  private int compare(MemorySegment a, MemorySegment b) {
    enter();
    int x = 1;
    while (!Harness.stopped) {
      x = x * 31 + 7;
    }
    leave();
    return x;
  }
}
