"""The JDK that compiles the Java side of a build, and whose other files an instrumented JDK takes."""

import os
import re
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot.sources import Version
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk


def choose(option: Path | None, version: Version) -> Jdk:
    """--boot-jdk, else the JDK nearest to the source's version of JAVA_HOME and those installed.

    Raises FramestormError.
    """
    if option is not None:
        found = jdks.validate(option)
        problem = _problem(found, version)
        if problem:
            raise FramestormError(f"--boot-jdk {option} {problem}")
        return found
    fitting = [
        found for found in [*_of_java_home(), *jdks.usable()] if not _problem(found, version)
    ]
    if not fitting:
        wanted = " or ".join(map(str, sorted(version.boot, reverse=True)))
        raise FramestormError(
            f"building JDK {version} needs a boot JDK {wanted} with javac, and none is below "
            f"{jdks.JVM_FOLDER} or JAVA_HOME: install one, or give --boot-jdk PATH"
        )
    return max(
        fitting, key=lambda found: (same_version(found, version), found.feature == version.feature)
    )


def _of_java_home() -> list[Jdk]:
    """What it names may be a JDK for other things, and no HotSpot: that is none of a build's business."""
    home = os.environ.get("JAVA_HOME")
    try:
        return [jdks.validate(Path(home))] if home else []
    except jdks.UnusableJdkError:
        return []


def _problem(found: Jdk, version: Version) -> str:
    if found.feature not in version.boot:
        wanted = " or ".join(map(str, version.boot))
        return f"is JDK {found.feature}: the source is JDK {version} and needs JDK {wanted} to build it"
    if found.javac is None:
        return "has no bin/javac: a full JDK is needed, not a runtime"
    return ""


def same_version(found: Jdk, version: Version) -> bool:
    """Whether libjvm of the source fits the other files of this JDK.

    The numbers have to be equal, and the build number too where the source says it.
    """
    text, _, rest = found.version.partition("+")
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    numbers += [0] * (len(version.numbers) - len(numbers))
    build = re.match(r"\d+", rest)
    if tuple(numbers[: len(version.numbers)]) != version.numbers:
        return False
    return version.build == 0 or build is None or int(build[0]) == version.build
