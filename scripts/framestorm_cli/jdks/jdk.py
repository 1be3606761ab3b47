"""Which JDK is under test, and whether it can be."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.jdks import store

JVM_FOLDER = Path("/usr/lib/jvm")
NEEDED_SYMBOLS = ("AsyncGetCallTrace", "gHotSpotVMStructs")
OLDEST_FEATURE = 17
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


class UnusableJdkError(FramestormError):
    """The path is not a JDK whose stack walker can be called; the message says why."""


@dataclass(frozen=True)
class Jdk:
    """A validated HotSpot. `home` is what was asked for, with symbolic links resolved."""

    home: Path
    version: str
    feature: int
    vendor: str

    @property
    def libjvm(self) -> Path:
        return self.home / "lib" / "server" / "libjvm.so"

    @property
    def javac(self) -> Path | None:
        path = self.home / "bin" / "javac"
        return path if path.exists() else None

    @property
    def include(self) -> Path | None:
        path = self.home / "include"
        return path if (path / "jvmti.h").exists() else None

    @property
    def has_asan(self) -> bool:
        """Whether its libjvm was built with ASan: it loads only where ASan's runtime is already."""
        return any("clang_rt.asan" in name for name in elf.needed(self.libjvm))

    @property
    def label(self) -> str:
        """What a crash's expectations are kept under: "25", or "25-sanitized" for an instrumented JDK."""
        record = store.read(self.home)
        return f"{self.feature}-{record.variant}" if record else str(self.feature)

    def __str__(self) -> str:
        return f"{self.vendor} {self.version} ({self.home})"


def read_release(home: Path) -> dict[str, str]:
    """The `release` file of a JDK; empty when there is none."""
    text = files.read_text(home / "release")
    return dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))


def feature_of(version: str) -> int:
    """The feature release: 25 of "25.0.3", 8 of "1.8.0_392"; 0 when it cannot be told."""
    numbers = [int(n) for n in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def validate(path: Path) -> Jdk:
    """Checks that `path` is a HotSpot that framestorm can load. Raises UnusableJdkError."""
    if not path.exists():
        raise UnusableJdkError(f"JDK path {path} does not exist")
    if not path.is_dir():
        raise UnusableJdkError(f"JDK path {path} is not a folder: give the JDK's home")
    home = path.resolve()
    release = read_release(home)
    if "openj9" in release.get("JVM_VARIANT", "").lower() or _openj9_library(home) is not None:
        raise UnusableJdkError(
            f"{path} is an OpenJ9 JDK: it has no AsyncGetCallTrace of HotSpot's; "
            "framestorm needs a HotSpot JDK"
        )
    libjvm = home / "lib" / "server" / "libjvm.so"
    if not libjvm.exists():
        if (home / "jre" / "lib").is_dir():
            raise UnusableJdkError(f"{path} is a JDK 8 or older: framestorm needs 17 or later")
        raise UnusableJdkError(
            f"{path} is no JDK home: there is no lib/server/libjvm.so below it "
            "(a home looks like /usr/lib/jvm/java-17-openjdk-amd64)"
        )
    _check_library(path, libjvm)
    version = release.get("JAVA_VERSION", "")
    feature = feature_of(version)
    if feature and feature < OLDEST_FEATURE:
        raise UnusableJdkError(f"{path} is JDK {feature}: framestorm needs 17 or later")
    if not feature:
        raise UnusableJdkError(f"{path} has no release file with a JAVA_VERSION: is the JDK whole?")
    runtime = release.get("JAVA_RUNTIME_VERSION", version)
    return Jdk(home, runtime, feature, release.get("IMPLEMENTOR", "unknown vendor"))


def _openj9_library(home: Path) -> Path | None:
    return next((p for p in (home / "lib").glob("**/libj9vm*.so")), None)


def _check_library(path: Path, libjvm: Path) -> None:
    try:
        header = elf.identify(libjvm)
        absent = [name for name in NEEDED_SYMBOLS if not elf.exports(libjvm, name)]
    except elf.NotElfError as error:
        raise UnusableJdkError(f"{libjvm} cannot be read as a library: {error}") from error
    machine = _MACHINES.get(header.machine, header.machine)
    if machine != platform.machine():
        raise UnusableJdkError(
            f"{path} is built for {machine}, this machine is {platform.machine()}: "
            "use a JDK of this architecture"
        )
    if absent:
        raise UnusableJdkError(
            f"{libjvm} does not export {' and '.join(absent)}: framestorm needs a HotSpot that is not "
            "stripped of its exported symbols (a full OpenJDK build has them)"
        )


def installed() -> list[tuple[Path, Jdk | UnusableJdkError]]:
    """Every JDK below the system's JVM folder, symbolic links to the same home once."""
    found: dict[Path, tuple[Path, Jdk | UnusableJdkError]] = {}
    if not JVM_FOLDER.is_dir():
        return []
    for path in sorted(JVM_FOLDER.iterdir()):
        if path.name.startswith(".") or not path.is_dir() or path.resolve() in found:
            continue
        if not (path / "release").exists() and not (path / "lib").is_dir():
            continue
        try:
            found[path.resolve()] = (path, validate(path))
        except UnusableJdkError as error:
            found[path.resolve()] = (path, error)
    return list(found.values())


def usable() -> list[Jdk]:
    """Usable JDKs below the JVM folder, newest first."""
    jdks = [jdk for _, jdk in installed() if isinstance(jdk, Jdk)]
    return sorted(jdks, key=lambda j: [int(n) for n in re.findall(r"\d+", j.version)], reverse=True)
