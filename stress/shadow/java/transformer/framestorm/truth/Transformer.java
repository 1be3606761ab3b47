package framestorm.truth;

import java.lang.instrument.ClassFileTransformer;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** Has the methods of a class push themselves on the shadow stack on entry, and pop on exit. */
public final class Transformer implements ClassFileTransformer {
  private final Pattern chosen;
  private final double share;
  private final MethodHandle number, describe;

  /**
   * `classes`: globs joined by `:`, as `my/app/**`; one with a `-` ahead leaves out; empty: all but
   * the JDK's. `share`: how many of their methods, from 0 to 1; by their names, so that it is the
   * same ones in each run.
   */
  public Transformer(String classes, double share) throws ReflectiveOperationException {
    chosen = Chosen.pattern(classes);
    this.share = share;
    Class<?> shadow = Class.forName("framestorm.truth.Shadow", true, null);
    MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(shadow, MethodHandles.lookup());
    number =
        lookup.findStatic(
            shadow,
            "number",
            MethodType.methodType(int.class, String.class, String.class, String.class));
    describe =
        lookup.findStatic(
            shadow,
            "describe",
            MethodType.methodType(void.class, int.class, int.class, int[].class, String[].class));
  }

  @Override
  public byte[] transform(
      ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
    if (name == null || loader == getClass().getClassLoader() || !chosen.matcher(name).matches())
      return null;
    try {
      return instrument(bytes);
    } catch (Throwable refused) {
      // A method that has become too large, a class file that is too new: it stays as it is.
      return null;
    }
  }

  /** Null when none of its methods is to be instrumented. */
  byte[] instrument(byte[] bytes) throws Throwable {
    ClassReader reader = new ClassReader(bytes);
    Map<String, Size> sizes = sizes(reader);
    if (sizes.isEmpty()) return null;
    ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
    List<Instrumented> methods = new ArrayList<>();
    String owner = reader.getClassName();
    reader.accept(
        new ClassVisitor(Opcodes.ASM9, writer) {
          private boolean hasFrames;

          @Override
          public void visit(
              int version, int access, String name, String sign, String base, String[] faces) {
            hasFrames = (version & 0xFFFF) >= Opcodes.V1_6;
            super.visit(version, access, name, sign, base, faces);
          }

          @Override
          public MethodVisitor visitMethod(
              int access, String name, String type, String sign, String[] thrown) {
            MethodVisitor inner = super.visitMethod(access, name, type, sign, thrown);
            Size size = sizes.get(name + type);
            if (size == null) return inner;
            Instrumented method =
                new Instrumented(
                    inner,
                    number(owner, name, type),
                    name.equals("<init>"),
                    size.locals,
                    hasFrames);
            methods.add(method);
            return method;
          }
        },
        ClassReader.EXPAND_FRAMES);
    byte[] made = writer.toByteArray();
    for (Instrumented method : methods) {
      describe.invokeExact(method.number(), method.push(), method.indices(), method.callees());
    }
    return made;
  }

  private int number(String owner, String name, String type) {
    try {
      return (int) number.invokeExact(owner, name, type);
    } catch (Throwable impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private boolean isInShare(String method) {
    // The golden ratio's bits spread the hash code over all numbers of 32 bits.
    return Integer.toUnsignedLong(method.hashCode() * 0x9E3779B9) < share * (1L << 32);
  }

  private record Size(int locals) {}

  /**
   * Of the methods that are worth it. One that only returns or sets something is never a caller.
   */
  private Map<String, Size> sizes(ClassReader reader) {
    Map<String, Size> found = new HashMap<>();
    reader.accept(
        new ClassVisitor(Opcodes.ASM9) {
          @Override
          public MethodVisitor visitMethod(
              int access, String name, String type, String sign, String[] thrown) {
            if (!isInShare(reader.getClassName() + "." + name + type)) return null;
            return new Worth(locals -> found.put(name + type, new Size(locals)));
          }
        },
        ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
    return found;
  }
}
