"""What `framestorm-step run` writes, and what it comes to."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property, reduce
from operator import add
from pathlib import Path

import msgspec

from framestorm_cli.base import files
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import disassembly
from framestorm_cli.findings.finding import Signature

VERDICTS = ("right", "refused", "short", "wrong", "failed", "unjudged")
NOT_RIGHT = ("failed", "wrong", "short", "refused")
# Of findings that are a trace's verdict; others are an oracle's.
CLAUSES = frozenset(
    (
        "innermost-frame-left-out",
        "caller-left-out",
        "frame-not-there",
        "frame-below-the-last",
        "wrong-bci",
        "frame-elsewhere",
        "trace-ends-early",
        "says-cut-where-whole",
        "no-frames",
    )
)
_METHODS = "nmethod"
_LONGEST = 15  # bytes of an instruction
LEAST_JUDGED = 0.95  # of the instructions walked


class Tally(msgspec.Struct):
    """A walker's walks of one section of code, in one mode."""

    right: int = 0
    refused: int = 0
    short: int = 0
    wrong: int = 0
    failed: int = 0
    unjudged: int = 0
    errors: dict[str, int] = {}  # of those refused, by result

    @property
    def not_right(self) -> int:
        return self.refused + self.short + self.wrong + self.failed

    def __add__(self, other: "Tally") -> "Tally":
        sums = {one: getattr(self, one) + getattr(other, one) for one in VERDICTS}
        return Tally(**sums, errors=dict(Counter(self.errors) + Counter(other.errors)))

    @property
    def walks(self) -> int:
        return self.right + self.refused + self.short + self.wrong + self.failed + self.unjudged


class Counts(msgspec.Struct):
    """Instructions."""

    steps: int  # executed by steps
    walked: int
    judged: int  # of those walked: the stack was known
    passed: int  # not walked: in native code for longer than the limit
    excursions: int  # calls in native code that ran at full speed
    from_outside: int  # of those walked: walked from another thread, too
    outside: int  # of those walked: below the scenario's first frame
    lost: dict[str, int]  # of those walked: why the stack was not known
    seen_enough: int = 0  # of a program, not walked: instructions that were walked often

    @property
    def judged_share(self) -> float:
        own = self.walked - self.outside
        return self.judged / own if own else 0.0

    def __add__(self, other: "Counts") -> "Counts":
        sums = {
            one: getattr(self, one) + getattr(other, one)
            for one in self.__struct_fields__
            if one != "lost"
        }
        return Counts(**sums, lost=dict(Counter(self.lost) + Counter(other.lost)))


class Injected(msgspec.Struct):
    """An event in a scenario."""

    injected: int
    effective: int  # that took effect
    why_not: dict[str, int] = {}  # of the others


def without(events: dict[str, Injected]) -> dict[str, str]:
    """Those that took effect nowhere, and why."""
    return {
        name: "; ".join(one.why_not) or "none was injected"
        for name, one in events.items()
        if one.effective == 0
    }


class Scenario(msgspec.Struct):
    steps: int
    seconds: float
    unavailable: str  # why; empty: it was stepped
    events: dict[str, Injected] = {}

    def without(self) -> dict[str, str]:
        """Of its events, where it was stepped."""
        return {} if self.unavailable else without(self.events)


class Miss(msgspec.Struct):
    """The first trace of a walker that was not right at an instruction, in this way."""

    walker: str  # as in Results.walkers
    verdict: str
    clause: str
    detail: str
    detail_class: str
    input: str  # as text: leads there

    @property
    def signature(self) -> Signature:
        walker = self.walker.partition(" ")[0]
        return Signature("contract", self.clause, (), self.detail_class, walker)


class Instruction(msgspec.Struct):
    offset: int
    steps: int
    section: str
    walkers: dict[str, Tally]
    misses: list[Miss]


class Blob(msgspec.Struct):
    """A piece of the code cache."""

    kind: str
    name: str
    tier: int
    code: str  # hexadecimal
    instructions: list[Instruction]


class Observation(msgspec.Struct):
    """What a walker did wrong in one way. Not `promised`: refused or short by one that may."""

    walker: str
    verdict: str
    promised: bool
    clause: str
    detail: str
    section: str
    code: str
    count: int
    scenarios: dict[str, int]
    position: str
    path: list[str]
    trace: list[str]
    truth: list[str]
    event: str = ""  # that breaks what is right without it


class SampledPlace(msgspec.Struct):
    """Where a program was at full speed."""

    kind: str
    name: str
    tier: int
    offset: int
    samples: int
    code: str = ""  # of the instruction, and what follows; hexadecimal


class Program(msgspec.Struct):
    windows: int  # in which it was stepped
    vain: int  # windows in which no instruction was walked
    ended: bool  # by itself, before its time
    sampled: list[SampledPlace]
    events: dict[str, Injected] = {}


class ProfilerRun(msgspec.Struct):
    """Of a profiler, which gives no trace."""

    stored: int | None  # samples, as it counts itself; None: it has no count that can be read


def shape_at(code: str, offset: int) -> str:
    return disassembly.shape(code[2 * offset : 2 * (offset + _LONGEST)])


