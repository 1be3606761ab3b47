"""The built-in workloads, compiled: stress/workloads."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli import java_sources, paths, toolchain
from framestorm_cli.errors import FramestormError
from framestorm_cli.java_sources import Part
from framestorm_cli.jdk import Jdk

NATIVES_TARGET = "framestorm_workload_natives"
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


@dataclass(frozen=True)
class Built:
    """Start them with `java <jvm_args> -cp <jar> framestorm.workloads.Main`."""

    jar: Path
    natives: Path  # the library itself


def build(jdk: Jdk) -> Built:
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
    return Built(classes / _JAR, _natives(jdk))


def _natives(jdk: Jdk) -> Path:
    """FRAMESTORM_BIN is the folder bin/ of a build; the library is elsewhere in the same build."""
    own = os.environ.get("FRAMESTORM_BIN")
    if own is None:
        toolchain.build((NATIVES_TARGET,), jdk)
    folder = Path(own).resolve().parent if own else paths.build()
    library = folder / "stress" / "workloads" / f"lib{NATIVES_TARGET}.so"
    if not library.exists():
        raise FramestormError(
            f"the workloads' native library {library} is missing: build {NATIVES_TARGET}"
            + (f", or unset FRAMESTORM_BIN ({own})" if own else "")
        )
    return library


def _make_jar(classes: Path) -> None:
    files = sorted(classes.rglob("*.class"))
    with zipfile.ZipFile(classes / _JAR, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("META-INF/MANIFEST.MF", _MANIFEST)
        for file in files:
            jar.write(file, file.relative_to(classes))
