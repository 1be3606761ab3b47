"""One measured run, and what several of the same sort come to."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from framestorm_cli.stress.cells import MODES
from framestorm_cli.stress.proportion import Proportion

NONE = "no agent"
CONDITIONS = (NONE, *MODES)


@dataclass(frozen=True)
class Measured:
    """`wall`, `user` and `system` in seconds, of the whole process. `role`: busy or parallel. `traces`:
    walks that gave frames; `broken`: those of them that do not end at the bottom of a thread; `judged`
    and `wrong`: traces held against ground truth, which only warming-up runs have."""

    workload: str
    role: str
    condition: str
    interval_ns: int  # 0: no agent
    repetition: int  # 0: a run to warm up
    seed: int
    wall: float
    user: float
    system: float
    samples: int
    ticks: int
    traces: int
    broken: int
    crashes: int  # contained ones, and the one that the process died of
    failed: str  # why the run does not count for times; empty when it does
    judged: int = 0
    wrong: int = 0


@dataclass(frozen=True)
class Spread:
    mean: float
    deviation: float  # of the runs, not of the mean

    @staticmethod
    def of(values: Sequence[float]) -> "Spread | None":
        if not values:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return Spread(statistics.fmean(values), deviation)


@dataclass(frozen=True)
class Row:
    """All repetitions of one workload, condition and interval, and what warmed up."""

    workload: str
    role: str
    condition: str
    interval_ns: int
    runs: tuple[Measured, ...]
    warm_up: tuple[Measured, ...] = ()

    @property
    def whole(self) -> list[Measured]:
        """Runs that did their work: the others' times say nothing."""
        return [run for run in self.runs if not run.failed]

    def spread(self, name: str) -> Spread | None:
        return Spread.of([float(getattr(run, name)) for run in self.whole])

    @property
    def samples(self) -> int:
        return sum(run.samples for run in self.runs)

    @property
    def crashes(self) -> Proportion:
        hits = sum(run.crashes for run in self.runs)
        return Proportion.of(hits, max(hits, self.samples))

    @property
    def trace_share(self) -> float | None:
        return sum(run.traces for run in self.runs) / self.samples if self.samples else None

    @property
    def wrong(self) -> Proportion | None:
        """Traces that are not the thread's own, of those that were judged."""
        judged = sum(run.judged for run in self.warm_up)
        return Proportion.of(sum(run.wrong for run in self.warm_up), judged) if judged else None

    @property
    def broken_share(self) -> float | None:
        traces = sum(run.traces for run in self.runs)
        return sum(run.broken for run in self.runs) / traces if traces else None


def rows(runs: Iterable[Measured]) -> list[Row]:
    """By workload, interval and condition, in the order they are shown in."""
    groups: dict[tuple[str, str, int, str], list[Measured]] = {}
    for run in runs:
        groups.setdefault((run.role, run.workload, run.interval_ns, run.condition), []).append(run)
    made = [
        Row(
            workload,
            role,
            condition,
            interval,
            runs=tuple(run for run in group if run.repetition),
            warm_up=tuple(run for run in group if not run.repetition),
        )
        for (role, workload, interval, condition), group in groups.items()
    ]
    return sorted(
        made,
        key=lambda row: (row.role, row.workload, row.interval_ns, CONDITIONS.index(row.condition)),
    )


def baseline(of: Row, every: Iterable[Row]) -> Row | None:
    """The row of the same workload without an agent."""
    return next(
        (
            row
            for row in every
            if row.condition == NONE and (row.role, row.workload) == (of.role, of.workload)
        ),
        None,
    )


def roots(stacks: Iterable[tuple[list[str], int]], least_share: float = 0.001) -> set[str]:
    """What stacks begin with at the bottom of a thread: the outermost frames that are not rare."""
    counts: dict[str, int] = {}
    for stack, count in stacks:
        name = _plain(stack[0])
        counts[name] = counts.get(name, 0) + count
    least = least_share * sum(counts.values())
    return {name for name, count in counts.items() if count >= least}


def broken(stacks: Iterable[tuple[list[str], int]], whole: set[str]) -> tuple[int, int]:
    """Traces, and those of them that do not begin with one of these."""
    total = bad = 0
    for stack, count in stacks:
        total += count
        bad += 0 if _plain(stack[0]) in whole else count
    return total, bad


def _plain(name: str) -> str:
    """Without how it was compiled, and what differs between two JVMs: `A$$Lambda.0x0000.run`."""
    base = name.rsplit("_[", 1)[0] if name.endswith("]") else name
    return ".".join(part for part in base.split(".") if not part.startswith("0x"))
