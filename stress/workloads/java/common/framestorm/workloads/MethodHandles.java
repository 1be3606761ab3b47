package framestorm.workloads;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.invoke.SwitchPoint;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;
import java.util.stream.LongStream;

/**
 * Calls through chains of method handles, made anew and so interpreted as LambdaForms at first;
 * through call sites that get another target; through lambdas and streams.
 */
final class MethodHandles extends Workload {
  private static final MethodType LONG_TO_LONG = MethodType.methodType(long.class, long.class);
  private static final int CHAIN = 12;
  private static final int CALLS = 400;
  private static final StackWalker HIDDEN_TOO =
      StackWalker.getInstance(StackWalker.Option.SHOW_HIDDEN_FRAMES);

  private final MutableCallSite site = new MutableCallSite(LONG_TO_LONG);
  private final MethodHandle throughSite = site.dynamicInvoker();
  private MethodHandle step;
  private MethodHandle leaf;
  private MethodHandle isOdd;
  private volatile long sink;

  @Override
  void prepare(Run run) throws ReflectiveOperationException {
    java.lang.invoke.MethodHandles.Lookup lookup = java.lang.invoke.MethodHandles.lookup();
    step = lookup.findStatic(MethodHandles.class, "step", LONG_TO_LONG);
    leaf = lookup.findStatic(MethodHandles.class, "leaf", LONG_TO_LONG);
    isOdd =
        lookup.findStatic(
            MethodHandles.class, "isOdd", MethodType.methodType(boolean.class, long.class));
    site.setTarget(step);
  }

  private static long step(long x) {
    return x * 31 + 7;
  }

  private static boolean isOdd(long x) {
    return (x & 1) != 0;
  }

  /** How many frames of LambdaForms it was called through. */
  private static long leaf(long x) {
    return HIDDEN_TOO.walk(
        frames ->
            frames
                .filter(frame -> frame.getClassName().startsWith("java.lang.invoke.LambdaForm"))
                .count());
  }

  @Override
  void iterate(Worker worker) throws Throwable {
    SwitchPoint switchPoint = new SwitchPoint();
    MethodHandle chain = step;
    for (int i = 0; i < CHAIN; i++) {
      chain = longer(worker.random().nextInt(5), chain, switchPoint);
    }
    long x = worker.random().nextLong();
    for (int i = 0; i < CALLS; i++) {
      x = (long) chain.invokeExact(x);
      if (i == CALLS / 2) {
        SwitchPoint.invalidateAll(new SwitchPoint[] {switchPoint});
      }
    }
    site.setTarget(chain);
    for (int i = 0; i < CALLS; i++) {
      x = (long) throughSite.invokeExact(x);
    }
    worker.count("calls", 2 * CALLS);
    MethodHandle watched = java.lang.invoke.MethodHandles.filterReturnValue(step, leaf);
    worker.count("LambdaForm frames seen", (long) watched.invokeExact(x));
    sink = lambdas(x);
  }

  private MethodHandle longer(int how, MethodHandle chain, SwitchPoint switchPoint) {
    return switch (how) {
      case 0 -> java.lang.invoke.MethodHandles.filterReturnValue(chain, step);
      case 1 -> java.lang.invoke.MethodHandles.guardWithTest(isOdd, chain, step);
      case 2 ->
          java.lang.invoke.MethodHandles.insertArguments(
              java.lang.invoke.MethodHandles.dropArguments(chain, 0, int.class, String.class),
              0,
              how,
              "bound");
      case 3 -> switchPoint.guardWithTest(chain, step);
      default -> java.lang.invoke.MethodHandles.filterArguments(chain, 0, step);
    };
  }

  private long lambdas(long seed) {
    List<LongUnaryOperator> operators = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int factor = i;
      operators.add(i % 2 == 0 ? y -> y * factor : Long::reverse);
    }
    return LongStream.range(0, 500)
        .map(y -> operators.get((int) (y % operators.size())).applyAsLong(y ^ seed))
        .filter(MethodHandles::isOdd)
        .map(MethodHandles::step)
        .sum();
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("calls", run.iterations() * 2 * CALLS);
    run.require("LambdaForm frames seen", run.iterations());
  }
}
