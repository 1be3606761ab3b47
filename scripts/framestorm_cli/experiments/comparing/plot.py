"""A comparison as a picture: medians of the runs, and the band between the least and the most."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from framestorm_cli.experiments.comparing.series import Measured, Pair, band, paired
from framestorm_cli.experiments.comparing.table import ENGINE_NAMES, WHAT

_POINTS = 240
_FIRST = 1.0  # seconds: by then the seeds are walked, and what comes after that is the picture
# Told apart by those who see few colours, and in print (Okabe and Ito's blue and vermilion).
_KINDS = (("guided", "#0072B2", "-"), ("unguided", "#D55E00", "--"))


def draw(runs: Sequence[Measured], seconds: float, file: Path, title: str) -> None:
    """Writes a picture (PNG, SVG or PDF, by the file's name). Needs at least one pair of runs."""
    pairs = paired(runs)
    with mpl.rc_context({**mpl.rcParamsDefault, "svg.hashsalt": "framestorm", "font.size": 9}):
        figure = Figure(figsize=(3.4 * len(pairs) + 0.6, 5.6), facecolor="white")
        grid = figure.subplots(len(WHAT), len(pairs), squeeze=False, sharex=True)
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
        figure.suptitle(title, fontsize=11)
        figure.legend(handles, labels, loc="lower center", ncols=len(_KINDS), frameon=False)
        figure.tight_layout(rect=(0, 0.05, 1, 1))
        figure.savefig(file, dpi=120)


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
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
