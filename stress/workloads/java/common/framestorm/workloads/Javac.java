package framestorm.workloads;

import com.sun.source.util.JavacTask;
import com.sun.source.util.TaskEvent;
import com.sun.source.util.TaskListener;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/**
 * Compiles source trees with javac, over and over: deep visitors, large compiled methods, much
 * allocation. The trees are modules of the JDK's own sources, smallest first.
 */
final class Javac extends Workload {
  private List<SourceTrees.Tree> trees;
  private JavaCompiler compiler;

  /** Ends a compilation. */
  private static final class Ended extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  /** Counts classes instead of keeping them. */
  private static final class Counting extends ForwardingJavaFileManager<JavaFileManager> {
    private final Worker worker;

    Counting(JavaFileManager files, Worker worker) {
      super(files);
      this.worker = worker;
    }

    @Override
    public JavaFileObject getJavaFileForOutput(
        Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
      worker.count("classes written", 1);
      return new SimpleJavaFileObject(URI.create("mem:///" + name.replace('.', '/')), kind) {
        @Override
        public OutputStream openOutputStream() {
          return OutputStream.nullOutputStream();
        }
      };
    }
  }

  @Override
  void prepare(Run run) throws IOException {
    compiler = ToolProvider.getSystemJavaCompiler();
    trees = SourceTrees.ofThisJdk();
    if (trees.isEmpty()) {
      trees = SourceTrees.generated(run.options().seed());
      run.count("generated sources", 1);
    }
  }

  @Override
  void iterate(Worker worker) throws IOException {
    int number = (int) (worker.run().iterations() % trees.size());
    SourceTrees.Tree tree = trees.get(number);
    DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
    try (JavaFileManager files =
        new Counting(compiler.getStandardFileManager(diagnostics, Locale.ROOT, null), worker)) {
      JavacTask task =
          (JavacTask)
              compiler.getTask(
                  null, files, diagnostics, List.of("-nowarn", "-proc:none"), null, tree.sources());
      task.addTaskListener(ender(worker.run()));
      if (!task.call()) {
        throw new IllegalStateException(
            tree.name() + " does not compile: " + firstError(diagnostics));
      }
    } catch (RuntimeException e) {
      if (e instanceof Ended || e.getCause() instanceof Ended) {
        return;
      }
      throw e;
    }
    worker.count("files compiled", tree.sources().size());
    worker.count("lines compiled", tree.lines());
    worker.count("trees compiled", 1);
  }

  /** Large trees take long: the run's end is theirs, once a tree is done. */
  private static TaskListener ender(Run run) {
    return new TaskListener() {
      @Override
      public void started(TaskEvent event) {
        if (run.over() && run.counted("trees compiled") > 0) {
          throw new Ended();
        }
      }
    };
  }

  private static String firstError(DiagnosticCollector<JavaFileObject> diagnostics) {
    for (Diagnostic<? extends JavaFileObject> diagnostic : diagnostics.getDiagnostics()) {
      if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
        return diagnostic.toString();
      }
    }
    return "no error given";
  }

  @Override
  void prove(Run run) throws NotDone {
    run.require("trees compiled", 1);
    run.require("classes written", run.counted("files compiled") / 2);
  }
}
