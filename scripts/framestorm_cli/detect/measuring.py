"""The runs: planned so that interrupted ones go on, one core each, written down as they end."""

import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path

import msgspec

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.detect import canary, judging, libraries
from framestorm_cli.detect.contestants import CONTESTANTS, Contestant
from framestorm_cli.detect.judging import Detection, Judgement, Side
from framestorm_cli.detect.looking import Looked, Task, Timed, clean
from framestorm_cli.detect.subjects import CONTROLS, Subject, controls, environment
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native import processes, toolchain
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.triage.explain import explain

DATA = "runs.jsonl"
CONTROL_RUNS = 3
_ATTEMPTS = 4  # of a run that ended at what was not the bug; the last goes on to its end


Key = tuple[str, str, tuple[str, ...], int, tuple[str, ...]]


class Kill(msgspec.Struct):
    """Of a mutant, where all of them are tried in one run. `seconds`: from its start."""

    seconds: float
    signature: Signature
    oracle: str


class Measured(msgspec.Struct):
    """One run of one contestant on one bug. Seconds are of one core's wall time, from the run's start."""

    bug: str
    contestant: str
    walkers: tuple[str, ...]
    repetition: int  # from 1
    seed: int
    budget: float
    wall: float
    cpu: float  # seconds of all processes of the run
    walks: int
    problem: str = ""  # why it does not count
    asked: bool = True  # the contestant has a way to walk with these walkers
    reached: int = 0
    triggered: int = 0
    first_triggered: float | None = None
    found: float | None = None
    signature: Signature | None = None
    explanation: str = ""
    names_it: bool | None = None
    replayed: int = 0
    replays: int = 0
    against: int = 0  # JVMs without the bug that were asked for it, and did not show it
    signatures: list[Signature] = []  # all that it reported
    of_control: list[Signature] = []  # those that came back on the JDK without the bug
    whole: bool = False  # it did not end at the first finding that may be the bug
    oracle: str = ""  # that reported it first
    without_it: float | None = None  # found, of a whole run, had that oracle not been there
    parts: tuple[str, ...] = ()  # of the contestant that looked; none: all
    # Of a survey: how often each mutant was reached and would have acted, how often it was tried, and in
    # how many of these tries the walk answered otherwise than without it.
    acts: dict[int, tuple[int, int]] = {}
    tried: dict[int, int] = {}
    differed: dict[int, int] = {}
    kills: dict[int, Kill] = {}  # by number

    @property
    def key(self) -> "Key":
        return self.bug, self.contestant, self.walkers, self.repetition, self.parts

    @property
    def ended(self) -> float:
        """Seconds: starts of JVMs do not count as budget, and are waited for all the same."""
        return max(self.budget, self.wall)


@dataclass(frozen=True)
class Planned:
    """Picklable: it is made in a process of its own."""

    subject: Subject
    contestant: str
    repetition: int
    seed: int
    budget: float
    replays: int
    out: Path
    whole: bool = False
    parts: tuple[str, ...] = ()  # of the contestant, that survey mutants; none: it looks as a whole

    @property
    def is_control(self) -> bool:
        return self.subject.id in CONTROLS

    @property
    def key(self) -> Key:
        return self.subject.id, self.contestant, self.subject.walkers, self.repetition, self.parts

    @property
    def folder(self) -> Path:
        """Of what the run writes."""
        walkers = "+".join(self.subject.walkers)
        name = f"{self.repetition:02d}-{self.subject.id}-{self.contestant}-{walkers}"
        return self.out / "work" / "-".join((name, *self.parts))

    def __str__(self) -> str:
        with_parts = f" ({', '.join(self.parts)})" if self.parts else ""
        return f"{self.subject.id} by {self.contestant}{with_parts}, run {self.repetition}"


def plan(
    subjects: Sequence[Subject], contestants: Sequence[str], runs: int, seed: int, budget: float,
    replays: int, out: Path, whole: bool = False,
) -> Iterator[Planned]:  # fmt: skip
    """Repetition by repetition, bug by bug, the contestants in turn; the controls first. All of a repetition
    have the same seed."""
    for repetition in range(1, runs + 1):
        at = seed + 1000 * repetition
        if repetition <= CONTROL_RUNS:
            for one in controls(subjects):
                for name in contestants:
                    yield Planned(one, name, repetition, at, budget, replays, out, whole)
        for one in subjects:
            for name in contestants:
                yield Planned(one, name, repetition, at, budget, replays, out, whole)


