"""`framestorm fuzz`: the targets as processes, restarted when they die, watched while they run.

lanes (schedule.py) ──> Process ──> out/<run>/work/<n>-<target>/  stats.jsonl findings.jsonl ...
                           │ died, or no longer reusable: another for the slice's remaining time
                           └──> Run: everything the processes of a run left behind
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from framestorm_cli.base import steps
from framestorm_cli.findings import records
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz import afl_process, schedule, target_process
from framestorm_cli.fuzz.found_inputs import Collector
from framestorm_cli.fuzz.schedule import Slice
from framestorm_cli.fuzz.target_process import FuzzOptions, Process
from framestorm_cli.native import processes as native
from framestorm_cli.native.toolchain import Toolchain

POLL = 0.2
LOWEST_FREE = 50 << 20  # bytes at which a run is ended in order, so that its results can be written
FAILED_STARTS = 3  # in a row: the target cannot run


@dataclass
class Run:
    """All processes of one run and why it ended early, if it did."""

    options: FuzzOptions
    processes: list[Process] = field(default_factory=list)  # those that walk
    afl: list[afl_process.AflInstance] = field(default_factory=list)
    unable: dict[str, str] = field(default_factory=dict)  # target: why it could not run
    stopped: str = ""  # "interrupted", "strict: ...", "disk full ..."
    began: float = field(default_factory=time.monotonic)
    wall: float = 0.0

    @property
    def active(self) -> list[Process]:
        return [process for process in self.processes if not process.ended]

    def edges(self, target: str | None = None) -> int | None:
        """Most edges of libjvm that a process covered; None without coverage."""
        return max(
            (
                process.edges
                for process in self.processes
                if process.edges is not None and target in (None, process.target)
            ),
            default=None,
        )

    def short_of(self, enough: int) -> dict[str, int]:
        """How often targets have walked that do walk, but less often than `enough`."""
        made = {target: int(self.totals(target).get("walks", 0)) for target in self.options.targets}
        return {
            target: walks
            for target, walks in made.items()
            if target not in self.unable and 0 < walks < enough
        }

    def totals(self, target: str | None = None) -> Json:
        """Merged stats of all processes, or of one target's."""
        merged: Json = {}
        for process in self.processes:
            if target is None or process.target == target:
                records.merge_stats(merged, process.stats)
        return merged


class _Lane:
    """Works through its slices, one process at a time."""

    def __init__(self, fuzzer: "Fuzzer", slices: list[Slice]) -> None:
        self._fuzzer = fuzzer
        self._slices = list(slices)
        self._failed_starts = 0
        self.process: Process | None = None

    def step(self) -> bool:
        """Starts or watches; False when nothing is left to do."""
        if self.process is None:
            if not self._slices:
                return False
            piece = self._slices.pop(0)
            if piece.target in self._fuzzer.run.unable:
                return True
            self.process = self._fuzzer.start(piece)
            return True
        process = self.process
        process.poll()
        if process.popen.poll() is None:
            if not process.overdue():
                return True
            native.write_stuck_report(process.popen.pid, process.folder / "stuck.txt")
            native.end(process.popen)
            process.finish(did_not_end=True)
        else:
            process.finish()
        self._fuzzer.collect(process)
        self.process = None
        self._follow_up(process)
        return True

    def _follow_up(self, process: Process) -> None:
        """Another process for the remaining time, unless this one ended as it should."""
        run = self._fuzzer.run
        if process.setup_error and not process.walks:
            run.unable[process.target] = process.setup_error
            return
        if process.exit in (0, native.EXIT_STRICT):
            return
        # Each mutant that ends a process is not tried again, so the next one comes further.
        by_mutant = process.death and run.options.mutants
        failed = process.setup_error or (not process.walks and not by_mutant)
        self._failed_starts = self._failed_starts + 1 if failed else 0
        if failed and process.death:
            self._fuzzer.set_aside(process)
        elif not failed:
            self._fuzzer.set_last_aside(process)
        if self._failed_starts >= FAILED_STARTS:
            how = process.death.how if process.death else f"exit {process.exit}"
            run.unable[process.target] = process.setup_error or (
                f"{FAILED_STARTS} processes in a row ended before their first walk ({how}); "
                f"see {process.folder / 'log.txt'}"
            )
            self._failed_starts = 0
            return
        seconds, runs = process.slice.seconds, process.slice.runs
        if seconds is not None:
            seconds -= process.spent
        if runs is not None:
            runs -= process.walks
        if (seconds is None or seconds >= schedule.SHORTEST) and (runs is None or runs > 0):
            self._slices.insert(0, Slice(process.target, seconds, runs, resumed=True))


