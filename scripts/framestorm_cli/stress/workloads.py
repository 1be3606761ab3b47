"""What --workload names: built-in programs, Renaissance, and anybody's own."""

import contextlib
import fnmatch
import itertools
import json
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings.records import Json
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.renaissance import obtaining, suite

MAIN = "framestorm.workloads.Main"
PROOF = "framestorm-workload "  # starts the line with what a built-in workload did
CLASS_PATH = ("-cp", "-classpath", "--class-path")  # java's options for it
OWN = ("jar:", "class:")  # how a name starts that is a program of somebody's own
NOT_DONE = 3  # exit code of one that did not do what it is named after
_LIST_SECONDS = 60


@dataclass(frozen=True)
class Workload:
    """A program to sample. `own_clock`: it ends by itself after the seconds it is given; others are
    asked to end (SIGTERM). `proves`: it ends with a PROOF line."""

    name: str
    program: tuple[str, ...]  # what follows the JVM's arguments
    jvm_args: tuple[str, ...] = ()
    summary: str = ""
    missing: str = ""  # what it needs and the JDK it was listed by does not have
    own_clock: bool = False
    proves: bool = False
    renaissance: bool = False  # a benchmark of it, whose failures it can tell apart
    seconds_option: str = "--seconds"
    iterations_option: str = "--iterations"

    @property
    def class_path(self) -> list[Path]:
        """What it loads its classes from: jars, and folders."""
        for option, value in itertools.pairwise(self.program):
            if option in (*CLASS_PATH, "-jar"):
                return [Path(part) for part in value.split(":")]
        return []

    def arguments(self, seconds: float | None, iterations: int | None, seed: int) -> list[str]:
        found = list(self.program)
        if self.own_clock and seconds is not None:
            # Renaissance takes whole seconds.
            whole = str(max(1, round(seconds)))
            found += [self.seconds_option, whole if self.renaissance else f"{seconds:g}"]
        if self.own_clock and iterations is not None:
            found += [self.iterations_option, str(iterations)]
        if self.proves:
            found += ["--seed", str(seed)]
        return found


@dataclass(frozen=True)
class BuiltIn:
    """The built-in workloads, compiled: their jar and their native library. Start them with
    `java <jvm_args> -cp <jar> framestorm.workloads.Main`."""

    jar: Path
    natives: Path


def built_in(java: Path, found: BuiltIn) -> list[Workload]:
    """Every built-in workload, as the jar itself lists them. Raises FramestormError."""
    command = [str(java), "-Xshare:auto", "-cp", str(found.jar), MAIN, "--list"]
    try:
        done = steps.captured(command, timeout=_LIST_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FramestormError(f"{java} could not list the workloads: {error}") from error
    if done.returncode != 0:
        raise FramestormError(f"{java} could not list the workloads: {done.stderr.strip()[-500:]}")
    workloads = []
    for line in done.stdout.splitlines():
        try:
            entry = json.loads(line)
            workloads.append(
                Workload(
                    name=entry["name"],
                    program=("-cp", str(found.jar), MAIN, entry["name"]),
                    jvm_args=tuple(
                        argument.replace("{jar}", str(found.jar)).replace(
                            "{natives}", str(found.natives)
                        )
                        for argument in entry["jvm_args"]
                    ),
                    summary=entry["summary"],
                    missing=entry["missing"],
                    own_clock=True,
                    proves=True,
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            raise FramestormError(f"{MAIN} --list: not understood: {line!r}") from error
    if not workloads:
        raise FramestormError(f"{MAIN} --list named no workload")
    return workloads


def benchmarks(names: Sequence[str], jar: Path | None, jdk: Jdk) -> list[Workload]:
    """Benchmarks of Renaissance, by what `renaissance:` was followed by. Raises FramestormError."""
    found = obtaining.find(jar)
    selected, left_out = found.select(names, jdk)
    for line in left_out:
        steps.say(f"without {line}")
    return [
        Workload(
            name=one.workload,
            program=found.program(one),
            jvm_args=one.jvm_args,
            summary=one.summary,
            own_clock=True,
            renaissance=True,
            seconds_option=suite.SECONDS_OPTION,
            iterations_option=suite.ITERATIONS_OPTION,
        )
        for one in selected
    ]


def own(text: str) -> Workload:
    """`jar:PATH ARG...` and `class:` with the rest of a java command line. Raises FramestormError."""
    kind, _, rest = text.partition(":")
    words = shlex.split(rest)
    if not words:
        raise FramestormError(f"{text!r} names no program: jar:app.jar ARG, class:-cp DIR Main ARG")
    if kind == "jar":
        jar = Path(words[0]).resolve()
        if not jar.is_file():
            raise FramestormError(f"--workload {text}: {words[0]} does not exist")
        return Workload(text, ("-jar", str(jar), *words[1:]))
    return Workload(text, tuple(_absolute(words)))


def _absolute(words: Sequence[str]) -> list[str]:
    """A cell runs in a folder of its own: class paths are made absolute."""
    found = list(words)
    for index, word in enumerate(words[:-1]):
        if word in (*CLASS_PATH, "-p", "--module-path"):
            parts = words[index + 1].split(":")
            found[index + 1] = ":".join(
                str(Path(part).resolve()) if Path(part.rstrip("*")).exists() else part
                for part in parts
            )
    return found


def resolve(
    names: Sequence[str], built: Sequence[Workload], jdk: Jdk, renaissance: Path | None
) -> dict[str, Workload]:
    """Every workload that the names name, by its own. Raises FramestormError."""
    chosen: dict[str, Workload] = {}
    for name in names:
        if name.startswith(OWN):
            several = [own(name)]
        elif name.startswith(suite.PREFIX):
            several = benchmarks([name], renaissance, jdk)
        else:
            several = matching([name], built, jdk)
        chosen |= {one.name: one for one in several}
    return chosen


def matching(names: Sequence[str], every: Sequence[Workload], jdk: Jdk) -> list[Workload]:
    """Built-in workloads by name or glob, those that lack something in this JDK left out when a
    glob names them. Raises FramestormError for one that is named and cannot run, or is not there."""
    chosen: dict[str, Workload] = {}
    for name in names:
        hits = [one for one in every if fnmatch.fnmatchcase(one.name, name)]
        if not hits:
            known = ", ".join(one.name for one in every)
            raise FramestormError(
                f"there is no workload {name}. Built in: {known}; or renaissance:NAME, jar:PATH, "
                "class:MAIN"
            )
        for one in hits:
            if not one.missing:
                chosen[one.name] = one
            elif one.name == name:
                raise FramestormError(
                    f"the workload {name} needs {one.missing}, which {jdk} does not have"
                )
            else:
                steps.say(f"without {one.name}: needs {one.missing}")
    return list(chosen.values())


def proof(log: Path) -> Json:
    """What a built-in workload says that it did, at the end of its log; empty when it does not."""
    for line in reversed(steps.tail(log, 60).splitlines()):
        if line.startswith(PROOF):
            with contextlib.suppress(ValueError):
                found = json.loads(line.removeprefix(PROOF))
                return found if isinstance(found, dict) else {}
            return {}
    return {}