def read(folder: Path) -> list[Measured]:
    """The runs that were made. A torn last line is no run. Raises FramestormError."""
    try:
        lines = (folder / DATA).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    try:
        return [msgspec.json.decode(line, type=Measured) for line in lines if line]
    except msgspec.MsgspecError as error:
        raise FramestormError(f"{folder / DATA}: {error}") from error


def make(planned: Sequence[Planned], folder: Path, jobs: int) -> list[Measured]:
    """Makes the runs that were not made yet, `jobs` at once, each on a core of its own. Returns all."""
    done = {one.key: one for one in read(folder)}
    missing = [one for one in planned if one.key not in done]
    groups = [[one for one in missing if one.is_control == wanted] for wanted in (True, False)]
    number = 0
    # What the controls show is asked for by the others.
    for group in groups:
        with ProcessPoolExecutor(
            jobs, get_context("spawn"), _pin, (get_context("spawn").Value("i", 0),)
        ) as pool:
            pending = {pool.submit(run, one): one for one in group}
            try:
                for future in as_completed(pending):
                    number += 1
                    measured = future.result()
                    steps.say(
                        f"{number} of {len(missing)}: {pending[future]}: {outcome_of(measured)}"
                    )
                    with (folder / DATA).open("ab") as file:
                        file.write(msgspec.json.encode(measured) + b"\n")
                    done[measured.key] = measured
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                # Whoever ends this process alone does not reach them, and they would go on to their ends.
                for worker in active_children():
                    worker.terminate()
                raise
    return list(done.values())


def _pin(taken) -> None:  # type: ignore[no-untyped-def]
    """Equal CPU for all: a run has one core, whatever it starts, and all of that counts as its time."""
    processes.die_with_parent()
    processes.adopt_orphans()
    with taken.get_lock():
        number = taken.value
        taken.value += 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def outcome_of(one: Measured) -> str:
    if one.problem:
        return f"does not count: {one.problem}"
    if one.parts:
        return f"{len(one.tried):,} mutants tried, {len(one.kills):,} killed"
    if one.bug in CONTROLS:
        return f"{len(one.signatures)} signatures without a bug"
    if not one.asked:
        return f"not found: {one.contestant} does not walk with {', '.join(one.walkers)}"
    canaried = f"canary reached {one.reached:,}, triggered {one.triggered:,}"
    if one.found is None:
        return f"not found in {one.budget:.0f} s; {canaried}"
    return f"found after {one.found:.1f} s: {one.signature}; {canaried}"


def run(planned: Planned) -> Measured:
    """One run, in this process.

    It ends at the first finding that may be the bug. Where replay or the canary says that it is not, the run
    is made again from its start, with that signature left alone: what it is measured by has no interruption.
    """
    contestant = CONTESTANTS[planned.contestant]
    subject, against = planned.subject, planned.subject.against()
    home, home_without = subject.home(contestant.variant), against.home(contestant.variant)
    tools = toolchain.prepare(home)
    without = tools if home_without == home else toolchain.prepare(home_without)
    symbolizer = Symbolizer()
    passed = of_control(planned)
    shown: set[Signature] = set()
    for attempt in range(_ATTEMPTS):
        last = planned.whole or attempt == _ATTEMPTS - 1
        made, heard = _look(
            planned, contestant, tools, symbolizer, None if last else frozenset(passed)
        )
        if planned.is_control or made.problem:
            break
        scratch = planned.folder / "replays"
        args = contestant.jvm_args
        here = Side(tools, symbolizer, scratch, subject.environment, args)
        there = Side(without, symbolizer, scratch, against.environment, args)
        judge = _judge(planned, contestant, frozenset(passed), here, there)
        # What is reported while the fix would never have acted is something else.
        judged = judge(heard) if made.triggered else Judgement(None)
        shown |= judged.of_control
        if judged.detection is not None:
            _write_down(made, judged.detection, subject)
            if planned.whole:
                others = [one for one in heard if one.finding.oracle != made.oracle]
                second = judge(others).detection
                made.without_it = round(second.timed.seconds, 3) if second else None
            break
        if last:
            break
        more = set(made.signatures) - passed
        if not more:
            break
        passed |= more
    made.of_control = sorted(shown, key=str)
    return made


def _judge(
    planned: Planned, contestant: Contestant, control: frozenset[Signature], here: Side, there: Side
) -> Callable[[Sequence[Timed]], Judgement]:
    if contestant.replays:
        told = _told(planned)
        return lambda heard: judging.detect(heard, control, here, there, planned.replays, told)
    return lambda heard: judging.detect_by_signature(heard, control)


