"""The runs of an evaluation: the same work each time, timed from outside."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from resource import struct_rusage

from framestorm_cli.base import files
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.experiments import shared
from framestorm_cli.experiments.measured import CONDITIONS, NONE, Measured, broken, roots
from framestorm_cli.findings import records
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes
from framestorm_cli.renaissance import outcome, suite
from framestorm_cli.stress import agent, flames, truth_figures, units
from framestorm_cli.stress.cells import UNSTOPPED
from framestorm_cli.stress.tools import Tools
from framestorm_cli.stress.workloads import Workload, proof

_LIMIT_FACTOR = 20.0  # a run that takes this many times as long as it should hangs
_LEAST_LIMIT = 120.0
# As deep as the agent goes: a trace that is cut off would count as broken. No costly oracle, nothing kept:
# it is sampling that is measured.
_LEAN = "depth=2048,costly=0,seeds=0,keep=0"

# As in the experiment.
_FLAGS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")


@dataclass(frozen=True)
class Program:
    """A workload with the work that every run of it does."""

    workload: Workload
    role: str
    threads: int
    iterations: int = 0

    @property
    def name(self) -> str:
        return self.workload.name

    def command(self, seconds: float | None, seed: int) -> list[str]:
        iterations = None if seconds is not None else self.iterations
        found = self.workload.arguments(seconds, iterations, seed)
        return found + (["--threads", str(self.threads)] if self.workload.proves else [])


@dataclass(frozen=True)
class Settings:
    """What all runs of an evaluation have in common."""

    found: Tools
    out: Path
    walker: str
    jvm_args: tuple[str, ...]
    seconds: float  # that a run without an agent should take
    plugin: str = ""
    truth: Path | None = None  # the Java agent that keeps shadow stacks


@dataclass(frozen=True)
class Planned:
    program: Program
    condition: str
    interval_ns: int
    repetition: int  # 0: to warm up
    seed: int

    @property
    def has_truth(self) -> bool:
        """Of what warms up no time counts, so that it can say what is wrong; where threads stand still."""
        return self.repetition == 0 and self.condition not in (NONE, UNSTOPPED)

    def __str__(self) -> str:
        at = f" {units.interval_text(self.interval_ns)}" if self.interval_ns else ""
        return f"{self.program.role} {self.program.name}, {self.condition}{at}, #{self.repetition}"


def calibrated(program: Program, settings: Settings) -> Program:
    """The program with as many iterations as take about `settings.seconds` without an agent.

    Raises FramestormError when it does not run by itself."""
    folder = settings.out / "runs" / f"calibration-{program.role}"
    seconds = settings.seconds
    command = _java(program, settings, [], program.command(seconds, 1))
    popen, _, used = _run(command, folder, seconds * _LIMIT_FACTOR + _LEAST_LIMIT)
    if popen.returncode != 0 or used is None:
        raise FramestormError(
            f"{program.name} does not run without an agent (exit {popen.returncode}): "
            f"{processes.own_words(folder / 'log.txt')[-500:]}"
        )
    iterations = _iterations(program.workload, folder)
    if not iterations:
        raise FramestormError(f"{program.name} did not say how many iterations it made")
    return replace(program, iterations=iterations)


def _iterations(workload: Workload, folder: Path) -> int:
    log = folder / "log.txt"
    if workload.renaissance:
        return outcome.judge(files.read_text(log), 0, folder / suite.RESULTS).iterations
    return int(proof(log).get("iterations") or 0)


def plan(
    programs: Sequence[Program], intervals: Sequence[int], repetitions: int, seed: int
) -> list[Planned]:
    """Rounds, each in an order of its own: what drifts on the machine must not favour a condition. The
    first one warms up."""
    planned = []
    for repetition in range(repetitions + 1):
        round_ = [
            Planned(program, condition, interval, repetition, seed + repetition)
            for program in programs
            for condition in CONDITIONS
            for interval in (intervals if condition != NONE else (0,))
        ]
        random.Random(f"{seed} {repetition}").shuffle(round_)
        planned += round_
    return planned


def measure(
    planned: Sequence[Planned],
    settings: Settings,
    done: Callable[[list[Measured]], None],
) -> tuple[list[Measured], bool]:
    """Runs all, and whether Ctrl-C ended it. `done` is called with what there is after each; broken
    traces are counted last, since it takes a same-thread run to say what whole ones begin with."""
    found: list[Measured] = []
    folders = [settings.out / "runs" / f"{number:03d}" for number in range(1, len(planned) + 1)]

    def run(one: Planned) -> str:
        found.append(_measure(one, settings, folders[len(found)]))
        done(found)
        return ""

    interrupted = bool(shared.take_turns(planned, run))
    return _with_broken(found, folders[: len(found)]), interrupted


def _measure(one: Planned, settings: Settings, folder: Path) -> Measured:
    sampling: list[str] = []
    if one.condition != NONE:
        options = (
            f"walker={settings.walker},mode={one.condition},threads=running,seed={one.seed},"
            f"interval={units.interval_text(one.interval_ns)},{_LEAN},out={folder / agent.OUT}"
        )
        options += f",plugin={agent.quoted(settings.plugin)}" if settings.plugin else ""
        if one.has_truth:
            options += ",truth=1"
        sampling = [f"-agentpath:{settings.found.java.agent}={options}"]
    if one.has_truth:
        sampling.append(f"-javaagent:{settings.truth}")
    command = _java(one.program, settings, sampling, one.program.command(None, one.seed))
    limit = settings.seconds * _LIMIT_FACTOR + _LEAST_LIMIT
    popen, wall, used = _run(command, folder, limit)
    stats = records.read_last_stats(folder / agent.OUT)
    truth = truth_figures.of([stats])
    failed = ""
    if used is None:
        failed = f"did not end within {limit:.0f} s"
    elif popen.returncode != 0:
        failed = f"exit {popen.returncode}"
    elif one.condition != NONE and not stats.get("samples"):
        failed = "no samples"
    return Measured(
        workload=one.program.name,
        role=one.program.role,
        condition=one.condition,
        interval_ns=one.interval_ns,
        repetition=one.repetition,
        seed=one.seed,
        wall=round(wall, 4) if used else 0.0,
        user=round(used.ru_utime, 4) if used else 0.0,
        system=round(used.ru_stime, 4) if used else 0.0,
        samples=int(stats.get("samples") or 0),
        ticks=int(stats.get("ticks") or 0),
        traces=_traces(stats),
        broken=0,
        crashes=int(stats.get("contained") or 0) + int(used is None or popen.returncode not in (0, 1, 3)),
        failed=failed,
        judged=sum(walker.wrong.trials for walker in truth.walkers) if truth else 0,
        wrong=sum(walker.wrong.hits for walker in truth.walkers) if truth else 0,
    )  # fmt: skip


def _traces(stats: Json) -> int:
    return sum(int(one["count"]) for one in stats.get("codes") or () if one["code"] == "ok")


def _with_broken(runs: Sequence[Measured], folders: Sequence[Path]) -> list[Measured]:
    stacks = [flames.read(folder / agent.OUT / flames.FOLDED) for folder in folders]
    counted = []
    for run, own in zip(runs, stacks, strict=True):
        whole = roots(
            stack
            for other, others in zip(runs, stacks, strict=True)
            if other.condition == "same-thread" and other.workload == run.workload
            for stack in others
        )
        total, bad = broken(own, whole) if whole else (0, 0)
        # The file may leave out rare stacks: it is a share.
        share = bad / total if total else 0.0
        counted.append(replace(run, broken=round(share * run.traces)))
    return counted


def _java(
    program: Program, settings: Settings, sampling: Sequence[str], arguments: Sequence[str]
) -> list[str]:
    java = str(settings.found.java.java)
    return [java, *sampling, *_FLAGS, *program.workload.jvm_args, *settings.jvm_args, *arguments]


def _run(
    command: Sequence[str], folder: Path, limit: float
) -> tuple[processes.Popen, float, struct_rusage | None]:
    """Runs it to its end, with the wall time and what it used; None when it did not come to it within `limit`
    seconds."""
    began = time.monotonic()
    popen = processes.start(command, folder)
    overdue = threading.Timer(limit, popen.kill)
    overdue.start()
    try:
        used = processes.reap(popen, wait=True)
    finally:
        in_time = overdue.is_alive()
        overdue.cancel()
        if popen.returncode is None:
            popen.kill()
            popen.wait()
    wall = time.monotonic() - began
    return popen, wall, used if in_time else None
