package framestorm.truth;

import java.io.File;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarFile;

/**
 * `-javaagent:truth.jar=CLASSES[;SHARE]` beside framestorm's own agent: has classes instrumented as
 * they are loaded. The transformer and its library are in a loader of their own, where the program
 * does not see them.
 */
public final class Agent {
  private Agent() {}

  public static void premain(String options, Instrumentation instrumentation) throws Exception {
    File folder =
        new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI())
            .getParentFile();
    instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(new File(folder, "shadow.jar")));
    Class<?> shadow = Class.forName("framestorm.truth.Shadow", false, null);
    instrumentation.redefineModule(
        Object.class.getModule(),
        Set.of(),
        Map.of("jdk.internal.misc", Set.of(shadow.getModule())),
        Map.of(),
        Set.of(),
        Map.of());
    Class.forName("framestorm.truth.Shadow", true, null);
    URL[] own = {
      new File(folder, "transformer.jar").toURI().toURL(),
      new File(folder, "asm.jar").toURI().toURL()
    };
    ClassLoader loader =
        new URLClassLoader("framestorm-truth", own, ClassLoader.getPlatformClassLoader());
    String[] given = (options == null ? "" : options).split(";", 2);
    double share = given.length > 1 ? Double.parseDouble(given[1]) : 1;
    ClassFileTransformer transformer =
        (ClassFileTransformer)
            Class.forName("framestorm.truth.Transformer", true, loader)
                .getConstructor(String.class, double.class)
                .newInstance(given[0], share);
    instrumentation.addTransformer(transformer);
  }
}
