package framestorm.workloads;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;

/** Sources for {@link Javac}, held in memory. */
final class SourceTrees {
  /** From 20 files to some hundred: a short run gets through one at least. */
  private static final List<String> MODULES =
      List.of("java.logging", "jdk.httpserver", "java.net.http", "jdk.jfr", "jdk.compiler");

  private static final int[] GENERATED_FILES = {10, 40, 120, 300};

  private static final int METHODS = 6;

  record Tree(String name, List<JavaFileObject> sources, long lines) {}

  private static final class Source extends SimpleJavaFileObject {
    private final String text;

    Source(String path, String text) {
      super(URI.create("string:///" + path), Kind.SOURCE);
      this.text = text;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return text;
    }
  }

  private SourceTrees() {}

  /** Modules in the src.zip of the JDK that runs this; none when it has none. */
  static List<Tree> ofThisJdk() throws IOException {
    Path archive = Path.of(System.getProperty("java.home"), "lib", "src.zip");
    if (!Files.isReadable(archive)) {
      return List.of();
    }
    List<Tree> trees = new ArrayList<>();
    try (ZipFile zip = new ZipFile(archive.toFile())) {
      List<? extends ZipEntry> entries = Collections.list(zip.entries());
      for (String module : MODULES) {
        List<JavaFileObject> sources = new ArrayList<>();
        long lines = 0;
        for (ZipEntry entry : entries) {
          if (entry.getName().startsWith(module + "/") && entry.getName().endsWith(".java")) {
            byte[] bytes = zip.getInputStream(entry).readAllBytes();
            String text = new String(bytes, StandardCharsets.UTF_8);
            sources.add(new Source(entry.getName().substring(module.length() + 1), text));
            lines += text.lines().count();
          }
        }
        if (!sources.isEmpty()) {
          trees.add(new Tree(module, sources, lines));
        }
      }
    }
    return trees;
  }

  /** Made-up sources, the same for the same seed. */
  static List<Tree> generated(long seed) {
    List<Tree> trees = new ArrayList<>();
    for (int files : GENERATED_FILES) {
      SplittableRandom random = new SplittableRandom(seed + files);
      List<JavaFileObject> sources = new ArrayList<>();
      long lines = 0;
      for (int i = 0; i < files; i++) {
        String text = generate(random, i, files);
        sources.add(new Source("made/C" + i + ".java", text));
        lines += text.lines().count();
      }
      trees.add(new Tree(files + " generated files", sources, lines));
    }
    return trees;
  }

  private static String generate(SplittableRandom random, int number, int files) {
    StringBuilder text = new StringBuilder();
    text.append("package made;\nimport java.util.*;\nimport java.util.function.*;\n");
    text.append("import java.util.stream.*;\n");
    text.append("public class C").append(number).append("<T extends Comparable<? super T>> {\n");
    text.append("  public record R(int a, String b, List<? extends Number> c) {}\n");
    text.append("  public enum E { ONE, TWO { int f() { return 2; } }; int f() { return 1; } }\n");
    for (int method = 0; method < METHODS; method++) {
      int other = random.nextInt(files);
      int constant = random.nextInt(1_000);
      text.append(
          String.format(
"""
  public <U extends T> Map<String, List<R>> m%1$d(Collection<U> in, int n) {
    Function<Integer, Supplier<String>> f = x -> () -> "v" + x + n * %2$d;
    int k = switch (n %% 4) { case 0 -> in.size(); case 1, 2 -> { int j = n; yield j << 2; }
        default -> E.TWO.f(); };
    for (U each : in) {
      try {
        if ((Object) each instanceof String s && s.length() > %2$d) { k += s.hashCode(); }
        else { k ^= new C%3$d<String>().m%4$d(List.of("a", "b"), k).size(); }
      } catch (IllegalStateException | ArithmeticException e) { k = -k; }
      finally { k++; }
    }
    Runnable r = new Runnable() { int z = %2$d; public void run() { z += n; } };
    r.run();
    return IntStream.range(0, k).boxed()
        .map(i -> new R(i, f.apply(i).get(), List.of(i, i * 2.0)))
        .sorted(Comparator.comparing(R::b).thenComparingInt(R::a))
        .collect(Collectors.groupingBy(R::b, TreeMap::new, Collectors.toList()));
  }
""",
              method, constant, other, random.nextInt(METHODS)));
    }
    return text.append("}\n").toString();
  }
}