class Results(msgspec.Struct, dict=True):
    seconds: float
    walkers: list[str]  # each once for each mode it walks in
    counts: Counts
    scenarios: dict[str, Scenario]
    sections: dict[str, dict[str, Tally]]
    findings: list[Observation]
    blobs: list[Blob]
    program: Program | None = None  # instead of scenarios
    events: dict[str, dict[str, Tally]] = {}  # while one was in force
    profiler: ProfilerRun | None = None
    left: list[str] = []  # scenarios that are not over; the first is under way
    # Other runs on the same JDK: what they have stepped counts for samples of the program.
    also: list["Results"] = []

    @cached_property
    def places(self) -> dict[tuple[str, str, int, int], str]:
        """The section of each instruction that was stepped, by its code's kind, name and tier, and its
        offset there."""
        return {
            (blob.kind, blob.name, blob.tier, one.offset): one.section
            for blob in self.blobs
            for one in blob.instructions
        }

    def _was_stepped(self, one: SampledPlace) -> bool:
        place = (one.kind, one.name, one.tier, one.offset)
        return any(place in run.places for run in (self, *self.also))

    @cached_property
    def shapes(self) -> set[tuple[int, str]]:
        """Instructions of methods' code that were stepped, whatever their numbers and registers, by tier."""
        return {
            (blob.tier, shape_at(blob.code, one.offset))
            for blob in self.blobs
            if blob.kind == _METHODS
            for one in blob.instructions
        }

    def sampled(self, *, by_shape: bool = False) -> tuple[int, Counter[str]]:
        """Samples of the program in code that was stepped, and by code those in code that was not.

        `by_shape`: code of methods differs from run to run: where an instruction of its shape was stepped in
        a method's code of the same tier, it counts."""
        hit, missed = 0, Counter[str]()
        for one in self.program.sampled if self.program else ():
            form = shape_at(one.code, 0) if by_shape and one.kind == _METHODS else ""
            runs = (self, *self.also)
            like = form and any((one.tier, form) in run.shapes for run in runs)
            if like or self._was_stepped(one):
                hit += one.samples
            else:
                missed[
                    f"tier {one.tier}: {form}" if form else named(one.kind, one.name, one.tier)
                ] += one.samples
        return hit, missed

    @property
    def injected(self) -> dict[str, Injected]:
        """Events, in all scenarios."""
        sums: dict[str, Injected] = {}
        own = (self.program,) if self.program else ()
        for part in (*own, *self.scenarios.values()):
            for name, one in part.events.items():
                total = sums.setdefault(name, Injected(0, 0))
                total.injected += one.injected
                total.effective += one.effective
        return sums

    @property
    def distinct(self) -> int:
        """Instructions that were stepped, each counted once: by code, its name and offset."""
        return len(self.places)

    @property
    def distinct_by_section(self) -> Counter[str]:
        return Counter(self.places.values())

    def problems(self, asked: tuple[str, ...]) -> list[str]:
        """Why the run is not to be believed."""
        found = [
            f"scenario {name}: {one.unavailable}"
            for name, one in self.scenarios.items()
            if one.unavailable and name in asked
        ]
        found += [
            f"scenario {name}: no instruction was stepped"
            for name, one in self.scenarios.items()
            if not one.unavailable and one.steps == 0
        ]
        if self.program and not self.program.windows:
            found.append("no instruction of the program was stepped")
        if self.program:
            found += [
                f"event {name} took effect nowhere: {why}"
                for name, why in without(self.program.events).items()
            ]
        # An instruction has an event the first time that any scenario meets it: a scenario may have none.
        nowhere = {name for name, one in self.injected.items() if one.injected == 0}
        found += [
            f"scenario {name}: event {event} took effect nowhere: {why}"
            for name, one in self.scenarios.items()
            for event, why in one.without().items()
            if name in asked or event in nowhere
        ]
        if self.profiler and not self.profiler.stored:
            none = self.profiler.stored is None
            found.append(
                "whether the profiler walked is not known: its samples cannot be counted"
                if none
                else "the profiler stored no sample"
            )
        if self.counts.judged_share < LEAST_JUDGED:
            lost = "; ".join(f"{why}: {count:,}" for why, count in self.counts.lost.items())
            found.append(
                f"{self.counts.judged_share:.1%} of the instructions were judged, at least "
                f"{LEAST_JUDGED:.0%} have to be" + (f" ({lost})" if lost else "")
            )
        return found


def named(kind: str, name: str, tier: int) -> str:
    """A blob, for people."""
    return f"{kind} {name} (tier {tier})" if kind == "nmethod" and tier else f"{kind} {name}"


def write(made: Results, path: Path) -> None:
    """Raises OSError."""
    files.write_text(path, msgspec.json.encode(made).decode() + "\n")


def merged(parts: Sequence[Results]) -> Results:
    """Of processes that have stepped different scenarios with the same walkers; at least one."""
    stored = [
        one.profiler.stored for one in parts if one.profiler and one.profiler.stored is not None
    ]
    return Results(
        seconds=sum(one.seconds for one in parts),
        walkers=parts[0].walkers,
        counts=reduce(add, (one.counts for one in parts)),
        scenarios={name: one for part in parts for name, one in part.scenarios.items()},
        sections=_sums([one.sections for one in parts]),
        findings=[one for part in parts for one in part.findings],
        blobs=[one for part in parts for one in part.blobs],
        events=_sums([one.events for one in parts]),
        profiler=ProfilerRun(sum(stored) if stored else None) if parts[0].profiler else None,
        left=parts[-1].left,
    )


def _sums(parts: Sequence[dict[str, dict[str, Tally]]]) -> dict[str, dict[str, Tally]]:
    sums: dict[str, dict[str, Tally]] = {}
    for part in parts:
        for section, walkers in part.items():
            own = sums.setdefault(section, {})
            for name, tally in walkers.items():
                own[name] = own.get(name, Tally()) + tally
    return sums


def read(path: Path) -> Results:
    """Raises FramestormError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as error:
        raise FramestormError(
            f"{path} is not what `framestorm-step run` writes: {error}"
        ) from error
