"""How pictures of experiments look."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's: told apart by those who see few colours, and in print.
GREY, BLUE, GREEN, ORANGE, VERMILION = "#7f7f7f", "#0072B2", "#009E73", "#E69F00", "#D55E00"


@contextmanager
def sheet(
    file: Path, title: str, size: tuple[float, float], rows: int, columns: int, **more: Any
) -> Iterator[tuple[Figure, Any]]:
    """A figure and its grid of axes, written to `file` (PNG, SVG or PDF, by its name) at the end."""
    with mpl.rc_context({**mpl.rcParamsDefault, "svg.hashsalt": "framestorm", "font.size": 9}):
        figure = Figure(figsize=size, facecolor="white")
        figure.suptitle(title, fontsize=11)
        yield figure, figure.subplots(rows, columns, squeeze=False, **more)
        figure.savefig(file, dpi=120)


def tidy(axes: Axes, **grid: Any) -> None:
    axes.grid(alpha=0.3, **grid)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
