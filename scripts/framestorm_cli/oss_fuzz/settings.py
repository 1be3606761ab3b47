"""What OSS-Fuzz asks for, by the environment of its build.sh, and what framestorm adds to that."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError

ENGINES = ("libfuzzer", "afl", "none")
# The JDK's variant by sanitizer. `undefined` has UBSan and nothing else: what such a target reports is
# UBSan's, or a fault.
VARIANTS = {
    "address": "sanitized",
    "undefined": "undefined",
    "coverage": "coverage",
    "none": "coverage",
}


@dataclass(frozen=True)
class Settings:
    cc: str
    cxx: str
    cflags: str
    cxxflags: str
    engine: str
    link: str  # what links the engine: $LIB_FUZZING_ENGINE
    sanitizer: str
    out: Path
    work: Path
    walkers: tuple[str, ...] | None  # None: those that framestorm adds; empty: all that the JDK has
    jdk: str = ""  # a JDK's home; empty: the variant of the sanitizer
    jdk_source: str = ""  # what that variant is built from

    @property
    def variant(self) -> str:
        return VARIANTS[self.sanitizer]

    @property
    def build_folder(self) -> Path:
        """One for each checkout, compiler and set of flags: CMake keeps what it was first told."""
        told = (self.cc, self.cxx, self.cflags, self.cxxflags, self.link)
        whole = f"{paths.CHECKOUT} {told!r}"
        key = hashlib.sha256(whole.encode()).hexdigest()[:12]
        return self.work / f"framestorm-{self.engine}-{self.sanitizer}-{key}"


# What OSS-Fuzz sets for the targets' compiler. JDK and encoder are built without.
TARGETS_ONLY = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CCC")


def read(environment: Mapping[str, str]) -> Settings:
    """Raises FramestormError naming what is missing or makes no sense."""
    engine = environment.get("FUZZING_ENGINE", "libfuzzer")
    if engine not in ENGINES:
        raise FramestormError(
            f"FUZZING_ENGINE={engine}: a walk runs on the victim's own stack, inside the engine's loop; "
            f"that is made for {', '.join(ENGINES)}. List fuzzing_engines in project.yaml"
        )
    sanitizer = environment.get("SANITIZER", "address")
    if sanitizer not in VARIANTS:
        raise FramestormError(f"SANITIZER={sanitizer}: framestorm has {', '.join(VARIANTS)}")
    architecture = environment.get("ARCHITECTURE", "x86_64")
    if architecture != "x86_64":
        raise FramestormError(f"ARCHITECTURE={architecture}: framestorm halts x86_64 threads only")
    cflags = environment.get("CFLAGS", "")
    cxxflags = environment.get("CXXFLAGS", "")
    link = environment.get("LIB_FUZZING_ENGINE", "")
    if engine != "none" and not link:
        raise FramestormError("LIB_FUZZING_ENGINE is not set: what links the engine?")
    if sanitizer == "address" and "-fsanitize=address" not in shlex.split(cxxflags):
        raise FramestormError(
            "SANITIZER=address without -fsanitize=address in CXXFLAGS: libjvm needs its runtime"
        )
    return Settings(
        cc=_needed(environment, "CC"),
        cxx=_needed(environment, "CXX"),
        cflags=cflags,
        cxxflags=cxxflags,
        engine=engine,
        link="" if engine == "none" else link,
        sanitizer=sanitizer,
        out=Path(_needed(environment, "OUT")),
        work=Path(_needed(environment, "WORK")),
        walkers=_walkers(environment.get("FRAMESTORM_WALKERS", "")),
        jdk=environment.get("FRAMESTORM_JDK", ""),
        jdk_source=environment.get("FRAMESTORM_JDK_SOURCE", ""),
    )


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise FramestormError(
            f"{name} is not set: `framestorm oss-fuzz build` runs in the environment of OSS-Fuzz's "
            "build.sh; docs/guide/continuous-fuzzing.md has it for a run by hand"
        )
    return value


def _walkers(asked: str) -> tuple[str, ...] | None:
    """FRAMESTORM_WALKERS: names, comma separated, or `all` for whatever the JDK has. AsyncGetCallTrace
    has crashes that nobody has fixed yet (corpus/crashes): with it each target would end at one of them
    within seconds, so it has to be asked for."""
    if not asked:
        return None
    return () if asked == "all" else tuple(name.strip() for name in asked.split(","))
