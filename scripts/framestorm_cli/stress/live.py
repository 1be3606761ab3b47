"""Progress of a stress run."""

import time

from framestorm_cli.base.live import LiveLines, duration
from framestorm_cli.stress.cell_process import CellProcess
from framestorm_cli.stress.runner import StressRun
from framestorm_cli.stress.verdicts import CLEAN, VERDICTS

_LATEST = 6  # finished cells that stay in sight


class StressProgress(LiveLines):
    """Call it with the run as often as there is news."""

    def __call__(self, run: StressRun) -> None:
        now = time.monotonic()
        self.show(lambda: _line(run, now), lambda: _more(run))


def _line(run: StressRun, now: float) -> str:
    verdicts = [result.verdict for result in run.finished]
    counts = [f"{verdicts.count(v)} {v}" for v in VERDICTS if v != CLEAN and v in verdicts]
    active = ", ".join(str(process.cell) for process in run.active)
    left = _left(run)
    return (
        f"{duration(now - run.began)}  {len(run.finished)} of {len(run.plan.cells)} cells"
        + (f" ({', '.join(counts)})" if counts else "")
        + f"  {run.samples:,} walks  {run.findings:,} findings"
        + (f"  about {left} left" if left else "")
        + (f"  \\[{active}]" if active else "")
    )


def _left(run: StressRun) -> str:
    """By how long the cells of this run took so far."""
    took = [result.seconds for result in run.finished[run.resumed :]]
    if not took:
        return ""
    return duration(sum(took) / len(took) * run.unfinished / run.plan.parallel)


def _more(run: StressRun) -> list[str]:
    latest = [
        f"  {result.cell}: {result.samples:,} walks, {result.verdict}"
        + (f": {result.why}" if result.why else "")
        for result in run.finished[-_LATEST:]
    ]
    return [line.replace("[", "\\[") for line in latest] + [_cell(one) for one in run.active]


def _cell(process: CellProcess) -> str:
    stats = process.stats
    if process.hung:
        said = "hangs; taking its stacks"
    elif not stats:
        said = "starting"
    else:
        said = (
            f"{int(stats.get('samples') or 0):,} walks, {float(stats.get('rate_hz') or 0):,.0f}/s, "
            f"{int(stats.get('findings') or 0):,} findings"
        )
    return f"> {process.cell}: {process.elapsed:.0f} s, {said}"
