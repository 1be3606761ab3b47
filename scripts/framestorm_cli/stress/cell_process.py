"""One cell's process from its start to what is known when it has ended."""

import contextlib
import os
import resource
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.findings import records
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes
from framestorm_cli.native.processes import Popen
from framestorm_cli.stress import agent, rates, stacks
from framestorm_cli.stress.cells import SELF_MODE, UNSAMPLED, Cell
from framestorm_cli.stress.workloads import Workload

MOST_LIMITS = 10.0  # times its limit that a cell may take on the busiest machine
STACKS_LIMIT = 90.0  # seconds that taking the stacks of a hung cell may need
_START = 1.0  # seconds that a JVM takes, about
_STILL_WALKING = 3.0  # seconds without a walk more after which a cell stands still
_GRACE = 10.0  # seconds from being asked to end to a hang, and a quarter of the limit
_SLOW_ENDS = 4.0  # times its limit that the end of a slowed down program may take
TERMINATED = (143, -15)  # exit codes of a JVM that was asked to end


@dataclass
class CellProcess:
    """A running cell. `seconds`: when a program without a clock of its own is asked to end."""

    cell: Cell
    number: int
    folder: Path
    workload: Workload
    seed: int
    command: list[str]
    environment: dict[str, str]
    popen: Popen
    seconds: float | None
    limit: float
    began: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.time)
    asked_to_end: float | None = None
    hung: bool = False
    slowed: bool = False  # when it was ended, sampling was leaving it too little of its time
    cut_short: bool = False  # asked to end at its limit: a profiler was leaving it too little
    interrupted: bool = False
    stats: Json = field(default_factory=dict)
    walked: int = 0
    last_walk: float = field(
        default_factory=time.monotonic
    )  # when there were more walks than before
    used: resource.struct_rusage | None = None  # once it has ended
    ended: float | None = None  # or when it was found to hang

    @property
    def agent_folder(self) -> Path:
        return self.folder / agent.OUT

    @property
    def elapsed(self) -> float:
        """Seconds of wall time until it ended."""
        return (self.ended or time.monotonic()) - self.began

    @property
    def grace(self) -> float:
        """Seconds that it may take to end when it is asked to: what is slowed down ends slowly."""
        return _GRACE + (_SLOW_ENDS * self.limit if self.cut_short else self.limit / 4)

    def poll(self) -> bool:
        """Reads the news; False when the process has ended."""
        before = self.walked
        self.stats = records.read_last_stats(self.agent_folder) or self.stats
        self.walked = self._walked()
        if self.walked != before:
            self.last_walk = time.monotonic()
        self.used = processes.reap(self.popen) or self.used
        now = time.monotonic()
        if self.popen.returncode is not None:
            self.ended = self.ended or now
            return False
        if self.asked_to_end is None and self._time_is_over():
            self.asked_to_end = now
            self.popen.terminate()
        # One that was asked late, on a busy machine, has the time to do it all the same.
        asked = self.asked_to_end
        late = now - asked > self.grace if asked is not None else self._over_its_limit()
        if late and asked is None and self._is_profiled() and self._still_walked(now):
            # A recording is whole only once its profiler has stopped.
            self.cut_short = True
            self.asked_to_end = now
            self.popen.terminate()
            late = False
        if late and not self.hung:
            self.hung = True
            self.ended = now
            slow = self.cell.mode == SELF_MODE or rates.slows_down(self.stats)
            self.slowed = slow and self._still_walked(now)
            # Beside the other cells: gdb needs a while.
            threading.Thread(target=self._end_hung, name="stacks").start()
        return True

    def _is_profiled(self) -> bool:
        return self.cell.mode == SELF_MODE and self.cell.walker != UNSAMPLED

    def _still_walked(self, now: float) -> bool:
        return now - self.last_walk < _STILL_WALKING

    def _walked(self) -> int:
        """Grows while threads are sampled: walks, or bytes of a recording."""
        if self.cell.mode != SELF_MODE:
            return int(self.stats.get("samples") or 0)
        recorded = self.agent_folder.rglob("*.jfr")
        return sum(file.stat().st_size for file in recorded if file.exists())

    def _time_is_over(self) -> bool:
        if self.workload.own_clock or self.seconds is None:
            return False
        if self.cell.mode == SELF_MODE:  # whose sampler says nothing while it records
            return self.elapsed >= self.seconds + _START
        return float(self.stats.get("seconds") or 0.0) >= self.seconds

    def _over_its_limit(self) -> bool:
        """On a machine with other work on it, what a cell waits for a core is not the cell's."""
        elapsed = self.elapsed
        if elapsed <= self.limit:
            return False
        return (
            elapsed - processes.starved(self.popen.pid) > self.limit
            or elapsed > MOST_LIMITS * self.limit
        )

    def _end_hung(self) -> None:
        try:
            stacks.take(self.popen.pid, Path(self.command[0]), self.folder, STACKS_LIMIT)
        finally:
            self.signal_group(signal.SIGKILL)

    def interrupt(self) -> None:
        """Ends it in order, so that the agent writes what it has."""
        self.interrupted = True
        self.popen.terminate()

    def kill(self) -> None:
        self.signal_group(signal.SIGKILL)
        processes.reap(self.popen, wait=True)

    def signal_group(self, number: int) -> None:
        """To everything that the program started, too. It leads its group (native.start)."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, number)


def start(
    cell: Cell,
    number: int,
    folder: Path,
    workload: Workload,
    seed: int,
    command: list[str],
    environment: dict[str, str],
    seconds: float | None,
    limit: float,
) -> CellProcess:
    """Starts a cell in its folder. `environment` is its alone: what starts it would preload, too."""
    given = [f"{name}={value}" for name, value in environment.items()]
    popen = processes.start([*(["env", *given] if given else []), *command], folder)
    return CellProcess(
        cell, number, folder, workload, seed, command, environment, popen, seconds, limit
    )
