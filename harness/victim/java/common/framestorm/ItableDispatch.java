package framestorm;

/** One call site with four receivers: compiled code goes through an itable stub each time. */
final class ItableDispatch extends Scenario {
  private final Shape[] shapes = {new A(), new B(), new C(), new D()};

  @Override
  void prepare(Compiler compiler) {
    compiler.requireCompiled(); // the interpreter needs no stubs to dispatch
    for (Shape shape : shapes) {
      compiler.compileAnyway(Compiler.method(shape.getClass(), "value"), Compiler.C2);
    }
    compiler.compileAnyway(Compiler.method(ItableDispatch.class, "dispatch"), Compiler.C2);
  }

  @Override
  void run() {
    dispatch();
  }

  private void dispatch() {
    enter();
    int x = 0;
    for (int i = 0; !Harness.stopped; i++) {
      x += shapes[i & 3].value(x);
    }
    sink = x;
    leave();
  }

  interface Shape {
    int value(int x);
  }

  static final class A implements Shape {
    @Override
    public int value(int x) {
      return x + 1;
    }
  }

  static final class B implements Shape {
    @Override
    public int value(int x) {
      return x * 31 + 2;
    }
  }

  static final class C implements Shape {
    @Override
    public int value(int x) {
      return x ^ 3;
    }
  }

  static final class D implements Shape {
    @Override
    public int value(int x) {
      return x - 5;
    }
  }
}
