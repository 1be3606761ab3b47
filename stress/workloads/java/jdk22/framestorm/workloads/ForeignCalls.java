package framestorm.workloads;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.SplittableRandom;

/**
 * Calls C functions, some of which call back: qsort with a comparator in Java, which sorts again
 * one level down. With critical calls and ones that keep errno.
 */
final class ForeignCalls extends Workload {
  private static final AddressLayout INT_POINTER =
      ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(1, JAVA_INT));
  private static final int NUMBERS = 24;
  private static final int CALLS = 200;
  private static final int NESTED = 3;

  private final Linker linker = Linker.nativeLinker();
  private final StructLayout kept = Linker.Option.captureStateLayout();
  private final MethodHandle sort =
      function("qsort", FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS));
  private final MethodHandle length =
      function("strlen", FunctionDescriptor.of(JAVA_LONG, ADDRESS), Linker.Option.critical(false));
  private final MethodHandle close =
      function(
          "close",
          FunctionDescriptor.of(JAVA_INT, JAVA_INT),
          Linker.Option.captureCallState("errno"));
  private final ThreadLocal<Comparator> comparators = new ThreadLocal<>();

  /** What C calls, and the memory it works on. */
  private final class Comparator {
    final Arena arena = Arena.ofConfined();
    final MemorySegment[] numbers = new MemorySegment[NESTED];
    final MemorySegment state = arena.allocate(kept);
    final MemorySegment text = arena.allocateFrom("some text for C");
    final MemorySegment stub;
    long called;
    int depth;

    Comparator() throws ReflectiveOperationException {
      for (int i = 0; i < NESTED; i++) {
        numbers[i] = arena.allocate(JAVA_INT, NUMBERS);
      }
      MethodHandle compare =
          MethodHandles.lookup()
              .bind(
                  this,
                  "compare",
                  MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
      stub =
          linker.upcallStub(
              compare, FunctionDescriptor.of(JAVA_INT, INT_POINTER, INT_POINTER), arena);
    }

    @SuppressWarnings("unused")
    int compare(MemorySegment a, MemorySegment b) throws Throwable {
      called++;
      if (called % 64 == 0 && depth + 1 < NESTED) {
        sort(new SplittableRandom(called), depth + 1);
      }
      return Integer.compare(a.get(JAVA_INT, 0), b.get(JAVA_INT, 0));
    }

    void sort(SplittableRandom random, int at) throws Throwable {
      int before = depth;
      depth = at;
      for (int i = 0; i < NUMBERS; i++) {
        numbers[at].setAtIndex(JAVA_INT, i, random.nextInt());
      }
      sort.invokeExact(numbers[at], (long) NUMBERS, 4L, stub);
      for (int i = 1; i < NUMBERS; i++) {
        if (numbers[at].getAtIndex(JAVA_INT, i - 1) > numbers[at].getAtIndex(JAVA_INT, i)) {
          throw new IllegalStateException("qsort did not sort");
        }
      }
      depth = before;
    }
  }

  private MethodHandle function(String name, FunctionDescriptor type, Linker.Option... options) {
    return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(), type, options);
  }

  @Override
  void iterate(Worker worker) throws Throwable {
    Comparator comparator = comparators.get();
    if (comparator == null) {
      comparator = new Comparator();
      comparators.set(comparator);
    }
    long calledBefore = comparator.called;
    for (int i = 0; i < CALLS; i++) {
      comparator.sort(worker.random(), 0);
      if ((long) length.invokeExact(comparator.text) != 15
          || (int) close.invokeExact(comparator.state, -1) != -1) {
        throw new IllegalStateException("a C function gave a wrong answer");
      }
    }
    worker.count("downcalls", 3 * CALLS);
    worker.count("upcalls", comparator.called - calledBefore);
  }

  @Override
  void leave(Worker worker) {
    Comparator comparator = comparators.get();
    if (comparator != null) {
      comparator.arena.close();
    }
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("downcalls", run.iterations() * 3 * CALLS);
    run.require("upcalls", run.iterations() * CALLS * NUMBERS);
  }
}
