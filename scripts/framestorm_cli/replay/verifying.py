"""Verification: which buckets come back in fresh JVMs, and by which of their artifacts.

One bucket after the other would let a few that never come back take all the time, so the next fresh
JVM always goes to the bucket that had the fewest so far.
"""

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request, Try
from framestorm_cli.triage.buckets import LEAST_SHARE, Bucket, Tried, Verification

CANDIDATES = 5  # artifacts of a bucket that are tried at most
LEAST_TRIES = 3  # fresh JVMs a bucket gets however long it takes
SOFT_LIMIT = 150.0  # seconds; after this no bucket gets more than LEAST_TRIES
TRY_LIMIT = 15.0  # seconds a try may take beside the start of its JVM
STARTS = 4  # a start may take this many times as long as the slowest one of the run


@dataclass
class _Candidate:
    """One artifact and what its tries came to."""

    finding: Finding
    tries: int = 0
    hits: int = 0
    running: int = 0
    failed: str = ""  # why it cannot be tried

    @property
    def missed(self) -> bool:
        return self.hits < self.tries

    @property
    def rank(self) -> tuple[bool, float]:
        # (k + 1) / (n + 2): 1 of 1 says less than 9 of 10.
        often = self.hits >= LEAST_SHARE * self.tries > 0
        return often, (self.hits + 1) / (self.tries + 2)


@dataclass
class _Progress:
    """One bucket's candidates. The most promising that has not missed yet is tried next; once all
    missed, the best of them, so that its rate is known."""

    bucket: Bucket
    candidates: list[_Candidate]
    confirmed: bool  # what it is, is known: that it comes back once is enough
    done: bool = False

    @property
    def skipped(self) -> str:
        return next((one.failed for one in self.candidates if one.failed), "")

    @property
    def tries(self) -> int:
        return sum(one.tries + one.running for one in self.candidates)

    @property
    def running(self) -> int:
        return sum(one.running for one in self.candidates)

    @property
    def best(self) -> _Candidate:
        return max(self.candidates, key=lambda one: one.rank)

    def next(self, wanted: int) -> _Candidate | None:
        """The candidate to start in another JVM; None when there is nothing (more) to learn."""
        if self.done or self.skipped or not self.candidates:
            return None
        if self.confirmed and (self.best.hits or self.tries == self.running):
            wanted = 1
        fresh = next((one for one in self.candidates if not one.missed), None)
        if fresh is None:
            enough = min(wanted, LEAST_TRIES)
            if self.best.hits == 0 and self.tries >= enough:
                return None
            fresh = self.best
        return fresh if fresh.tries + fresh.running < wanted else None

    def verification(self, least: int = 1) -> Verification:
        """What is known; fewer than `least` tries of an artifact that always came back say nothing."""
        tried = tuple(
            Tried(str(one.finding.artifact), one.tries, one.hits)
            for one in self.candidates
            if one.tries
        )
        if not tried:
            why = self.skipped or ("interrupted" if self.candidates else "no artifact was recorded")
            return Verification(skipped=why)
        if self.best.tries < least and not self.best.missed:
            return Verification(
                skipped=f"interrupted; {self.best.hits} of {self.best.tries} had come back"
            )
        return Verification(self.best.tries, self.best.hits, tried)