class Fuzzer:
    """Runs the lanes until they are done, or a reason to stop comes up. `watch` is called about five
    times a second; Ctrl-C ends the processes in order and keeps what they found."""

    def __init__(self, toolchain: Toolchain, options: FuzzOptions) -> None:
        self._toolchain = toolchain
        self._options = options
        self.run = Run(options)
        self._collector = Collector(options.out / "corpus")
        self._lanes: list[_Lane] = []
        self._started = 0

    def fuzz(self, watch: Callable[[Run], None] = lambda _: None) -> Run:
        options = self._options
        if options.runs is not None:
            plan = schedule.lanes_by_runs(
                options.targets, options.jobs, options.runs, options.seconds
            )
        else:
            plan = schedule.lanes(
                options.targets, options.jobs, options.seconds or 60.0, options.weights
            )
        return self._work(plan, watch)

    def make_up(
        self, enough: int, seconds: float, watch: Callable[[Run], None] = lambda _: None
    ) -> Run:
        """The same run goes on with the targets that have walked less often than `enough`, as a busy machine
        makes them, for `seconds` each at most."""
        short = self.run.short_of(enough)
        lanes: list[list[Slice]] = [[] for _ in range(self._options.jobs)]
        for index, (target, walks) in enumerate(short.items()):
            lanes[index % len(lanes)].append(Slice(target, seconds, enough - walks))
        return self._work(lanes, watch) if short and not self.run.stopped else self.run

    def _work(self, plan: list[list[Slice]], watch: Callable[[Run], None]) -> Run:
        self._lanes = [_Lane(self, slices) for slices in plan]
        try:
            while True:
                busy = [lane.step() for lane in self._lanes]
                if not any(busy):
                    break
                watch(self.run)
                self._check_stop()
                if self.run.stopped:
                    break
                time.sleep(POLL)
        except KeyboardInterrupt:
            self.run.stopped = "interrupted"
        finally:
            self._end_all()
            self.run.wall = time.monotonic() - self.run.began
        watch(self.run)
        return self.run

    def start(self, piece: Slice) -> Process:
        number = self._started
        self._started += 1
        folder = self._options.out / "work" / f"{number:03d}-{piece.target}"
        folder.mkdir(parents=True)
        seed = self._options.seed + number
        found = self._collector.folder(piece.target)
        corpus = target_process.corpus_of(self._options, piece.target, found)
        arguments = (self._toolchain, self._options, piece, seed, folder, corpus)
        if self._options.engine == "afl":
            instance = afl_process.start(
                *arguments, self.run.processes, afl_process.core_for(self.run.afl)
            )
            self.run.afl.append(instance)
            return instance
        process = target_process.start(*arguments)
        self.run.processes.append(process)
        return process

    def collect(self, process: Process) -> None:
        """Keeps the inputs a process found, for its successors and for other runs."""
        self._collector.collect(process.target, process.found())

    def set_aside(self, process: Process) -> None:
        """After a death before the first walk: what processes before it found may be why."""
        if aside := self._collector.set_aside(process.target):
            steps.say(
                f"{process.target} ended before its first walk; the inputs it began with are set aside: "
                f"{aside}"
            )

    def set_last_aside(self, process: Process) -> None:
        """After any other untimely end. An input of the corpus that was walked last would most likely end
        the next process, too, before it had got further."""
        last = records.read_current_input(process.folder)
        if last is not None:
            self._collector.set_one_aside(process.target, last)

    def _check_stop(self) -> None:
        if self._options.strict:
            for process in self.run.processes:
                if process.exit == native.EXIT_STRICT or process.death or process.file.findings:
                    self.run.stopped = f"strict: {process.target} has a finding"
        if shutil.disk_usage(self._options.out).free < LOWEST_FREE:
            self.run.stopped = (
                f"disk full: less than {LOWEST_FREE >> 20} MiB free below {self._options.out}"
            )

    def _end_all(self) -> None:
        active = [lane.process for lane in self._lanes if lane.process is not None]
        for process in active:
            process.popen.terminate()
        for process in active:
            process.stop(grace=5.0)
            self.collect(process)
