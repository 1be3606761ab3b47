"""Which of a run's findings is the planted bug: by replay here and on the JDK without it, never by chance.

A finding whose signature the JDK without the bug has shown to the same contestant is set aside at first. The
earliest of the others that comes back here and not there is the detection. Where there is none, places of the
signatures that both have are tried the same way: a bug may hide behind another one's signature.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.detect.contestants import Timed
from framestorm_cli.detect.subjects import environment
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request
from framestorm_cli.triage.buckets import alike

_TRIES = 3  # fresh JVMs of either side that decide
_MOST_NEW = 12  # candidates that are replayed
_MOST_BEHIND = 6  # candidates with a signature of the control
_TRY_LIMIT = 60.0  # seconds
_TOP = 3  # frames that a right report may name the function in


@dataclass(frozen=True)
class Side:
    """`variables`: of the environment of its JVMs."""

    tools: Toolchain
    symbolizer: Symbolizer
    scratch: Path
    variables: Mapping[str, str]

    def hits(self, finding: Finding, tries: int) -> tuple[int, int]:
        """How many of `tries` fresh JVMs show the finding, or nearly; and how many there were."""
        assert finding.artifact is not None
        request = Request(finding.artifact, finding.signature, limit=_TRY_LIMIT)
        with environment(self.variables):
            done = replaying.run_tries(self.tools, self.symbolizer, request, tries, self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        shown = [
            one.matched or any(alike(finding, other) for other in one.findings) for one in done
        ]
        return sum(map(bool, shown)), len(done)


@dataclass(frozen=True)
class Detection:
    """`replayed` of `replays` fresh JVMs showed it again; 0 of 0: its contestant has no replay."""

    timed: Timed
    replayed: int
    replays: int


def detect(
    found: Iterable[Timed], control: Set[Signature], here: Side, there: Side, replays: int
) -> Detection | None:
    """The detection among findings that replay. `control`: signatures of the JDK without the bug."""
    ordered = sorted(found, key=lambda one: one.seconds)
    new = _first_of_each(
        ordered, lambda one: one.signature, lambda one: one.signature not in control
    )
    behind = _first_of_each(ordered, lambda one: one.key, lambda one: one.signature in control)
    for timed in (*new[:_MOST_NEW], *behind[:_MOST_BEHIND]):
        hits, tries = here.hits(timed.finding, _TRIES)
        if not hits or there.hits(timed.finding, _TRIES)[0]:
            continue
        more = here.hits(timed.finding, replays - tries) if replays > tries else (0, 0)
        return Detection(timed, hits + more[0], tries + more[1])
    return None


def detect_by_signature(found: Iterable[Timed], control: Set[Signature]) -> Detection | None:
    """The earliest finding that the JDK without the bug never showed, where there is no replay."""
    new = [one for one in found if one.finding.signature not in control]
    return Detection(min(new, key=lambda one: one.seconds), 0, 0) if new else None


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
