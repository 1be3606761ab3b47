import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassModel;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeModel;
import java.lang.classfile.Instruction;
import java.lang.classfile.MethodModel;
import java.lang.classfile.instruction.InvokeDynamicInstruction;
import java.lang.classfile.instruction.InvokeInstruction;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;

/**
 * What a program's bytecode says about a trace: whether a method can call another at a bytecode
 * index, and where a thread's stack begins. It is true of any walk, without asking a walker.
 */
final class Calls {
  /**
   * ELSEWHERE: the method makes that call, but not where it stands. UNKNOWN: a class that is not at
   * hand, or a call whose target bytecode does not name. The first that one of several classes of a
   * name gives, counts.
   */
  enum Answer {
    POSSIBLE,
    UNKNOWN,
    ELSEWHERE,
    IMPOSSIBLE
  }

  /** A method's code: its instructions by bytecode index, null for one that is no call. */
  private record Code(Map<Integer, Target> instructions) {}

  private record Target(String name, String descriptor, boolean named) {
    boolean isOf(RecordedMethod method) {
      return name.equals(method.getName()) && descriptor.equals(method.getDescriptor());
    }
  }

  private record Loaded(String superclass, Map<String, Code> methods) {}

  private static final Target NO_CALL = new Target("", "", false);
  private static final Pattern GENERATED =
      Pattern.compile("[./+]0x|\\$\\$Lambda|LambdaForm|\\$Proxy\\d|Generated\\w+Accessor");
  // JFR of JDK 21 and before changes these as they are loaded.
  private static final Set<String> CHANGED_BY_JFR =
      Set.of(
          "java/lang/Throwable",
          "java/lang/Error",
          "java/io/FileInputStream",
          "java/io/FileOutputStream",
          "java/io/RandomAccessFile",
          "java/net/Socket$SocketInputStream",
          "java/net/Socket$SocketOutputStream",
          "sun/nio/ch/FileChannelImpl",
          "sun/nio/ch/SocketChannelImpl");
  // Called by the JVM from within other methods, at any instruction that resolves, allocates or
  // throws.
  private static final Set<String> UPCALLED =
      Set.of("<clinit>", "loadClass", "loadClassInternal", "checkPackageAccess", "findNative");
  private static final Set<String> UPCALLED_CLASSES =
      Set.of(
          "java/lang/invoke/MethodHandleNatives",
          "java/lang/ref/Finalizer",
          "java/lang/ClassLoader");
  private static final Set<String> BEGINNINGS =
      Set.of(
          "java/lang/Thread.exit",
          "java/lang/Shutdown.shutdown",
          "jdk/internal/vm/Continuation.enter",
          "jdk/internal/vm/Continuation.enterSpecial",
          "jdk/jfr/internal/dcmd/AbstractDCmd.execute");
  private static final String LAUNCHER =
      "sun/launcher/LauncherHelper"; // by JNI, any of its methods
  private static final String MAIN = "main([Ljava/lang/String;)V";
  private static final String POLYMORPHIC = "java/lang/invoke/";

  private final Map<String, List<byte[]>> files =
      new HashMap<>(); // of the classes that are asked for
  private final Map<String, List<Loaded>> classes = new HashMap<>();
  private final FileSystem jdk;

  /**
   * {@code jdkHome}: of the JVM that was sampled. {@code classPath}: jars, jars in them, and
   * folders, of which the classes {@code asked} for are read.
   */
  Calls(Path jdkHome, List<Path> classPath, Set<String> asked) throws IOException {
    asked.forEach(name -> files.put(name.replace('.', '/'), new ArrayList<>()));
    jdk = FileSystems.newFileSystem(URI.create("jrt:/"), Map.of("java.home", jdkHome.toString()));
    for (Path path : classPath) {
      if (Files.isDirectory(path)) {
        addFolder(path);
      } else if (Files.isRegularFile(path)) {
        try (ZipInputStream jar = new ZipInputStream(Files.newInputStream(path))) {
          addJar(jar);
        }
      }
    }
  }

  /** Whether the caller, where it stands, calls the callee. */
  Answer calls(RecordedFrame caller, RecordedFrame callee) {
    RecordedMethod from = caller.getMethod();
    RecordedMethod to = callee.getMethod();
    return codeOf(from).stream()
        .map(body -> calls(body, caller.getBytecodeIndex(), to))
        .min(Comparator.naturalOrder())
        .orElse(Answer.UNKNOWN);
  }

  private static Answer calls(Code body, int bci, RecordedMethod to) {
    if (isUpcalled(to)) return Answer.POSSIBLE;
    Target target = body.instructions().get(bci);
    if (target != null && target.isOf(to)) return Answer.POSSIBLE;
    if (target != null && target != NO_CALL) {
      // A walker may leave out a hidden frame between the two, such as a lambda's.
      boolean hidden = isGenerated(to) || to.getName().startsWith("lambda$");
      if (hidden || !target.named()) return Answer.UNKNOWN;
    }
    boolean elsewhere = body.instructions().values().stream().anyMatch(one -> one.isOf(to));
    return elsewhere ? Answer.ELSEWHERE : Answer.IMPOSSIBLE;
  }

