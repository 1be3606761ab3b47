package framestorm.truth;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** Which classes are instrumented. */
final class Chosen {
  // What a push itself runs, and what the VM calls in the midst of things: method handles, locks,
  // threads.
  private static final String NEVER =
      "framestorm/truth/|java/lang/|jdk/internal/|sun/|java/util/concurrent/locks/|com/sun/proxy/|jdk/proxy";
  private static final String OF_JDK =
      "java/|javax/|jdk/|com/sun/(?!tools/)|org/(ietf|jcp|w3c|xml)/";

  private Chosen() {}

  static Pattern pattern(String globs) {
    List<String> wanted = new ArrayList<>();
    List<String> unwanted = new ArrayList<>();
    for (String glob : globs.isEmpty() ? new String[0] : globs.split(":")) {
      (glob.startsWith("-") ? unwanted : wanted)
          .add(regex(glob.startsWith("-") ? glob.substring(1) : glob));
    }
    String not = "(?!" + NEVER + (wanted.isEmpty() ? "|" + OF_JDK : "") + ")";
    if (!unwanted.isEmpty()) not += "(?!(?:" + String.join("|", unwanted) + ")$)";
    return Pattern.compile(
        not + (wanted.isEmpty() ? ".*" : "(?:" + String.join("|", wanted) + ")"));
  }

  // `*` stays within a package, `**` does not; a dot may stand for a slash.
  private static String regex(String glob) {
    StringBuilder made = new StringBuilder();
    for (String part : glob.replace('.', '/').split("(?<=\\*)(?!\\*)|(?<!\\*)(?=\\*)")) {
      made.append(part.equals("**") ? ".*" : part.equals("*") ? "[^/]*" : Pattern.quote(part));
    }
    return made.toString();
  }
}
