"""A program as `framestorm-step run` takes it: `java`'s command line without `java`."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress import compiling, workloads
from framestorm_cli.stress.workloads import Workload

# The harness's JVM compiles in the foreground and makes no safepoint by itself, for victims that stand
# still, and has as many processors on each machine. A program gets what it would have without the harness.
_AS_EVER = (
    "-XX:+BackgroundCompilation",
    "-XX:GuaranteedSafepointInterval=1000",
    "-XX:ActiveProcessorCount=-1",
    "-Xmx2g",
)
# Options of the launcher that take the next word; a JVM that is started by JNI wants them with "=".
_WITH_VALUE = (
    "--module-path",
    "-p",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
)
_SPELT = {"-p": "--module-path"} | dict.fromkeys(workloads.CLASS_PATH, "-Djava.class.path")
_FAR_MORE = 100.0  # times the run, for a program that has a clock of its own


@dataclass(frozen=True)
class Program:
    name: str
    main: str
    arguments: tuple[str, ...]
    jvm_args: tuple[str, ...]

    @property
    def native_arguments(self) -> list[str]:
        found = ["--main", self.main]
        for argument in self.arguments:
            found += ["--argument", argument]
        return found


def find(name: str, renaissance: Path | None, jdk: Jdk, seconds: float) -> Program:
    """By a name of a workload of stress, of which it has to be the only one. Raises FramestormError."""
    own = name.startswith(workloads.OWN)
    built = () if own else workloads.built_in(jdk.home / "bin" / "java", compiling.build(jdk))
    chosen = list(workloads.resolve([name], built, jdk, renaissance).values())
    if len(chosen) != 1:
        names = ", ".join(one.name for one in chosen)
        raise FramestormError(
            f"--workload {name} is several: {names}. One program is stepped a run."
        )
    return _of(chosen[0], seconds)


def _of(workload: Workload, seconds: float) -> Program:
    words = workload.arguments(_FAR_MORE * seconds, None, 1)
    jvm_args, rest = _launcher_options(words)
    if rest[0] == "-jar":
        main = _main_class(Path(rest[1]))
        jvm_args.append(f"-Djava.class.path={rest[1]}")
        arguments = rest[2:]
    else:
        main, arguments = rest[0], rest[1:]
    return Program(
        workload.name, main, tuple(arguments), (*_AS_EVER, *workload.jvm_args, *jvm_args)
    )


def _launcher_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options before the main class or -jar, as JNI_CreateJavaVM takes them, and what follows."""
    found: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-jar":
        option = rest.pop(0)
        if option in (*workloads.CLASS_PATH, *_WITH_VALUE) and rest:
            name = _SPELT.get(option, option)
            found.append(f"{name}={rest.pop(0)}")
        else:
            found.append(option)
    if not rest:
        raise FramestormError(f"{' '.join(words)} names no main class")
    return found, rest


def _main_class(jar: Path) -> str:
    try:
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF").decode()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise FramestormError(f"{jar} has no manifest: {error}") from error
    for line in manifest.splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() == "main-class":
            return value.strip()
    raise FramestormError(f"{jar} names no Main-Class: give class:-cp {jar} MAIN")
