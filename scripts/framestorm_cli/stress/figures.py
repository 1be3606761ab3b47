"""Figures of one cell, or of several together, from their last stats."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from framestorm_cli.reports.schema import Number, said
from framestorm_cli.stress import rates, truth_figures
from framestorm_cli.stress.cell_result import CellResult, ends_of
from framestorm_cli.stress.proportion import Proportion
from framestorm_cli.stress.truth_figures import Truth

QUANTILES = ("p50", "p99", "p99.9", "max")
OK = "ok"  # the code of a walk that gave frames


class Check(msgspec.Struct):
    made: int
    broken: int


class Code(msgspec.Struct, forbid_unknown_fields=True):
    walker: str
    state: str
    code: str
    count: Number


class Figures(msgspec.Struct, forbid_unknown_fields=True):
    """Sums of cells. `lost` by cause."""

    cells: Number
    died: Annotated[int, said("Crashes and hangs of processes.", ge=0)]
    could_not_judge: Number
    samples: Annotated[int, said("Walks.", ge=0)]
    ticks: Number
    contained: Annotated[int, said("Walks that did not return and were contained.", ge=0)]
    findings: Number
    running_seconds: Annotated[float, said("CPU time of the sampled threads.", ge=0)]
    rate_hz: Annotated[float | None, said("Samples per second of a running thread.")]
    ok_share: float | None
    walk_crashes: Proportion
    cell_crashes: Annotated[
        Proportion, said("Cells whose process died, of those that were judged.")
    ]
    lost: dict[str, int]
    checks: dict[str, Check]
    traces: Number
    truncated: Annotated[int, said("Traces that end early, as the walker says.", ge=0)]
    ends_compared: Annotated[
        int, said("Traces whose end was compared with where the thread's stack begins.", ge=0)
    ]
    ends_early: Annotated[int, said("Those of them that end before.", ge=0)]
    continuations: Annotated[
        dict[str, int],
        said(
            "How often walks of the added walkers came to where a virtual thread's frames begin: "
            "`entries` seen, `barriers` beyond which frames are frozen, ... Empty where none did."
        ),
    ]
    codes: list[Code]
    truth: Annotated[
        Truth | None, said("Samples held against shadow stacks; null without --truth.")
    ]

    @property
    def cut(self) -> str:
        """What share of the traces is cut; empty where none is. Of a walker that may be cut that is no
        finding."""
        shares = [f"{self.truncated / self.traces:.1%} truncated"] if self.truncated else []
        if self.ends_early:
            shares.append(f"{self.ends_early / self.ends_compared:.1%} of those compared end early")
        return ", ".join(shares)

    @property
    def at_continuations(self) -> str:
        """Empty where no walk came to one."""
        counts = (f"{count:,} {name}" for name, count in self.continuations.items())
        return f"continuations: {', '.join(counts)}" if self.continuations else ""


def of(results: Iterable[CellResult]) -> Figures:
    """All of them together."""
    cells = list(results)
    running = counted = 0.0
    codes: Counter[tuple[str, str, str]] = Counter()
    lost: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    continuations: Counter[str] = Counter()
    checks: defaultdict[str, Check] = defaultdict(lambda: Check(0, 0))
    for stats in (cell.stats for cell in cells):
        seconds = float(stats.get("running_seconds") or 0.0)
        running += seconds
        counted += seconds * float(stats.get("rate_hz") or 0.0)
        for entry in stats.get("codes") or ():
            codes[entry["walker"], entry["state"], entry["code"]] += int(entry["count"])
        lost.update(stats.get("lost") or {})
        continuations.update(stats.get("continuations") or {})
        ends.update(ends_of(stats))
        for name, check in (stats.get("checks") or {}).items():
            checks[name].made += int(check["made"])
            checks[name].broken += int(check["broken"])
    died = sum(cell.died for cell in cells)
    unjudged = sum(not cell.judged for cell in cells)
    ok = sum(count for (_, _, code), count in codes.items() if code == OK)
    return Figures(
        cells=len(cells),
        died=died,
        could_not_judge=unjudged,
        samples=sum(cell.samples for cell in cells),
        ticks=sum(int(cell.stats.get("ticks") or 0) for cell in cells),
        contained=sum(int(cell.stats.get("contained") or 0) for cell in cells),
        findings=died + sum(cell.findings for cell in cells),
        running_seconds=round(running, 3),
        rate_hz=round(counted / running, 1) if running >= rates.LEAST_SECONDS else None,
        ok_share=round(ok / codes.total(), 6) if codes.total() else None,
        walk_crashes=Proportion.of(
            sum(cell.crashes.hits for cell in cells), sum(cell.crashes.trials for cell in cells)
        ),
        cell_crashes=Proportion.of(died, len(cells) - unjudged),
        lost=dict(lost.most_common()),
        checks=dict(sorted(checks.items())),
        traces=ends["count"],
        truncated=ends["truncated"],
        ends_compared=ends["ends_compared"],
        ends_early=ends["ends_early"],
        continuations=dict(+continuations),
        codes=[Code(*key, count) for key, count in sorted((+codes).items())],
        truth=truth_figures.of(cell.stats for cell in cells),
    )


def by(results: Sequence[CellResult], *names: str) -> dict[tuple[str | int, ...], list[CellResult]]:
    """Cells grouped by fields of theirs, groups in the order of their first cell's number."""
    groups: dict[tuple[str | int, ...], list[CellResult]] = {}
    for result in sorted(results, key=lambda one: one.number):
        groups.setdefault(tuple(getattr(result.cell, name) for name in names), []).append(result)
    return groups


def truth_by_workload(results: Sequence[CellResult]) -> list[tuple[str, truth_figures.WalkerTruth]]:
    """Each workload's walkers, of cells whose samples were held against shadow stacks."""
    rows = []
    for (workload,), group in by(results, "workload").items():
        truth = truth_figures.of(cell.stats for cell in group)
        rows += [(str(workload), one) for one in truth.walkers] if truth else []
    return rows


def worst_p99(group: Sequence[CellResult]) -> float | None:
    """Latency in ns: the worst of the group's cells and walkers."""
    walkers = [one for cell in group for one in (cell.stats.get("latency_ns") or {}).values()]
    return max((float(one["p99"]) for one in walkers if one.get("count")), default=None)
