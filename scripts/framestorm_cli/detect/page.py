"""The page of `framestorm detect`."""

import base64
from collections.abc import Sequence
from pathlib import Path

from framestorm_cli.base import files
from framestorm_cli.base.machine import Machine
from framestorm_cli.detect import survival, tables
from framestorm_cli.detect.measuring import Measured
from framestorm_cli.reports import templates

PAGE, CURVE = "detect.html", "detect.png"


def write(runs: Sequence[Measured], machine: Machine, folder: Path) -> None:
    """Page and curve, of runs of which one counts at least. Raises OSError."""
    own = tables.counted(runs)
    survival.draw(own, folder / CURVE)
    titles, rows = tables.bug_rows(own)
    text = (
        templates.environment("framestorm_cli.detect")
        .get_template(PAGE)
        .render(
            head=tables.head(runs, machine),
            contestant_titles=tables.CONTESTANT_TITLES,
            contestant_rows=tables.contestant_rows(runs),
            compared=tables.compared_rows(runs),
            curve=base64.b64encode((folder / CURVE).read_bytes()).decode(),
            oracle_titles=tables.ORACLE_TITLES,
            oracle_rows=tables.oracle_rows(own),
            bug_titles=titles,
            bug_rows=rows,
            first=tables.first_reports(runs),
        )
    )
    files.write_text(folder / PAGE, text)
