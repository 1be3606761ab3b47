"""The layout of Java files: google-java-format's, unless a comment says why it is another one."""

from collections.abc import Iterable
from pathlib import Path

from framestorm_cli.base import jars
from framestorm_cli.base.jars import Jar
from framestorm_cli.jdks.jdk import Jdk

# The last that runs on JDK 17.
FORMATTER = Jar(
    "com.google.googlejavaformat",
    "google-java-format",
    "1.28.0",
    "32342e7c1b4600f80df3471da46aee8012d3e1445d5ea1be1fb71289b07cc735",
    classifier="all-deps",
)
_BY_HAND = "// Laid out by hand: "
_OF_JAVAC = ("api", "code", "file", "parser", "tree", "util")


def command(jdk: Jdk) -> list[str]:
    """The formatter, without options. Raises FramestormError."""
    formatter = jars.kept(FORMATTER, "leave the step java-format out")
    exports = [
        f"--add-exports=jdk.compiler/com.sun.tools.javac.{one}=ALL-UNNAMED" for one in _OF_JAVAC
    ]
    return [str(jdk.home / "bin" / "java"), *exports, "-jar", str(formatter)]


def check(jdk: Jdk, sources: Iterable[str]) -> list[str]:
    """The command that names each file of another layout, and then fails. Raises FramestormError."""
    judged = [one for one in sources if _BY_HAND not in Path(one).read_text(encoding="utf-8")]
    return [*command(jdk), "--dry-run", "--set-exit-if-changed", *judged]