def _look(
    planned: Planned, contestant: Contestant, tools: Toolchain,
    symbolizer: Symbolizer, passed: frozenset[Signature] | None,
) -> tuple[Measured, list[Timed]]:  # fmt: skip
    """What it came to, and what it heard. `passed`: signatures that do not end it; None: nothing does."""
    out = clean(planned.folder)
    file = out / "canary"
    surveys = bool(planned.parts)
    if surveys:
        canary.prepare(file, len(libraries.read_mutants(tools.jdk.home)), _killed(planned))
    else:
        canary.prepare(file)

    def wanted(finding: Finding) -> bool:
        if planned.is_control or passed is None:
            return False
        return finding.signature not in passed and contestant.hears(finding)

    task = Task(
        tools, planned.subject.walkers, planned.budget, planned.seed, out, symbolizer, wanted,
        contestant.jvm_args, planned.parts, file if surveys else None,
    )  # fmt: skip
    began, cpu = time.monotonic(), _cpu()
    with environment({**planned.subject.environment, canary.VARIABLE: str(file)}):
        try:
            looked = contestant.look(task)
        except FramestormError as error:  # others go on
            looked = Looked(problem=error.message)
    processes.end_orphans()
    made = Measured(
        planned.subject.id, planned.contestant, planned.subject.walkers, planned.repetition, planned.seed,
        planned.budget,
        round(time.monotonic() - began, 3), round(_cpu() - cpu, 3), looked.walks, looked.problem,
        looked.asked,
    )  # fmt: skip
    made.whole, made.parts = planned.whole, planned.parts
    if surveys:
        _note_tried(made, looked, file)
    heard = [
        one for one in looked.found if contestant.hears(one.finding) and not one.finding.mutant
    ]
    made.signatures = sorted({one.finding.signature for one in heard}, key=str)
    counted = canary.read(file)
    made.reached, made.triggered = counted.reached, counted.triggered
    if counted.first_triggered is not None:
        made.first_triggered = round(counted.first_triggered - began, 3)
    return made, heard


def _note_tried(made: Measured, looked: Looked, file: Path) -> None:
    made.acts = canary.read_mutants(file)
    tried = canary.read_tried(file)
    made.tried = {number: one.tries for number, one in tried.items()}
    made.differed = {number: one.differed for number, one in tried.items() if one.differed}
    # What was not written down before the process died, too.
    death = Kill(made.wall, Signature("process_death", "", ()), "")
    made.kills = {number: death for number, one in tried.items() if one.killed}
    for one in sorted(looked.found, key=lambda one: -one.seconds):
        if number := one.finding.mutant:
            made.kills[number] = Kill(
                round(one.seconds, 3), one.finding.signature, one.finding.oracle
            )


def _write_down(made: Measured, detection: Detection, subject: Subject) -> None:
    finding = detection.timed.finding
    made.found = round(detection.timed.seconds, 3)
    made.signature, made.explanation = finding.signature, explain(finding)
    made.oracle = finding.oracle
    made.names_it = judging.names_it(finding, subject.functions)
    made.replayed, made.replays = detection.replayed, detection.replays
    made.against = detection.against


def of_control(planned: Planned) -> set[Signature]:
    """What the JDK without the bug showed to the same contestant with these walkers, or in replays to any on
    the same variant."""
    own = CONTESTANTS[planned.contestant]
    known: set[Signature] = set()
    for one in read(planned.out):
        other = CONTESTANTS.get(one.contestant)
        if (
            one.bug == planned.subject.control
            and other == own
            and set(planned.subject.walkers) <= set(one.walkers)
        ):
            known |= set(one.signatures)
        elif other and own.replays and other.variant == own.variant:
            known |= set(one.of_control)
    return known


def _told(planned: Planned) -> frozenset[Signature]:
    """By which replays have told this bug in another run on the same variant."""
    variant = CONTESTANTS[planned.contestant].variant
    return frozenset(
        one.signature
        for one in read(planned.out)
        if one.bug == planned.subject.id
        and one.signature
        and one.replays
        and (other := CONTESTANTS.get(one.contestant))
        and other.variant == variant
    )


def _killed(planned: Planned) -> set[int]:
    """The mutants that surveys have killed so far."""
    return {number for one in read(planned.out) for number in one.kills}


def _cpu() -> float:
    """Seconds of this process's children that have ended; all of a run's have when it has."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