@dataclass
class Verifier:
    """Replays the artifacts of buckets, `jobs` JVMs at once.

    `tries`: fresh JVMs per artifact, fewer once `soft_limit` seconds are over. `slowest_start`: seconds
    a JVM took to its first walk in this run; the wall limit of a try follows from it. `confirm`: buckets
    of known causes, for which one JVM that shows them again is enough.

    look() while buckets are still being found, then verify(), which goes on from there, or close().
    """

    toolchain: Toolchain
    symbolizer: Symbolizer
    scratch: Path
    tries: int
    jobs: int
    jvm_args: tuple[str, ...] = ()
    outside: OutsideWalker = outside.NONE
    slowest_start: float = 2.0
    soft_limit: float = SOFT_LIMIT
    confirm: Callable[[Bucket], bool] = lambda _: False
    interrupted: bool = False
    first_hit: float | None = None  # time.monotonic() when the first artifact came back
    _stop: threading.Event = field(default_factory=threading.Event)
    _started: int = 0
    _candidates: dict[Path, _Candidate] = field(default_factory=dict)
    _running: dict[Future[Try | None], tuple[_Progress, _Candidate]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.jobs)

    def look(self, found: list[Bucket]) -> list[tuple[Bucket, Finding]]:
        """Takes what has ended, and starts a JVM, one at a time, for a bucket that had none. Does not
        wait. The buckets that came back for the first time since the last call."""
        came = self._take_ended(0)
        if not self._running:
            self._start_more(self._states(found), 1, 1)
        return came

    def close(self) -> None:
        """Ends what runs."""
        self._stop.set()
        self._pool.shutdown()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _states(self, found: list[Bucket]) -> list[_Progress]:
        return [
            _Progress(bucket, [self._candidate(one) for one in self._chosen(bucket)],
                      self.confirm(bucket))
            for bucket in found
        ]  # fmt: skip

    def _chosen(self, bucket: Bucket) -> list[Finding]:
        """The findings to try; those that were tried when the bucket was smaller stay among them."""
        ordered = bucket.candidates()
        known = {path for path, one in self._candidates.items() if one.tries + one.running}
        return sorted(ordered, key=lambda finding: finding.artifact not in known)[:CANDIDATES]

    def _candidate(self, finding: Finding) -> _Candidate:
        assert finding.artifact is not None
        known = self._candidates.setdefault(finding.artifact, _Candidate(finding))
        known.finding = finding
        return known

    def verify(
        self,
        found: list[Bucket],
        on_news: Callable[[int, int, str], None] = lambda done, tries, line: None,
    ) -> dict[str, tuple[Finding, Verification]]:
        """Per bucket id the finding whose artifact reproduced best, and what is known about it.

        `on_news(buckets done, JVMs so far, line about a bucket that is done or "")`. Ctrl-C ends the
        tries; what is known by then is returned, and `interrupted` set.
        """
        states = self._states(found)
        began = time.monotonic()
        try:
            while True:
                late = time.monotonic() - began > self.soft_limit
                wanted = min(self.tries, LEAST_TRIES) if late else self.tries
                self._start_more(states, self.jobs, wanted)
                self._tell(states, wanted, on_news)
                if not self._running:
                    break
                self._take_ended(0.2)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self.close()
        return {
            one.bucket.id: (
                one.best.finding if one.candidates else one.bucket.best,
                one.verification(1 if one.confirmed else min(self.tries, LEAST_TRIES)),
            )
            for one in states
        }

    def _start_more(self, states: list[_Progress], jobs: int, wanted: int) -> None:
        while len(self._running) < jobs:
            ready = [(one, candidate) for one in states if (candidate := one.next(wanted))]
            if not ready:
                return
            # A bucket whose try is still running may be about to change its candidate.
            state, candidate = min(ready, key=lambda pair: (pair[0].running, pair[0].tries))
            candidate.running += 1
            self._started += 1
            future = self._pool.submit(self._try, candidate.finding, self._started)
            self._running[future] = (state, candidate)

    def _try(self, finding: Finding, number: int) -> Try | None:
        assert finding.artifact is not None
        request = Request(
            finding.artifact,
            finding.signature,
            self.jvm_args,
            self.outside,
            limit=TRY_LIMIT + STARTS * self.slowest_start,
        )
        folder = self.scratch / f"{number:03d}"
        try:
            return replaying.run_try(
                self.toolchain, self.symbolizer, request, folder, self._stop.is_set
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _take_ended(self, seconds: float) -> list[tuple[Bucket, Finding]]:
        """Waits at most so long for one that ends. What came back for the first time."""
        came = []
        ended, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in ended:
            state, candidate = self._running.pop(future)
            before = candidate.hits
            self._take(future, candidate)
            if candidate.hits and not before:
                self.first_hit = self.first_hit or time.monotonic()
                came.append((state.bucket, candidate.finding))
        return came

    @staticmethod
    def _take(future: Future[Try | None], candidate: _Candidate) -> None:
        candidate.running -= 1
        try:
            one = future.result()
        except FramestormError as error:
            candidate.failed = f"replay failed: {error.message}"
            return
        if one is not None:
            candidate.tries += 1
            candidate.hits += one.matched is not None

    def _tell(
        self, states: list[_Progress], wanted: int, on_news: Callable[[int, int, str], None]
    ) -> None:
        for one in states:
            if not one.done and one.running == 0 and one.next(wanted) is None:
                one.done = True
                closed = sum(1 for state in states if state.done)
                on_news(closed, self._started, f"{one.bucket.id} {one.verification()}")
        on_news(sum(1 for one in states if one.done), self._started, "")
