"""A comparison as Markdown tables."""

from collections.abc import Sequence
from statistics import median

from framestorm_cli.experiments.series import Measured, Pair, band, paired
from framestorm_cli.experiments.shared import table

WHAT = {"edges": "walker edges", "buckets": "buckets"}
ENGINE_NAMES = {"libfuzzer": "libFuzzer", "afl": "AFL++"}
_SHARES = (1 / 12, 1 / 4, 1 / 2, 1.0)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def over_time(runs: Sequence[Measured], seconds: float) -> str:
    """Median and extremes of edges and buckets as time goes by."""
    times = [round(seconds * share) or 1 for share in _SHARES]
    head = ["target", "engine", "distinct", "", *(f"{t} s" for t in times), "guided is ahead in"]
    rows = [
        row
        for pair in paired(runs)
        for what, name in WHAT.items()
        for row in _two_rows(pair, what, name, times)
    ]
    return table(head, rows, len(times) + 1)


def _two_rows(pair: Pair, what: str, name: str, times: Sequence[int]) -> list[list[str]]:
    rows = []
    for kind, own in (("guided", pair.guided), ("unguided", pair.unguided)):
        bands = [band(own, what, t) for t in times]
        cells = [f"{_number(b.middle)} ({b.low:,}–{b.high:,})" for b in bands]  # noqa: RUF001
        first = [pair.target, ENGINE_NAMES[pair.engine], name] if kind == "guided" else ["", "", ""]
        ahead = f"{_number(pair.ahead(what, times[-1]))} of {pair.pairs} pairs"
        rows.append([*first, kind, *cells, ahead if kind == "guided" else ""])
    return rows


def how_much(runs: Sequence[Measured]) -> str:
    """Medians of what the runs did."""
    rows = []
    for pair in paired(runs):
        for kind, own in (("guided", pair.guided), ("unguided", pair.unguided)):
            figures = [
                median(run.walks for run in own),
                median(run.walks / run.seconds if run.seconds else 0.0 for run in own),
                median(run.kept for run in own),
                median(run.processes for run in own),
            ]
            cells = [f"{figure:,.0f}" for figure in figures]
            rows.append([pair.target, ENGINE_NAMES[pair.engine], kind, *cells])
    head = ["target", "engine", "", "walks", "walks/s", "inputs kept", "processes"]
    return table(head, rows, 4)