  /** What the method does at its bytecode index, for a person. */
  String doing(RecordedFrame frame) {
    for (Code body : codeOf(frame.getMethod())) {
      Target target = body.instructions().get(frame.getBytecodeIndex());
      if (target == null) return "has no instruction there";
      return target == NO_CALL
          ? "calls nothing there"
          : "calls " + target.name() + target.descriptor();
    }
    return "is not at hand";
  }

  /** Whether a thread's Java frames begin with this method. */
  boolean begins(RecordedMethod method) {
    String type = typeOf(method);
    String name = method.getName();
    if (MAIN.equals(name + method.getDescriptor())) return true;
    // The launcher initialises the main class by JNI.
    if (name.equals("<clinit>")
        && load(type).stream().anyMatch(one -> one.methods().containsKey(MAIN))) {
      return true;
    }
    if (type.equals(LAUNCHER) || BEGINNINGS.contains(type + "." + name)) return true;
    return name.equals("run") && method.getDescriptor().equals("()V") && isThread(type);
  }

  private boolean isThread(String type) {
    for (String at = type; at != null; ) {
      if (at.equals("java/lang/Thread")) return true;
      List<Loaded> loaded = load(at);
      at = loaded.isEmpty() ? null : loaded.getFirst().superclass();
    }
    return false;
  }

  private static boolean isUpcalled(RecordedMethod to) {
    String type = typeOf(to);
    return UPCALLED.contains(to.getName())
        || UPCALLED_CLASSES.contains(type)
        // The JVM makes the exceptions that it throws.
        || (to.getName().equals("<init>") && (type.endsWith("Exception") || type.endsWith("Error")))
        || (type.equals("java/lang/Thread") && to.getName().equals("dispatchUncaughtException"));
  }

  private static boolean isGenerated(RecordedMethod method) {
    return GENERATED.matcher(method.getType().getName()).find();
  }

  private List<Code> codeOf(RecordedMethod method) {
    if (isGenerated(method) || CHANGED_BY_JFR.contains(typeOf(method))) return List.of();
    String key = method.getName() + method.getDescriptor();
    return load(typeOf(method)).stream()
        .map(one -> one.methods().get(key))
        .filter(c -> c != null)
        .toList();
  }

  private static String typeOf(RecordedMethod method) {
    return method.getType().getName().replace('.', '/');
  }

  private List<Loaded> load(String type) {
    return classes.computeIfAbsent(
        type,
        name -> {
          List<byte[]> found = new ArrayList<>(files.getOrDefault(name, List.of()));
          if (found.isEmpty()) addFromJdk(name, found);
          return found.stream().map(Calls::parse).toList();
        });
  }

  private void addFromJdk(String name, List<byte[]> found) {
    int slash = name.lastIndexOf('/');
    if (slash < 0) return;
    Path modules = jdk.getPath("/packages", name.substring(0, slash).replace('/', '.'));
    if (!Files.isDirectory(modules)) return;
    try (Stream<Path> links = Files.list(modules)) {
      for (Path link : links.toList()) {
        Path file = jdk.getPath("/modules", link.getFileName().toString(), name + ".class");
        if (Files.exists(file)) found.add(Files.readAllBytes(file));
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static Loaded parse(byte[] file) {
    ClassModel model = ClassFile.of().parse(file);
    Map<String, Code> methods = new HashMap<>();
    for (MethodModel method : model.methods()) {
      method
          .code()
          .ifPresent(
              code ->
                  methods.put(
                      method.methodName().stringValue() + method.methodType().stringValue(),
                      read(code)));
    }
    return new Loaded(model.superclass().map(one -> one.asInternalName()).orElse(null), methods);
  }

  private static Code read(CodeModel code) {
    Map<Integer, Target> instructions = new HashMap<>();
    int bci = 0;
    for (CodeElement element : code) {
      if (!(element instanceof Instruction instruction)) continue;
      instructions.put(bci, targetOf(instruction));
      bci += instruction.sizeInBytes();
    }
    return new Code(instructions);
  }

  private static Target targetOf(Instruction instruction) {
    if (instruction instanceof InvokeDynamicInstruction)
      return new Target("invokedynamic", "", false);
    if (!(instruction instanceof InvokeInstruction call)) return NO_CALL;
    // Signature polymorphic: what is called is the handle's matter.
    boolean named = !call.owner().asInternalName().startsWith(POLYMORPHIC);
    return new Target(call.name().stringValue(), call.type().stringValue(), named);
  }

  private void addFolder(Path folder) throws IOException {
    try (Stream<Path> every = Files.walk(folder)) {
      for (Path file : every.toList()) {
        String name = folder.relativize(file).toString();
        if (isAsked(name)) add(name, Files.readAllBytes(file));
      }
    }
  }

  private void addJar(ZipInputStream jar) throws IOException {
    for (ZipEntry entry; (entry = jar.getNextEntry()) != null; ) {
      if (isAsked(entry.getName())) {
        add(entry.getName(), jar.readAllBytes());
      } else if (entry.getName().endsWith(".jar")) {
        addJar(new ZipInputStream(jar));
      }
    }
  }

  private boolean isAsked(String file) {
    return file.endsWith(".class") && files.containsKey(classIn(file));
  }

  // Of a class that is there several times, each may be the one that was loaded.
  private void add(String file, byte[] content) {
    files.get(classIn(file)).add(content);
  }

  private static String classIn(String file) {
    return file.replaceFirst("^META-INF/versions/\\d+/", "").replaceFirst("\\.class$", "");
  }
}
