"""Numbers that grow over a run, and what several runs of one kind come to.

A Series is a list of (seconds of fuzzing, value from then on), ascending in both. Seconds count from a
process's first walk, so starts of JVMs take no part; where a run needed several processes, one goes on
where the one before it ended.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

Series = list[tuple[float, int]]


def at(series: Series, seconds: float) -> int:
    """The value at a time; 0 before the first."""
    index = bisect_right(series, seconds, key=lambda point: point[0])
    return series[index - 1][1] if index else 0


def distinct(found: Iterable[tuple[float, Iterable[object]]]) -> Series:
    """How many different things were found by when. `found` need not be in order."""
    seen: set[object] = set()
    series: Series = []
    for seconds, things in sorted(found, key=lambda entry: entry[0]):
        before = len(seen)
        seen.update(things)
        if len(seen) > before:
            if series and series[-1][0] == seconds:
                series.pop()
            series.append((seconds, len(seen)))
    return series


@dataclass
class Planned:
    engine: str
    target: str
    guided: bool
    repetition: int  # from 1
    seed: int

    @property
    def name(self) -> str:
        kind = "guided" if self.guided else "unguided"
        return f"{self.repetition}-{self.target}-{self.engine}-{kind}"


@dataclass
class Measured(Planned):
    """One run."""

    seconds: float  # of fuzzing
    walks: int
    processes: int
    kept: int  # inputs that the engine added to its seeds
    edges: Series = field(default_factory=list)
    buckets: Series = field(default_factory=list)


@dataclass(frozen=True)
class Band:
    """Median and extremes of several runs' values."""

    middle: float
    low: int
    high: int


def band(runs: Sequence[Measured], what: str, seconds: float) -> Band:
    """Over `what` ("edges", "buckets") of these runs, at least one, at a time."""
    values = [at(getattr(run, what), seconds) for run in runs]
    return Band(median(values), min(values), max(values))


@dataclass(frozen=True)
class Pair:
    """The guided and the unguided runs of one engine on one target."""

    engine: str
    target: str
    guided: tuple[Measured, ...]
    unguided: tuple[Measured, ...]

    def ahead(self, what: str, seconds: float) -> float:
        """Of all pairs of a guided and an unguided run, how many the guided one wins; a tie is a half."""
        return sum(
            0.5 * ((one > other) + (one >= other))
            for one in (at(getattr(run, what), seconds) for run in self.guided)
            for other in (at(getattr(run, what), seconds) for run in self.unguided)
        )

    @property
    def pairs(self) -> int:
        return len(self.guided) * len(self.unguided)


def paired(runs: Sequence[Measured]) -> list[Pair]:
    """Runs by target and engine, in the order in which these first come; only where both kinds are."""
    kinds = dict.fromkeys((run.target, run.engine) for run in runs)
    pairs = []
    for target, engine in kinds:
        own = [run for run in runs if (run.target, run.engine) == (target, engine)]
        guided = tuple(run for run in own if run.guided)
        unguided = tuple(run for run in own if not run.guided)
        if guided and unguided:
            pairs.append(Pair(engine, target, guided, unguided))
    return pairs
