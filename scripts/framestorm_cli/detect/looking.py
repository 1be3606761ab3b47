"""What a contestant is asked for, and what it answers."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding
from framestorm_cli.native.toolchain import Toolchain


@dataclass
class Timed:
    """A finding, and seconds from the run's start until it was there, the JVM's start included."""

    seconds: float
    finding: Finding


@dataclass
class Looked:
    """What a run came to. `asked`: whether the contestant has a way to walk with the task's walkers.
    `problem`: why it did not look; such a run counts as none."""

    found: list[Timed] = field(default_factory=list)
    walks: int = 0
    problem: str = ""
    asked: bool = True


@dataclass(frozen=True)
class Task:
    """`wanted`: whether a finding is worth ending the run for. `jvm_args`: of the JVMs that are fuzzed or
    stepped. `parts`: of the contestant, no others look; none: all. `mutants`: the file of their counts,
    where it tries them."""

    tools: Toolchain
    walkers: tuple[str, ...]
    seconds: float
    seed: int
    out: Path
    symbolizer: Symbolizer
    wanted: Callable[[Finding], bool]
    jvm_args: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    mutants: Path | None = None


def clean(out: Path) -> Path:
    """An empty folder for a run."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return out
