"""Which of a run's findings is the planted bug: by replay here and on the JDK without it, never by chance.

A finding whose signature the JDK without the bug has shown to the same contestant is set aside at first. The
earliest of the others that comes back here and not there is the detection. Where there is none, places of the
signatures that both have are tried the same way: a bug may hide behind another one's signature.

What comes back now and then is told apart by more replays on both sides, or is no detection. A signature that
replays have told to be the bug's in another run is the bug's in this one, too.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.detect.looking import Timed
from framestorm_cli.detect.subjects import environment
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request
from framestorm_cli.stress.proportion import chance
from framestorm_cli.triage.buckets import alike

_TRIES = 3  # fresh JVMs of either side that decide, at most
_CHANCE = 0.05  # that both sides show it alike: above it is no detection
_MOST_NEW = 12  # candidates that are replayed
_MOST_BEHIND = 6  # candidates with a signature of the control
_TRY_LIMIT = 60.0  # seconds
_TOP = 3  # frames that a right report may name the function in


@dataclass(frozen=True)
class Side:
    """`variables`: of the environment of its JVMs, which get `jvm_args`."""

    tools: Toolchain
    symbolizer: Symbolizer
    scratch: Path
    variables: Mapping[str, str]
    jvm_args: tuple[str, ...] = ()

    def hits(self, finding: Finding, tries: int) -> tuple[int, int]:
        """How many of `tries` fresh JVMs show the finding, or nearly; and how many there were."""
        assert finding.artifact is not None
        request = Request(finding.artifact, finding.signature, self.jvm_args, limit=_TRY_LIMIT)
        with environment(self.variables):
            done = replaying.run_tries(self.tools, self.symbolizer, request, tries, self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        shown = [
            one.matched or any(alike(finding, other) for other in one.findings) for one in done
        ]
        return sum(map(bool, shown)), len(done)


@dataclass(frozen=True)
class Detection:
    """`replayed` of `replays` fresh JVMs showed it again; 0 of 0: its contestant has no replay, or another
    run has told. `against`: fresh JVMs without the bug, none of which did."""

    timed: Timed
    replayed: int
    replays: int
    against: int = 0


@dataclass(frozen=True)
class Judgement:
    """`detection`: of the planted bug, None: it is not among the findings. `of_control`: signatures of those
    that came back without the bug."""

    detection: Detection | None
    of_control: frozenset[Signature] = frozenset()


def detect(
    found: Iterable[Timed], control: Set[Signature], here: Side, there: Side, replays: int,
    told: Set[Signature] = frozenset(),
) -> Judgement:  # fmt: skip
    """The detection among findings that replay. `control`: signatures of the JDK without the bug. `told`: the
    bug's by replays of other runs."""
    ordered = sorted(found, key=lambda one: one.seconds)
    new = _first_of_each(
        ordered, lambda one: one.signature, lambda one: one.signature not in control
    )
    # Most new signatures are of the walker's own bugs, with a clause that the control has, too.
    known = {(one.kind, one.clause) for one in control}
    new.sort(key=lambda one: (one.finding.signature.kind, one.finding.signature.clause) in known)
    asked = sorted(new[:_MOST_NEW], key=lambda one: one.seconds)
    behind = _first_of_each(ordered, lambda one: one.key, lambda one: one.signature in control)
    of_control: set[Signature] = set()
    for timed in (*asked, *behind[:_MOST_BEHIND]):
        if timed.finding.signature in told - control:
            return Judgement(Detection(timed, 0, 0), frozenset(of_control))
        # Most likely to be the control's own: asked there first, one JVM tells.
        if timed.finding.signature in control and there.hits(timed.finding, 1)[0]:
            continue
        hits, tries = _until_shown(here, timed.finding, _TRIES)
        if not hits:
            continue
        shown, against = _until_shown(there, timed.finding, _TRIES)
        if not shown:
            more = here.hits(timed.finding, replays - tries) if replays > tries else (0, 0)
            hits, tries = hits + more[0], tries + more[1]
            if hits < tries and against < tries:
                again = _until_shown(there, timed.finding, tries - against)
                shown, against = again[0], against + again[1]
        if shown:
            of_control.add(timed.finding.signature)
        elif chance(hits, tries, against) <= _CHANCE:
            return Judgement(Detection(timed, hits, tries, against), frozenset(of_control))
    return Judgement(None, frozenset(of_control))


def _until_shown(side: Side, finding: Finding, most: int) -> tuple[int, int]:
    """As Side.hits(), with no try after the first that shows it: one says enough."""
    for tries in range(1, most + 1):
        if side.hits(finding, 1)[0]:
            return 1, tries
    return 0, most


def detect_by_signature(found: Iterable[Timed], control: Set[Signature]) -> Judgement:
    """The earliest finding that the JDK without the bug never showed, where there is no replay."""
    new = [one for one in found if one.finding.signature not in control]
    return Judgement(Detection(min(new, key=lambda one: one.seconds), 0, 0) if new else None)


def _first_of_each(
    found: Iterable[Timed], key: Callable[[Finding], object], fits: Callable[[Finding], bool]
) -> list[Timed]:
    seen: dict[object, Timed] = {}
    for timed in found:
        if timed.finding.artifact is not None and fits(timed.finding):
            seen.setdefault(key(timed.finding), timed)
    return list(seen.values())


def names_it(finding: Finding, functions: Sequence[str]) -> bool | None:
    """Whether one of the functions is among the finding's top frames; None where none is expected."""
    if not functions:
        return None
    top = [frame.name for frame in finding.frames[:_TOP]] + list(finding.signature.frames[:_TOP])
    return any(function in name for function in functions for name in top)
