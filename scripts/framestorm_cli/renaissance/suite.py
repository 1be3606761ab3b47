"""A jar of Renaissance: which benchmarks are in it, what each needs, how to start one.

All of it is read from the jar: its manifest and `benchmarks.properties`, which its own launcher reads too.
"""

import fnmatch
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks.jdk import Jdk, feature_of

PREFIX = "renaissance:"
ALL = "all"
OLDEST = (0, 14)
RESULTS = "renaissance.json"  # what a benchmark writes into the folder it runs in
SECONDS_OPTION = "-t"  # whole seconds; the iteration that is running then is finished
ITERATIONS_OPTION = "-r"
_METADATA = "benchmarks.properties"
_MANIFEST = "META-INF/MANIFEST.MF"
_DUMMY = "dummy"  # group of benchmarks that test Renaissance itself
_SPARK = "apache-spark"
# Renaissance's README: its Spark benchmarks overflow stacks of the default size on some JVMs.
_SPARK_ARGS = ("-Xss4m",)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True)
class Benchmark:
    """`name` is without PREFIX. A bound of 0 is none."""

    name: str
    groups: tuple[str, ...]
    summary: str
    repetitions: int
    distribution: str
    oldest_jdk: int
    newest_jdk: int

    @property
    def workload(self) -> str:
        return PREFIX + self.name

    @property
    def is_dummy(self) -> bool:
        return _DUMMY in self.groups

    @property
    def jvm_args(self) -> tuple[str, ...]:
        return _SPARK_ARGS if _SPARK in self.groups else ()

    def excluded(self, jdk: Jdk) -> str | None:
        """Why the benchmark does not run on this JDK by its own account; None when it does."""
        if self.oldest_jdk and jdk.feature < self.oldest_jdk:
            return f"{self.workload} needs JDK {self.oldest_jdk} or later, {jdk} is {jdk.feature}"
        if self.newest_jdk and jdk.feature > self.newest_jdk:
            return f"{self.workload} needs JDK {self.newest_jdk} or older, {jdk} is {jdk.feature}"
        return None


@dataclass(frozen=True)
class Suite:
    jar: Path
    version: str
    benchmarks: dict[str, Benchmark]

    @property
    def distribution(self) -> str:
        """ "GPL" with all benchmarks, or "MIT" with those under permissive licenses only."""
        gpl = any(one.distribution.startswith("GPL") for one in self.benchmarks.values())
        return "GPL" if gpl else "MIT"

    def __str__(self) -> str:
        return f"Renaissance {self.version} {self.distribution} ({self.jar})"

    def program(self, benchmark: Benchmark) -> tuple[str, ...]:
        """What follows the JVM's arguments; the options of time and number go behind it."""
        return ("-jar", str(self.jar), "--json", RESULTS, benchmark.name)

    def select(self, names: Sequence[str], jdk: Jdk) -> tuple[list[Benchmark], list[str]]:
        """Benchmarks by `renaissance:NAME`, group, glob, or `all`; and why what a glob or group named cannot
        run on this JDK. Raises FramestormError for one that is named and cannot run, or is not there."""
        chosen: dict[str, Benchmark] = {}
        left_out: dict[str, str] = {}
        for name in names:
            wanted = name.removeprefix(PREFIX)
            exact = self.benchmarks.get(wanted)
            hits = [exact] if exact else self._several(wanted)
            if not hits:
                raise FramestormError(
                    f"there is no {PREFIX}{wanted} in {self}. It has: "
                    f"{', '.join(one.name for one in self._real())}; groups: "
                    f"{', '.join(sorted({group for one in self._real() for group in one.groups}))}"
                )
            for one in hits:
                reason = one.excluded(jdk)
                if reason is None:
                    chosen[one.name] = one
                elif exact:
                    raise FramestormError(reason)
                else:
                    left_out[one.name] = reason
        if not chosen:
            raise FramestormError("no benchmark is left: " + "; ".join(left_out.values()))
        return list(chosen.values()), list(left_out.values())

    def _real(self) -> list[Benchmark]:
        return [one for one in self.benchmarks.values() if not one.is_dummy]

    def _several(self, wanted: str) -> list[Benchmark]:
        group = [one for one in self.benchmarks.values() if wanted in one.groups]
        if group:
            return group
        pattern = "*" if wanted == ALL else wanted
        return [one for one in self._real() if fnmatch.fnmatchcase(one.name, pattern)]


def read(jar: Path) -> Suite:
    """Raises FramestormError when the file is no jar of Renaissance's, or too old a one."""
    try:
        with zipfile.ZipFile(jar) as archive:
            metadata = archive.read(_METADATA).decode("latin-1")
            manifest = archive.read(_MANIFEST).decode("utf-8", errors="replace")
    except FileNotFoundError as error:
        raise FramestormError(f"the Renaissance jar {jar} does not exist") from error
    except (zipfile.BadZipFile, OSError) as error:
        raise FramestormError(
            f"{jar} cannot be read as a jar ({error}): was the download interrupted?"
        ) from error
    except KeyError as error:
        raise FramestormError(
            f"{jar} is no jar of Renaissance's: {error.args[0]}. The jars of its release page are "
            "renaissance-gpl-VERSION.jar and renaissance-mit-VERSION.jar"
        ) from error
    version = _version(jar, manifest)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < OLDEST:
        raise FramestormError(f"{jar} is Renaissance {version}: framestorm takes 0.14 or later")
    benchmarks = _benchmarks(properties(metadata))
    if not benchmarks:
        raise FramestormError(f"{jar}: {_METADATA} in it names no benchmark")
    return Suite(jar.resolve(), version, benchmarks)


def _version(jar: Path, manifest: str) -> str:
    found = re.search(
        r"^(?:Implementation|Specification)-Version: *(\d\S*)", manifest, re.MULTILINE
    )
    found = found or re.search(r"-(\d+\.\d+[\w.-]*)\.jar$", jar.name)
    return found[1] if found else "of unknown version"


def _benchmarks(settings: dict[str, str]) -> dict[str, Benchmark]:
    names = sorted(value for key, value in settings.items() if key.endswith(".name"))
    found = {}
    for name in names:

        def setting(key: str, name: str = name) -> str:
            return settings.get(f"benchmark.{name}.{key}", "").strip()

        repetitions = setting("repetitions")
        found[name] = Benchmark(
            name,
            groups=tuple(part.strip() for part in setting("groups").split(",") if part.strip()),
            summary=setting("summary"),
            repetitions=int(repetitions) if repetitions.isdigit() else 20,
            distribution=setting("distro"),
            oldest_jdk=feature_of(setting("jvm_version_min")),
            newest_jdk=feature_of(setting("jvm_version_max")),
        )
    return found


def properties(text: str) -> dict[str, str]:
    """What java.util.Properties reads from a .properties file."""
    found = {}
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text).splitlines():
        stripped = line.lstrip(" \t\f")
        if not stripped or stripped[0] in "#!":
            continue
        matched = re.match(r"((?:[^\\:= \t\f]|\\.)*)[ \t\f]*[:=]?[ \t\f]*(.*)", stripped)
        assert matched is not None  # every part may be empty
        found[_unescaped(matched[1])] = _unescaped(matched[2])
    return found


def _unescaped(text: str) -> str:
    def one(matched: "re.Match[str]") -> str:
        if matched[1] is not None:
            return chr(int(matched[1], 16))
        return _ESCAPES.get(matched[2], matched[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text)
