"""The gate's stepping: the change and the base step the same short scenarios, and are compared instruction
by instruction. Without a base, what stepping finds is sorted as what fuzzing finds is."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.words import shortened
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import read_json
from framestorm_cli.gate import instructions
from framestorm_cli.gate.crossing import Crossing
from framestorm_cli.gate.instructions import Compared, Way
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import FIXED, NEW, TOO_RARE, Entry, Step
from framestorm_cli.native import processes, toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.reports.known import Known
from framestorm_cli.step import run as stepping
from framestorm_cli.step.results import CLAUSES, Results
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import expectations

# Different in the code that they go through; each is over soon.
SCENARIOS = (
    "interpreted-recursion",
    "c1",
    "c2-inlined",
    "exception-unwind",
    "itable-dispatch",
    "adapters",
)
RUNS = 5  # of each side, when the first ones differ
_CHANCE = 0.05  # see proportion.chance: four of four against none of four are no chance
_NAMED = 5  # instructions of an entry


def run(
    here: Subject, there: Subject | None, known: Known, seconds: float, out: Path,
    jvm_args: Sequence[str], step: Step,
) -> list[Entry]:  # fmt: skip
    """`seconds`: of one run of one side. What cannot be believed is a problem of the step."""
    began = time.monotonic()
    try:
        return _Stepping(here, there, known, seconds, out, tuple(jvm_args), step).entries()
    except FramestormError as error:
        step.problems.append(error.message)
        return []
    finally:
        step.seconds = time.monotonic() - began


class _Stepping:
    def __init__(
        self, here: Subject, there: Subject | None, known: Known, seconds: float, out: Path,
        jvm_args: tuple[str, ...], step: Step,
    ) -> None:  # fmt: skip
        self._here, self._there, self._known = here, there, known
        self._seconds, self._out, self._jvm_args, self._step = seconds, out, jvm_args, step
        self._symbolizer = Symbolizer()

    def entries(self) -> list[Entry]:
        """Raises FramestormError."""
        if self._here.outside.profiler:
            self._step.lines.append(
                "left out: what a profiler records of each instruction is not judged"
            )
            return []
        asked = _steppable(self._here)
        if asked is not None and not asked:
            self._step.lines.append(
                f"left out: {self._here.walker} is not asked at each instruction"
            )
            return []
        here = _at_speed(self._here)
        there = _at_speed(self._there) if self._there is not None else None
        changed = self._one(here, 0, asked)
        based = self._one(there, 0, asked) if there is not None else None
        if changed is None or (there is not None and based is None):
            return []
        found = self._sorted(changed.findings, here, there)
        if there is None or changed.results is None or based is None or based.results is None:
            return found
        return found + self._compared(here, there, changed.results, based.results, asked)

    def _one(
        self, side: Subject, number: int, asked: Sequence[str] | None
    ) -> stepping.Stepped | None:
        """None when it cannot be compared with."""
        folder = self._folder(side, number)
        folder.mkdir(parents=True)
        done = stepping.run(
            side.tools, folder, self._seconds, SCENARIOS, asked or (), self._jvm_args, side.outside,
            self._symbolizer,
        )  # fmt: skip
        self._step.problems += [f"{side.what}: {problem}" for problem in done.problems]
        if done.results is None or done.deaths:
            return None
        if number == 0:
            counts = done.results.counts
            self._step.lines.append(
                f"{side.what}: {counts.steps:,} instructions stepped, {done.results.distinct:,} distinct"
            )
        return done

    def _folder(self, side: Subject, number: int) -> Path:
        return self._out / "step" / f"{side.what}-{number}"

    def _sorted(
        self, findings: Sequence[Finding], here: Subject, there: Subject | None
    ) -> list[Entry]:
        """What is no matter of single instructions; without a base, everything. What is written up is
        known."""
        own = [one for one in findings if there is None or one.clause not in CLAUSES]
        buckets = triage_buckets.into_buckets(own)
        causes = expectations.causes_on(here.tools.jdk.label)
        for bucket in buckets:
            expectations.name(bucket, causes)
        folder = self._folder(here, 0)
        crossing = Crossing(
            here, there, self._known.with_buckets(one for one in buckets if one.write_ups),
            self._symbolizer, self._out / "step", 1, self._jvm_args, read_json(folder / "jvm.json"),
            causes=causes, step=self._step.name,
        )  # fmt: skip
        entries = crossing.sort(buckets, 8 * self._seconds, 2.0, self._step) if buckets else []
        for entry in entries:
            entry.id = f"i-{entry.id}"
        return entries

    def _compared(
        self, here: Subject, there: Subject, first: Results, of_base: Results,
        asked: Sequence[str] | None,
    ) -> list[Entry]:  # fmt: skip
        changed, based = [instructions.of(first)], [instructions.of(of_base)]
        new = instructions.worse(changed[0], based[0])
        fixed = instructions.worse(based[0], changed[0])
        shared = sum(1 for place in changed[0].tallies if place.code and place in based[0].tallies)
        self._step.lines.append(f"{shared:,} instructions compared")
        for number in range(1, RUNS if new or fixed else 1):
            done, other = self._one(here, number, asked), self._one(there, number, asked)
            if done is None or done.results is None or other is None or other.results is None:
                break
            changed.append(instructions.of(done.results))
            based.append(instructions.of(other.results))
        entries = self._entries(NEW, instructions.compared(new, changed, based), changed[0], here)
        return entries + self._entries(
            FIXED, instructions.compared(fixed, based, changed), based[0], there
        )

    def _entries(
        self, kind: str, found: Sequence[Compared], run: instructions.Stepped, side: Subject
    ) -> list[Entry]:
        """One for each walker, verdict and section: what is no chance, else what may be."""
        groups: dict[tuple[str, str, str], list[Compared]] = {}
        for one in found:
            groups.setdefault((one.way.walker, one.way.verdict, one.way.place.section), []).append(
                one
            )
        entries = []
        for ways in groups.values():
            sure = [one for one in ways if one.chance <= _CHANCE]
            if kind == FIXED and not sure:
                continue
            # A section says less than an instruction of it.
            shown = sorted(
                sure or ways, key=lambda one: (not one.way.place.code, one.chance, one.way)
            )
            entries.append(self._entry(kind if sure else TOO_RARE, shown, run, side))
            entries[-1].id = f"i{'-base' if kind == FIXED else ''}-{len(entries)}"
            self._keep(entries[-1], shown[0].way, run, side)
        return entries

    def _entry(
        self, kind: str, found: Sequence[Compared], run: instructions.Stepped, side: Subject
    ) -> Entry:
        way = found[0].way
        other = "change" if side.what == "base" else "base"
        miss = run.misses.get(way)
        signature = (
            miss.signature if miss else Signature("contract", way.verdict, (), "", way.walker)
        )
        named = [f"`{_named(one.way, run)}`" for one in found if one.way.place.code]
        explanation = f"{way.walker} is {way.verdict} in {way.place.section}, right on the {other}"
        if named:
            explanation += f", at {shortened(named, _NAMED)}"
        if miss and miss.detail:
            explanation += f". {miss.detail}"
        return Entry(
            kind,
            self._step.name, "", signature, explanation,
            f"{side.what}: {found[0].hits} of {found[0].tries} runs; {other}: 0 of {found[0].others}",
            getattr(run.tally(way), way.verdict),
        )  # fmt: skip

    def _keep(self, entry: Entry, way: Way, run: instructions.Stepped, side: Subject) -> None:
        """The artifact that is stepped to the instruction. Code in libjvm has none."""
        miss = run.misses.get(way)
        if miss is None:
            return
        folder = self._out / "artifacts"
        folder.mkdir(exist_ok=True)
        entry.artifact = folder / f"{side.what}-{entry.id}.bin"
        program = side.tools.program(NATIVE)
        entry.artifact.write_bytes(processes.filter_text(program, "encode", miss.input.encode()))
        entry.artifact.with_suffix(".txt").write_text(miss.input, encoding="utf-8")
        jvm = read_json(self._folder(side, 0) / "jvm.json")
        recorded = Recorded(None, self._jvm_args, side.outside)
        replaying.write_sidecar(entry.artifact, miss.signature, jvm, recorded)
        entry.command = replaying.command_line(side.tools, entry.artifact)


def _named(way: Way, run: instructions.Stepped) -> str:
    return f"{way.place} {run.texts.get(way.place, '')}".strip()


def _steppable(side: Subject) -> list[str] | None:
    """Of the walkers asked for, those that are asked at each instruction; None: no walker was named."""
    if not side.walker:
        return None
    table = walkers.table(side.tools.program(NATIVE), side.outside.spec).walkers
    own = bool(side.outside)
    return [
        name
        for name in walkers.names(side.walker)
        if own or (table[name].comparable and not table[name].needs_running_vm)
    ]


def _at_speed(side: Subject) -> Subject:
    """Raises FramestormError when there is no JDK without sanitizers."""
    if side.stressed is None:
        raise FramestormError(f"{side.what}: there is no JDK without sanitizers to step")
    same = side.stressed.home == side.tools.jdk.home
    return side if same else replace(side, tools=toolchain.prepare(side.stressed.home))
