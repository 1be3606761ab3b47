"""The built-in workloads, compiled: stress/workloads."""

from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import java_sources, toolchain
from framestorm_cli.native.java_sources import Part
from framestorm_cli.stress.workloads import BuiltIn

_JAVA = paths.CHECKOUT / "stress" / "workloads" / "java"
_JAR = "workloads.jar"
_PARTS = [
    Part(folder, minimum, ("--release", str(minimum)))
    for folder, minimum in (("common", 17), ("jdk21", 21), ("jdk22", 22))
]
_MANIFEST = """Manifest-Version: 1.0
Main-Class: framestorm.workloads.Main
Premain-Class: framestorm.workloads.ClassRedefinition
Can-Redefine-Classes: true
"""


def build(jdk: Jdk) -> BuiltIn:
    """Compiles what is out of date. The jar has what this JDK is new enough for."""
    classes = java_sources.compiled(
        jdk,
        name="workloads",
        what="the stress workloads",
        root=_JAVA,
        parts=_PARTS,
        finish=_make_jar,
        finished_by=_MANIFEST,
    )
    target = "framestorm_workload_natives"
    natives = toolchain.product(target, f"stress/workloads/lib{target}.so", jdk)
    return BuiltIn(classes / _JAR, natives)


def _make_jar(classes: Path) -> None:
    java_sources.write_jar(classes / _JAR, classes, classes.rglob("*.class"), _MANIFEST)
