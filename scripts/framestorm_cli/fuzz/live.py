"""Progress of a run: lines that renew themselves on a terminal, plain lines elsewhere."""

import time
from typing import Self

from framestorm_cli.base import steps
from framestorm_cli.base.live import PLAIN_EVERY, LiveLines, duration
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.target_process import Process


class Progress(LiveLines):
    """Of a fuzz run; call it with the run."""

    def __init__(self) -> None:
        super().__init__()
        self._last = (0.0, 0)  # time and walks, for the current rate

    def __call__(self, run: Run) -> None:
        now = time.monotonic()
        self.show(lambda: self._line(run, now), lambda: map(_process_line, run.active))

    def _line(self, run: Run, now: float) -> str:
        totals = run.totals()
        walks = int(totals.get("walks", 0))
        rate = self._rate(now, walks)
        active = ", ".join(process.target.removeprefix("fuzz_") for process in run.active)
        left = self._left(run)
        return (
            f"{duration(now - run.began)}  {walks:,} walks  {rate:,.0f}/s  "
            f"{_share(totals)} succeeded  {int(totals.get('findings', 0)):,} findings"
            + (f"  {edges:,} edges" if (edges := run.edges()) is not None else "")
            + (f"  {left} left" if left else "")
            + (f"  [{active}]".replace("[", r"\[") if active else "")
        )

    def _rate(self, now: float, walks: int) -> float:
        then, before = self._last
        if then == 0.0 or walks < before:
            self._last = (now, walks)
            return 0.0
        rate = (walks - before) / max(now - then, 1e-3)
        if now - then > PLAIN_EVERY:
            self._last = (now, walks)
        return rate

    def _left(self, run: Run) -> str:
        if run.options.seconds is None or run.options.runs is not None:
            return ""
        # Shares count from the first walk of a slice, so JVM starts do not use them up.
        planned = run.options.seconds * run.options.jobs
        return duration((planned - sum(p.spent for p in run.processes)) / run.options.jobs)


def _process_line(process: Process) -> str:
    if not process.walks:
        return f"  {process.target}: starting a JVM"
    return (
        f"  {process.target}: {process.walks:,} walks, "
        f"{int(process.stats.get('findings', 0)):,} findings, "
        f"{int(process.stats.get('rss_kb', 0)) // 1024} MiB"
    )


def _share(totals: dict[str, int]) -> str:
    walks = totals.get("walks", 0)
    return f"{totals.get('succeeded', 0) / walks:.0%}" if walks else "-"


class VerificationProgress(LiveLines):
    """The same for the fresh JVMs after a run; see Verifier.verify's `on_news`."""

    plain_every = 0.0

    def __init__(self, buckets: int) -> None:
        super().__init__()
        self._buckets = buckets

    def __enter__(self) -> Self:
        if self._buckets and not self.on_terminal:
            self.say(f"replaying the findings of {self._buckets} bucket(s) in fresh JVMs")
        return super().__enter__()

    def __call__(self, done: int, jvms: int, line: str) -> None:
        if self.on_terminal:
            self.show(
                lambda: (
                    f"replaying the findings in fresh JVMs: {done} of {self._buckets} buckets done, "
                    f"{jvms} JVMs started"
                )
            )
        elif line:
            self.say(line)

    def say(self, line: str) -> None:
        steps.say(line)
