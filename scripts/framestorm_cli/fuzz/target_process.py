"""One fuzz process: its command line, what it wrote so far, how it ended."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.findings import records
from framestorm_cli.findings.records import FindingsFile, Json
from framestorm_cli.fuzz import found_inputs
from framestorm_cli.fuzz.schedule import Slice
from framestorm_cli.native import processes, walkers
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker

START_LIMIT = 90.0  # seconds a process may take to its first walk before it is ended
END_LIMIT = 30.0  # seconds it may go on after its time
STALL_LIMIT = 30.0  # seconds it may go without a walk
ENGINES = ("libfuzzer", "afl")


@dataclass(frozen=True)
class FuzzOptions:
    targets: tuple[str, ...]
    seconds: float | None
    runs: int | None
    seed: int
    jobs: int
    out: Path
    walker: str = ""
    scenarios: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    jvm_args: tuple[str, ...] = ()
    corpus: tuple[Path, ...] = ()
    outside: OutsideWalker = outside.NONE
    strict: bool = False
    engine: str = ENGINES[0]
    unguided: bool = False  # the engine is not told what its inputs reach
    baseline: str = ""  # how others mutate (fuzz/baseline.h); none: as framestorm does
    mutants: Path | None = None  # the file of counts of a libjvm that has some (detect/canary.py)
    record_edges: bool = False  # which edges were reached when, from these inputs and no others
    weights: Mapping[str, float] = field(default_factory=dict)  # of targets' shares of the time


@dataclass
class Process:
    """One fuzz process, running or ended."""

    target: str
    folder: Path
    seed: int
    slice: Slice
    popen: processes.Popen
    started: float
    file: FindingsFile
    stats: Json = field(default_factory=dict)
    edges: int | None = None  # of libjvm, covered; None without coverage
    first_walk: float | None = None  # time.monotonic() when it was noticed
    last_walk: float = 0.0  # when the count was seen to grow
    exit: int | None = None
    ended: bool = False
    ended_at: float | None = None
    death: processes.Death | None = None
    setup_error: str = ""
    _stall: tuple[float, dict[str, float]] | None = None  # when seen, and `native.waits` then

    def poll(self) -> None:
        """Takes in what the process wrote since the last call."""
        before = self.walks
        stats = records.read_last_stats(self.folder)
        if stats:
            self.stats = stats
        if self.walks > before:
            self.last_walk = time.monotonic()
        if self.first_walk is None and self.walks > 0:
            self.first_walk = time.monotonic()
        self.edges = self.stats.get("edges") or records.read_edges(self.folder) or self.edges
        self.file.poll()

    def overdue(self) -> bool:
        """Whether it has to be ended: it does not start, does not go on, or does not end. On a machine
        with other work on it, what it waits for a core is not its fault."""
        now = time.monotonic()
        if self.first_walk is None:
            elapsed = now - self.started
            return (
                elapsed > START_LIMIT and elapsed - processes.starved(self.popen.pid) > START_LIMIT
            )
        if self._stalled(now):
            return True
        limit = self.slice.seconds
        return limit is not None and now - self.first_walk > limit + END_LIMIT

    def _stalled(self, now: float) -> bool:
        half = STALL_LIMIT / 2
        if now - self.last_walk <= half:
            self._stall = None
            return False
        if self._stall is None:
            self._stall = now, processes.waits(self.popen.pid)
        seen, before = self._stall
        elapsed = now - seen
        return elapsed > half and elapsed - processes.starved(self.popen.pid, before) > half

    def stop(self, grace: float = 3.0) -> None:
        """Ends it and takes in what it still wrote. How it ended then is no finding."""
        processes.end(self.popen, grace)
        self.poll()
        self.ended, self.ended_at = True, time.monotonic()
        self.exit = self.popen.returncode

    def finish(self, *, did_not_end: bool = False) -> None:
        """Once it has ended: how."""
        self.poll()
        self.ended, self.ended_at = True, time.monotonic()
        self.exit = self.popen.returncode
        self._conclude(None if did_not_end else self.exit)

    def _conclude(self, code: int | None) -> None:
        """Why it ended; `code` None: it did not, and was killed."""
        if code == processes.EXIT_SETUP:
            words = processes.own_words(self.folder / "log.txt")
            self.setup_error = words or "set-up error without a message"
        self.death = processes.death_of(code, self.folder)

    def found(self) -> Iterable[Path]:
        """Files with the inputs its engine kept, so far."""
        folder = self.folder / "corpus"
        return folder.iterdir() if folder.is_dir() else ()

    @property
    def walks(self) -> int:
        return int(self.stats.get("walks", 0))

    @property
    def fuzzed(self) -> float:
        """Seconds since its first walk, as it says itself."""
        return float(self.stats.get("t", 0.0))

    @property
    def spent(self) -> float:
        """Seconds of its slice that are gone, by the clock: a process that was stuck for half a minute
        used them up, and so did the start of one that goes on for another."""
        began = self.started if self.slice.resumed else self.first_walk
        if began is None or (self.ended and self.ended_at is None):
            return self.fuzzed
        return max(self.fuzzed, (self.ended_at or time.monotonic()) - began)


def corpus_of(options: FuzzOptions, target: str, found: Path | None = None) -> list[Path]:
    """The folders a process starts from: the user's or else framestorm's own seeds, and what processes
    before it found."""
    folders = [found_inputs.of_target(folder, target) for folder in options.corpus]
    seeds = paths.SEEDS / target
    if not options.corpus and seeds.is_dir():
        folders.append(seeds)
    if found is not None and found_inputs.has_inputs(found):
        folders.append(found)
    return folders


def command_of(program: Path, toolchain: Toolchain, options: FuzzOptions, out: Path) -> list[str]:
    """A target's command line, without what only one engine asks for."""
    command = [str(program), *processes.jvm_arguments(toolchain, out, options.jvm_args)]
    for name in options.scenarios:
        command += ["--scenario", name]
    for name in options.modes:
        command += ["--mode", name]
    for name in walkers.names(options.walker):
        command += ["--walker", name]
    command += options.outside.arguments(out)
    if options.strict:
        command.append("--strict")
    if options.unguided:
        command.append("--unguided")
    if options.baseline:
        command += ["--baseline", options.baseline]
    if options.mutants:
        command += ["--mutants", str(options.mutants)]
    if options.record_edges:
        command.append("--record-edges")
    return command


def start(
    toolchain: Toolchain,
    options: FuzzOptions,
    piece: Slice,
    seed: int,
    folder: Path,
    corpus: list[Path],
) -> Process:
    """Starts a target with libFuzzer in `folder`."""
    command = command_of(toolchain.program(piece.target), toolchain, options, folder)
    if piece.seconds is not None:
        command += ["--seconds", f"{max(1, round(piece.seconds))}"]
    if piece.runs is not None:
        command += ["--runs", str(piece.runs)]
    command += ["--seed", str(seed)]
    for entry in corpus:
        command += ["--corpus", str(entry)]
    popen = processes.start(command, folder.resolve())
    file = FindingsFile(folder)
    return Process(piece.target, folder, seed, piece, popen, time.monotonic(), file)
