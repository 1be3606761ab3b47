package framestorm;

import java.lang.reflect.Method;
import java.util.function.LongUnaryOperator;

/** In the body of a capturing lambda, called through its interface. */
final class Lambda extends Scenario {
  private LongUnaryOperator operator;

  @Override
  void prepare(Compiler compiler) {
    long captured = index + 7;
    operator =
        x -> {
          enter();
          while (!Harness.stopped) {
            x = x * 31 + captured;
          }
          leave();
          return x;
        };
    for (Method method : Lambda.class.getDeclaredMethods()) {
      if (method.isSynthetic()) { // what javac made of the lambda's body
        compiler.compileAnyway(method, Compiler.C2);
      }
    }
    compiler.compileAnyway(Compiler.method(operator.getClass(), "applyAsLong"), Compiler.C2);
    compiler.compileAnyway(Compiler.method(Lambda.class, "apply"), Compiler.C1);
  }

  @Override
  void run() {
    apply(operator);
  }

  private void apply(LongUnaryOperator unaryOperator) {
    sink = unaryOperator.applyAsLong(3);
  }
}
