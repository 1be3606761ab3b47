"""Ground truth of a cell: the Java agent that keeps shadow stacks (stress/shadow), and its library."""

import shutil
from pathlib import Path

from framestorm_cli.base import jars, paths
from framestorm_cli.base.jars import Jar
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import java_sources
from framestorm_cli.native.java_sources import Part

# Reads and writes class files of JDK 27 and older.
ASM = Jar(
    "org.ow2.asm",
    "asm",
    "9.10.1",
    "ed825d10ab1399c8c0cb669e688cf0c8c82629b4c8399b58352b68e92ca10fcb",
)
AGENT = "truth.jar"  # beside it: what is on the boot class path, and what has a loader of its own
_BOOT, _OWN, _ASM = "shadow.jar", "transformer.jar", "asm.jar"
_JAVA = paths.CHECKOUT / "stress" / "shadow" / "java"
_17 = ("-source", "17", "-target", "17")
_MANIFEST = "Manifest-Version: 1.0\nPremain-Class: framestorm.truth.Agent\n"


def build(jdk: Jdk) -> Path:
    """The agent's jar; compiled and its library fetched where they are not there yet. Raises
    FramestormError."""
    asm = jars.kept(ASM, "leave ground truth out with --no-truth")

    def make_jars(classes: Path) -> None:
        files = sorted(classes.rglob("*.class"))
        boot = {file for file in files if file.stem == "Shadow"}
        agent = {file for file in files if file.stem == "Agent"}
        java_sources.write_jar(classes / _BOOT, classes, boot)
        java_sources.write_jar(classes / AGENT, classes, agent, _MANIFEST)
        java_sources.write_jar(classes / _OWN, classes, set(files) - boot - agent)
        shutil.copyfile(asm, classes / _ASM)

    exports = ("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED")
    folder = java_sources.compiled(
        jdk,
        name="truth",
        what="the agent that keeps shadow stacks",
        root=_JAVA,
        parts=[
            Part("boot", 17, (*_17, *exports)),
            Part("agent", 17, _17),
            Part("transformer", 17, _17, (str(asm),)),
        ],
        finish=make_jars,
        finished_by=_MANIFEST,
    )
    return folder / AGENT
