"""Time until found, with runs that ended before they found anything: curves, and tests between contestants.

Seconds are Measured.found; a run without is censored at its end, which the starts of its JVMs put off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from matplotlib.ticker import ScalarFormatter
from scipy import stats

from framestorm_cli.detect.measuring import Measured
from framestorm_cli.experiments.plots import BLUE, GREEN, GREY, VERMILION, sheet, tidy

_LINES = ("-", "--", ":")


@dataclass(frozen=True)
class Compared:
    """Two contestants on the bugs that both looked for. p values, two-sided: `times` of the log-rank test on
    times until found, `share` of Fisher's exact test on the runs that found."""

    one: str
    other: str
    runs: int
    others: int
    times: float
    share: float


def censored(runs: Sequence[Measured]) -> stats.CensoredData:
    """Of runs on bugs, at least one."""
    return stats.CensoredData(
        uncensored=[one.found for one in runs if one.found is not None],
        right=[one.ended for one in runs if one.found is None],
    )


def curve(runs: Sequence[Measured]) -> tuple[list[float], list[float]]:
    """Seconds, ascending, and the share of runs that have found by then (Kaplan and Meier's estimate)."""
    estimated = stats.ecdf(censored(runs)).cdf
    return [float(one) for one in estimated.quantiles], [
        float(one) for one in estimated.probabilities
    ]


def compared(runs: Sequence[Measured]) -> list[Compared]:
    """Every pair of contestants that have runs on the same bugs."""
    names = list(dict.fromkeys(one.contestant for one in runs))
    found = []
    for one, other in combinations(names, 2):
        own, others = _on_same_bugs(runs, one, other)
        if own and others:
            hits = [sum(1 for run in side if run.found is not None) for side in (own, others)]
            table = [[hits[0], len(own) - hits[0]], [hits[1], len(others) - hits[1]]]
            times = stats.logrank(censored(own), censored(others)).pvalue if any(hits) else 1.0
            share = stats.fisher_exact(table).pvalue
            found.append(Compared(one, other, len(own), len(others), float(times), float(share)))
    return found


def _on_same_bugs(
    runs: Sequence[Measured], one: str, other: str
) -> tuple[list[Measured], list[Measured]]:
    sides = [[run for run in runs if run.contestant == name] for name in (one, other)]
    both = {run.bug for run in sides[0]} & {run.bug for run in sides[1]}
    own, others = ([run for run in side if run.bug in both] for side in sides)
    return own, others


def draw(runs: Sequence[Measured], file: Path) -> None:
    """The share of runs that have found their bug by when, a curve for each contestant."""
    names = list(dict.fromkeys(one.contestant for one in runs))
    last = max(one.ended for one in runs)
    with sheet(file, "Runs that have found their bug", (7.2, 4.2), 1, 1) as (figure, grid):
        axes = grid[0][0]
        for number, name in enumerate(names):
            own = [one for one in runs if one.contestant == name]
            colour = (BLUE, VERMILION, GREEN, GREY)[number % 4]
            line = _LINES[number // 4 % len(_LINES)]
            times, shares = curve(own)
            axes.step(
                [0.0, *times, last], [0.0, *shares, shares[-1]], line, where="post", color=colour,
                label=f"{name}, {len(own)} runs",
            )  # fmt: skip
        axes.set_xscale("symlog", linthresh=10)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set_xlim(0, last)
        axes.set_ylim(0, 1)
        axes.set_xlabel("seconds of one core")
        axes.set_ylabel("share of runs")
        axes.legend(frameon=False, loc="best", fontsize=8)
        tidy(axes)
        figure.tight_layout()
