"""Figures of one cell, or of several together, from their last stats."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from framestorm_cli.reports.schema import Number, said
from framestorm_cli.stress import rates
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.proportion import Proportion, ProportionRecord
from framestorm_cli.stress.verdicts import UNJUDGED

QUANTILES = ("p50", "p99", "p99.9", "max")


@dataclass
class Figures:
    """Sums. `codes` by walker, thread state and code; `lost` by cause."""

    cells: int = 0
    died: int = 0
    unjudged: int = 0
    samples: int = 0
    ticks: int = 0
    contained: int = 0
    findings: int = 0
    running_seconds: float = 0.0
    running_samples: float = 0.0  # those that count for the rate
    crashes: Proportion = field(default_factory=lambda: Proportion(0, 0))
    codes: dict[tuple[str, str, str], int] = field(default_factory=lambda: defaultdict(int))
    lost: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    checks: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def ok(self) -> int:
        return sum(count for (_, _, code), count in self.codes.items() if code == "ok")

    @property
    def ok_share(self) -> float | None:
        total = sum(self.codes.values())
        return self.ok / total if total else None

    @property
    def rate(self) -> float | None:
        """Samples per second of a running thread."""
        enough = self.running_seconds >= rates.LEAST_SECONDS
        return self.running_samples / self.running_seconds if enough else None

    @property
    def cell_crashes(self) -> Proportion:
        """Cells whose process died, of those that were judged."""
        return Proportion(self.died, self.cells - self.unjudged)


def of(results: Iterable[CellResult]) -> Figures:
    """All of them together."""
    total = Figures()
    for result in results:
        stats = result.stats
        total.cells += 1
        total.died += int(result.died)
        total.unjudged += int(result.verdict == UNJUDGED)
        total.samples += result.samples
        total.ticks += int(stats.get("ticks") or 0)
        total.contained += int(stats.get("contained") or 0)
        total.findings += result.findings + int(result.died)
        running = float(stats.get("running_seconds") or 0.0)
        total.running_seconds += running
        total.running_samples += running * float(stats.get("rate_hz") or 0.0)
        crashes = result.crashes
        total.crashes = Proportion(
            total.crashes.hits + crashes.hits, total.crashes.trials + crashes.trials
        )
        for entry in stats.get("codes") or ():
            key = (str(entry["walker"]), str(entry["state"]), str(entry["code"]))
            if count := int(entry["count"]):
                total.codes[key] += count
        for cause, count in (stats.get("lost") or {}).items():
            total.lost[str(cause)] += int(count)
        for name, check in (stats.get("checks") or {}).items():
            made, broken = total.checks.get(str(name), (0, 0))
            total.checks[str(name)] = (made + int(check["made"]), broken + int(check["broken"]))
    return total


class Check(msgspec.Struct):
    made: int
    broken: int


class Code(msgspec.Struct, forbid_unknown_fields=True):
    walker: str
    state: str
    code: str
    count: Number


class FiguresRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Figures as summary.json holds them."""

    cells: Number
    died: Annotated[int, said("Crashes and hangs of processes.", ge=0)]
    could_not_judge: Number
    samples: Annotated[int, said("Walks.", ge=0)]
    ticks: Number
    contained: Annotated[int, said("Walks that did not return and were contained.", ge=0)]
    findings: Number
    running_seconds: Annotated[float, said("CPU time of the sampled threads.", ge=0)]
    rate_hz: float | None
    ok_share: float | None
    walk_crashes: ProportionRecord
    cell_crashes: ProportionRecord
    lost: dict[str, int]
    checks: dict[str, Check]
    codes: list[Code]


def record(figures: Figures) -> FiguresRecord:
    return FiguresRecord(
        cells=figures.cells,
        died=figures.died,
        could_not_judge=figures.unjudged,
        samples=figures.samples,
        ticks=figures.ticks,
        contained=figures.contained,
        findings=figures.findings,
        running_seconds=round(figures.running_seconds, 3),
        rate_hz=round(figures.rate, 1) if figures.rate is not None else None,
        ok_share=round(figures.ok_share, 6) if figures.ok_share is not None else None,
        walk_crashes=figures.crashes.record,
        cell_crashes=figures.cell_crashes.record,
        lost=dict(sorted(figures.lost.items(), key=lambda item: -item[1])),
        checks={name: Check(*counts) for name, counts in sorted(figures.checks.items())},
        codes=[Code(*key, count) for key, count in sorted(figures.codes.items())],
    )


def by(results: Sequence[CellResult], *names: str) -> dict[tuple[str | int, ...], list[CellResult]]:
    """Cells grouped by fields of theirs, groups in the order of their first cell's number."""
    groups: dict[tuple[str | int, ...], list[CellResult]] = {}
    for result in sorted(results, key=lambda one: one.number):
        groups.setdefault(tuple(getattr(result.cell, name) for name in names), []).append(result)
    return groups
