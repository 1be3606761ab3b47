"""An evaluation as a picture: wall and user time, samples, per workload."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from framestorm_cli.experiments.measured import CONDITIONS, NONE, Row
from framestorm_cli.experiments.plots import BLUE, GREEN, GREY, ORANGE, VERMILION, sheet, tidy
from framestorm_cli.stress import units

_WHAT = (("wall", "wall time, s"), ("user", "user time, s"), ("samples", "samples a run"))
_COLOURS = dict(zip(CONDITIONS, (GREY, BLUE, GREEN, ORANGE, VERMILION), strict=True))


def draw(rows: Sequence[Row], file: Path, title: str) -> None:
    """Writes a picture (PNG, SVG or PDF, by the file's name)."""
    programs = list(dict.fromkeys((row.role, row.workload) for row in rows))
    size = (5.4 * len(programs), 7.6)
    with sheet(file, title, size, len(_WHAT), len(programs)) as (figure, grid):
        for column, (role, workload) in enumerate(programs):
            own = [row for row in rows if (row.role, row.workload) == (role, workload)]
            for line, (what, name) in enumerate(_WHAT):
                axes = grid[line][column]
                _bars(axes, own, what)
                if line == 0:
                    axes.set_title(f"{role}: {workload}", fontsize=10)
                if column == 0:
                    axes.set_ylabel(name)
        figure.tight_layout(rect=(0, 0, 1, 0.98))


def _bars(axes: Axes, rows: Sequence[Row], what: str) -> None:
    shown = [row for row in rows if what != "samples" or row.condition != NONE]
    labels = []
    for at, row in enumerate(shown):
        spread = row.spread(what)
        label = row.condition.removesuffix("-thread") if row.condition != NONE else "no\nagent"
        if row.interval_ns:
            label += f"\n{units.interval_text(row.interval_ns)}"
        labels.append(label)
        if spread is None:
            axes.text(at, 0, "no run", ha="center", va="bottom", rotation=90, color="#a00000")
            continue
        error = 0.0 if math.isnan(spread.deviation) else spread.deviation
        axes.bar(at, spread.mean, yerr=error, capsize=3, color=_COLOURS[row.condition], width=0.7)
        text = f"{spread.mean:,.0f}" if what == "samples" else f"{spread.mean:.2f}"
        axes.annotate(
            text, (at, spread.mean + error), ha="center", va="bottom", fontsize=8,
            textcoords="offset points", xytext=(0, 2),
        )  # fmt: skip
    axes.set_xticks(range(len(shown)), labels, fontsize=6.5)
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    tidy(axes, axis="y")
