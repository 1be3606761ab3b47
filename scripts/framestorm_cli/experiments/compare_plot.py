"""A comparison as a picture: medians of the runs, and the band between the least and the most."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from framestorm_cli.experiments.compare_table import ENGINE_NAMES, WHAT
from framestorm_cli.experiments.plots import BLUE, VERMILION, sheet, tidy
from framestorm_cli.experiments.series import Measured, Pair, band, paired

_POINTS = 240
_FIRST = 1.0  # seconds: by then the seeds are walked, and what comes after that is the picture
_KINDS = (("guided", BLUE, "-"), ("unguided", VERMILION, "--"))


def draw(runs: Sequence[Measured], seconds: float, file: Path, title: str) -> None:
    """Writes a picture (PNG, SVG or PDF, by the file's name). Needs at least one pair of runs."""
    pairs = paired(runs)
    size = (3.4 * len(pairs) + 0.6, 5.6)
    with sheet(file, title, size, len(WHAT), len(pairs), sharex=True) as (figure, grid):
        for column, pair in enumerate(pairs):
            for row, (what, name) in enumerate(WHAT.items()):
                axes = grid[row][column]
                _draw_one(axes, pair, what, seconds)
                if row == 0:
                    axes.set_title(f"{pair.target}, {ENGINE_NAMES[pair.engine]}", fontsize=10)
                if row == len(WHAT) - 1:
                    axes.set_xlabel("seconds of fuzzing")
                if column == 0:
                    axes.set_ylabel(f"distinct {name}")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=len(_KINDS), frameon=False)
        figure.tight_layout(rect=(0, 0.05, 1, 1))


def _draw_one(axes: Axes, pair: Pair, what: str, seconds: float) -> None:
    # Close together in the beginning, when most is found.
    times = [seconds * (step / _POINTS) ** 2 for step in range(1, _POINTS + 1)]
    for (kind, colour, line), own in zip(_KINDS, (pair.guided, pair.unguided), strict=True):
        bands = [band(own, what, t) for t in times]
        label = f"{kind}: median of {len(own)} runs, band from least to most"
        axes.plot(times, [b.middle for b in bands], line, color=colour, linewidth=1.6, label=label)
        axes.fill_between(
            times, [b.low for b in bands], [b.high for b in bands], color=colour, alpha=0.2,
            linewidth=0,
        )  # fmt: skip
    if what == "edges":
        both = (pair.guided, pair.unguided)
        low = min(band(own, what, _FIRST).low for own in both)
        high = max(band(own, what, seconds).high for own in both)
        axes.set_ylim(low - 0.05 * (high - low) - 1, high + 0.05 * (high - low) + 1)
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(0, seconds)
    tidy(axes)
