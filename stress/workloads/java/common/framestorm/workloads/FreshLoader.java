package framestorm.workloads;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Defines its own copy of some classes: the same code again, never run, never compiled. */
final class FreshLoader extends ClassLoader {
  private static final Map<String, byte[]> bytes = new ConcurrentHashMap<>();

  private final String prefix;

  static {
    registerAsParallelCapable();
  }

  private FreshLoader(String prefix) {
    super(FreshLoader.class.getClassLoader());
    this.prefix = prefix;
  }

  /** A new object of a new copy of `type` and of the classes nested in it. */
  static <T> T copyOf(Class<? extends T> type, Class<T> as) throws ReflectiveOperationException {
    Class<?> copy = new FreshLoader(type.getName()).loadClass(type.getName());
    return as.cast(copy.getDeclaredConstructor().newInstance());
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(prefix)) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> loaded = findLoadedClass(name);
      if (loaded != null) {
        return loaded;
      }
      byte[] code = bytes(name);
      return defineClass(name, code, 0, code.length);
    }
  }

  /** The class file of a class beside this one. */
  static byte[] bytes(String name) throws ClassNotFoundException {
    byte[] known = bytes.get(name);
    if (known != null) {
      return known;
    }
    String resource = name.replace('.', '/') + ".class";
    try (InputStream in = FreshLoader.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        throw new ClassNotFoundException(name);
      }
      byte[] read = in.readAllBytes();
      bytes.put(name, read);
      return read;
    } catch (IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }
}
