package framestorm.workloads;

import java.lang.management.ManagementFactory;
import java.util.HashSet;
import java.util.Set;
import javax.management.JMException;
import javax.management.ObjectName;

/** What the JIT compilers have made, read from the diagnostic command Compiler.codelist. */
final class Compiled {
  private static final Set<String> FINAL_LEVELS = Set.of("1", "4");

  private Compiled() {}

  /**
   * Compile ids of the methods of a class, or of its copies, which are compiled to stay: by C2, or
   * by C1 where that is the last level.
   */
  static Set<Integer> ids(Class<?> type) throws JMException {
    return ids(type, "\\d+");
  }

  /** Those of them that may not be entered any more, since what they assumed is not so. */
  static Set<Integer> invalidated(Class<?> type) throws JMException {
    return ids(type, "[1-9]\\d*");
  }

  private static Set<Integer> ids(Class<?> type, String state) throws JMException {
    Set<Integer> ids = new HashSet<>();
    for (String line : codelist()) {
      // id level state method [addresses]
      String[] words = line.trim().split("\\s+", 5);
      if (words.length > 3
          && words[3].startsWith(type.getName() + ".")
          && FINAL_LEVELS.contains(words[1])
          && words[2].matches(state)) {
        ids.add(Integer.valueOf(words[0]));
      }
    }
    return ids;
  }

  private static String[] codelist() throws JMException {
    return ((String)
            ManagementFactory.getPlatformMBeanServer()
                .invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "compilerCodelist",
                    new Object[0],
                    new String[0]))
        .split("\n");
  }
}
