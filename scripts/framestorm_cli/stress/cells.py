"""A cell: one Java process that is sampled one way."""

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native.jvm_modes import DEFAULT, GCS, JITS
from framestorm_cli.stress import units

UNSTOPPED = "unstopped"
MODES = ("same-thread", "separate-thread", "queued", UNSTOPPED)
SELF_MODE = (
    "self"  # of cells whose sampler is not framestorm's: JFR, a profiler as shipped, or none
)
UNSAMPLED = "unsampled"  # the program by itself, for what profilers cost it; its interval is 0


@dataclass(frozen=True)
class Cell:
    """What makes a cell; `walker` may name several, which are taken in turn: "asgct+asgst"."""

    workload: str
    walker: str
    mode: str
    interval_ns: int
    gc: str = DEFAULT
    jit: str = DEFAULT
    repetition: int = 1
    plain: bool = False  # of a run with ground truth: without it, for what that changes

    @property
    def interval(self) -> str:
        return units.interval_text(self.interval_ns) if self.interval_ns else ""

    @property
    def stands_still(self) -> bool:
        """Whether threads do while they are sampled: then there is one moment, and a truth of it."""
        return self.mode not in (SELF_MODE, UNSTOPPED)

    @property
    def rate_asked(self) -> float:
        """Samples per second of a thread."""
        return 1e9 / self.interval_ns if self.interval_ns else 0.0

    @property
    def walkers(self) -> str:
        """The walker, or how many of them."""
        names = [] if self.mode == SELF_MODE else self.walker.split("+")
        return self.walker if len(names) <= 2 else f"{len(names)} walkers"

    @property
    def settings(self) -> str:
        """Everything but the workload, the repetition, and what is not asked for."""
        parts = [self.walkers]
        parts += [self.mode] if self.mode != SELF_MODE else []
        parts += [self.interval] if self.interval_ns else []
        parts += [name for name in (self.gc, self.jit) if name != DEFAULT]
        parts += ["plain"] if self.plain else []
        return " ".join(parts)

    def __str__(self) -> str:
        again = f" #{self.repetition}" if self.repetition > 1 else ""
        return f"{self.workload} {self.settings}{again}"


@dataclass(frozen=True)
class Axes:
    """Cells as what they are the product of."""

    workloads: Sequence[str]
    walkers: Sequence[str]
    modes: Sequence[str]
    intervals: Sequence[int]
    gcs: Sequence[str] = (DEFAULT,)
    jits: Sequence[str] = (DEFAULT,)
    repetitions: int = 1
    gc_flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(GCS))
    jit_flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(JITS))

    def cells(self, seed: int) -> list[Cell]:
        """In an order that the seed decides: what drifts on the machine must not favour one value of
        an axis. Repetitions are rounds: each of the others has run before."""
        shuffled = []
        for repetition in range(1, self.repetitions + 1):
            product = itertools.product(
                self.workloads, self.walkers, self.modes, self.intervals, self.gcs, self.jits
            )
            cells = [Cell(*values, repetition=repetition) for values in product]
            random.Random(f"{seed} {repetition}").shuffle(cells)
            shuffled += cells
        return shuffled

    def check(self) -> None:
        """Raises FramestormError for a name that is not known, and for an empty axis."""
        named("mode", self.modes, MODES)
        named("collector", self.gcs, self.gc_flags)
        named("JIT setting", self.jits, self.jit_flags)
        for what, values in (
            ("workload", self.workloads), ("walker", self.walkers), ("mode", self.modes),
            ("interval", self.intervals), ("collector", self.gcs), ("JIT setting", self.jits),
        ):  # fmt: skip
            if not values:
                raise FramestormError(f"there is no {what} to make cells of")


def named(what: str, given: Sequence[str], known: Sequence[str] | Mapping[str, Any]) -> None:
    for name in given:
        if name not in known:
            raise FramestormError(f"there is no {what} {name!r}. Known: {', '.join(known)}")


def folder_name(number: int, cell: Cell) -> str:
    """A name for the cell's folder that sorts in the order of the run."""
    words = [cell.workload, cell.walkers, cell.mode, *([cell.interval] if cell.interval_ns else [])]
    words += [name for name in (cell.gc, cell.jit) if name != DEFAULT]
    words += ["plain"] if cell.plain else []
    slug = re.sub(r"[^A-Za-z0-9.+-]+", "_", "-".join(words))
    return f"{number:04d}-{slug[:100]}"
