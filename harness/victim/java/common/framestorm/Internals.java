package framestorm;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.Arrays;
import jdk.test.whitebox.WhiteBox;

/** What the JDK does not export, by name. */
final class Internals {
  private static final MethodHandle NOTHING =
      MethodHandles.empty(MethodType.methodType(void.class));

  private Internals() {}

  /**
   * Calls a method with {@code arguments}, of which the first is the object, if it is not static.
   * Where the call is a constant, C2 puts its own code in the method's place. Nothing where this
   * HotSpot has none: the method itself would run for long, interpreted.
   */
  static MethodHandle intrinsic(String holder, String name, Object... arguments) throws Throwable {
    Class<?> found = find(holder);
    if (found == null) {
      return NOTHING;
    }
    for (Method method : found.getDeclaredMethods()) {
      if (method.getName().equals(name)
          && isIntrinsicCandidate(method)
          && new WhiteBox().isIntrinsicAvailable0(method, null, Compiler.C2)) {
        MethodHandle handle = lookup(found).unreflect(method);
        if (takes(handle.type().parameterArray(), arguments)) {
          return MethodHandles.insertArguments(handle, 0, arguments)
              .asType(MethodType.methodType(void.class));
        }
      }
    }
    return NOTHING;
  }

  /** Asked for any other, a debug build of HotSpot ends in an assertion. */
  private static boolean isIntrinsicCandidate(Method method) {
    return Arrays.stream(method.getDeclaredAnnotations())
        .anyMatch(found -> found.annotationType().getSimpleName().equals("IntrinsicCandidate"));
  }

  static boolean isNothing(MethodHandle call) {
    return call == NOTHING;
  }

  /** All of them, one after the other. As a tree: HotSpot inlines calls up to a depth only. */
  static MethodHandle all(MethodHandle... calls) {
    return calls.length == 0 ? NOTHING : all(calls, 0, calls.length);
  }

  private static MethodHandle all(MethodHandle[] calls, int from, int to) {
    if (to - from == 1) {
      return calls[from];
    }
    int middle = (from + to) / 2;
    return MethodHandles.foldArguments(all(calls, middle, to), all(calls, from, middle));
  }

  static boolean exists(String name) {
    return find(name) != null;
  }

  /** Null where this JDK has no such class. */
  static Object make(String name, Object... arguments) throws Throwable {
    Class<?> found = find(name);
    if (found == null) {
      return null;
    }
    for (Constructor<?> constructor : found.getDeclaredConstructors()) {
      if (takes(constructor.getParameterTypes(), arguments)) {
        return lookup(found).unreflectConstructor(constructor).invokeWithArguments(arguments);
      }
    }
    throw new IllegalStateException(name + " has no such constructor");
  }

  /** Calls the only method of that name. */
  static void call(Object target, String name, Object... arguments) throws Throwable {
    MethodHandle method =
        lookup(target.getClass()).unreflect(Compiler.method(target.getClass(), name));
    method.bindTo(target).invokeWithArguments(arguments);
  }

  private static boolean takes(Class<?>[] types, Object[] arguments) {
    boolean takes = types.length == arguments.length;
    for (int i = 0; takes && i < types.length; i++) {
      takes = types[i].isPrimitive() || arguments[i] == null || types[i].isInstance(arguments[i]);
    }
    return takes;
  }

  private static Class<?> find(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException e) {
      return null;
    }
  }

  private static MethodHandles.Lookup lookup(Class<?> holder) throws IllegalAccessException {
    Harness.open(holder.getModule(), holder.getPackageName(), Internals.class.getModule());
    return MethodHandles.privateLookupIn(holder, MethodHandles.lookup());
  }
}
