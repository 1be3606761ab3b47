package framestorm;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import jdk.test.whitebox.WhiteBox;

/** What the JDK does not export, by name. */
final class Internals {
  private Internals() {}

  /**
   * A method that is called with what {@code descriptor} says, whatever it returns. Where the
   * handle is a constant, C2 puts its own code in the method's place. Does nothing where this JDK
   * has no such method, or this HotSpot no such code: the method itself would run for long,
   * interpreted.
   *
   * @param bound the method's object, if it is not static, else its last arguments; those are of
   *     classes that the JDK keeps to itself
   */
  static MethodHandle intrinsic(String holder, String name, String descriptor, Object... bound) {
    MethodType type = MethodType.fromMethodDescriptorString(descriptor, null);
    for (Method method : intrinsics(holder, name)) {
      MethodHandle handle = handleOf(method);
      int at = Modifier.isStatic(method.getModifiers()) ? type.parameterCount() : 0;
      if (handle.type().parameterCount() == type.parameterCount() + bound.length
          && handle
              .type()
              .dropParameterTypes(at, at + bound.length)
              .changeReturnType(type.returnType())
              .equals(type)) {
        return MethodHandles.insertArguments(handle, at, bound).asType(type);
      }
    }
    return nothing(descriptor);
  }

  static MethodHandle nothing(String descriptor) {
    return MethodHandles.empty(MethodType.fromMethodDescriptorString(descriptor, null));
  }

  static boolean isIntrinsic(String holder, String name) {
    return !intrinsics(holder, name).isEmpty();
  }

  private static List<Method> intrinsics(String holder, String name) {
    Class<?> found = load(holder);
    List<Method> intrinsics = new ArrayList<>();
    for (Method method : found == null ? new Method[0] : found.getDeclaredMethods()) {
      if (method.getName().equals(name)
          && mayBeIntrinsic(method)
          && new WhiteBox().isIntrinsicAvailable0(method, null, Compiler.C2)) {
        intrinsics.add(method);
      }
    }
    return intrinsics;
  }

  /**
   * Asked for a method that is none, a debug build of HotSpot ends in an assertion, and a release
   * build says no: it is spared the classes that the JDK generates for annotations.
   */
  private static boolean mayBeIntrinsic(Method method) {
    return "release".equals(System.getProperty("jdk.debug"))
        || Arrays.stream(method.getDeclaredAnnotations())
            .anyMatch(found -> found.annotationType().getSimpleName().equals("IntrinsicCandidate"));
  }

  static boolean exists(String name) {
    return load(name) != null;
  }

  /** Null where this JDK has no such class. */
  static Object make(String name, Object... arguments) {
    Class<?> found = load(name);
    if (found == null) {
      return null;
    }
    for (Constructor<?> constructor : found.getDeclaredConstructors()) {
      if (takes(constructor.getParameterTypes(), arguments)) {
        try {
          return opened(constructor).newInstance(arguments);
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException(e);
        }
      }
    }
    throw new IllegalStateException(name + " has no such constructor");
  }

  /** Calls the only method of that name. */
  static void call(Object target, String name, Object... arguments) {
    try {
      opened(Compiler.method(target.getClass(), name)).invoke(target, arguments);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean takes(Class<?>[] types, Object[] arguments) {
    boolean takes = types.length == arguments.length;
    for (int i = 0; takes && i < types.length; i++) {
      takes = types[i].isPrimitive() || arguments[i] == null || types[i].isInstance(arguments[i]);
    }
    return takes;
  }

  /** Null where this JDK has no such class. */
  static Class<?> load(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException e) {
      return null;
    }
  }

  private static MethodHandle handleOf(Method method) {
    try {
      return MethodHandles.lookup().unreflect(opened(method));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static <T extends Executable> T opened(T member) {
    Class<?> holder = member.getDeclaringClass();
    Harness.open(holder.getModule(), holder.getPackageName(), Internals.class.getModule());
    member.setAccessible(true);
    return member;
  }
}
