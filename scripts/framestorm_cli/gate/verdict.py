"""What a gate comes to: entries (something that broke, or does no more), steps, and why it cannot judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from framestorm_cli.findings.finding import Signature
from framestorm_cli.reports.schema import said

NEW, FIXED, UNCHANGED, KNOWN = "new", "fixed", "unchanged", "known"
NOT_REPRODUCED, TOO_RARE = "not reproduced", "too rare to compare"
KINDS = (NEW, FIXED, UNCHANGED, KNOWN, TOO_RARE, NOT_REPRODUCED)


@dataclass
class Entry:
    """One cause. `how`: how often it came back where. Paths are absolute."""

    kind: str
    step: str  # "corpus", "fuzz", "step", "stress"
    id: str
    signature: Signature
    explanation: str = ""
    how: str = ""
    count: int = 1
    stack: tuple[str, ...] = ()
    artifact: Path | None = None
    report: Path | None = None
    command: str = ""  # shows it again
    state: str = ""  # how far from one that a thread can have
    known: str = ""  # the known causes that it is, or is like
    write_ups: tuple[str, ...] = ()  # links, of those that it is
    victims: Mapping[str, int] = field(default_factory=dict)  # `count` by workload, of stress


class Step(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    seconds: float = 0.0
    lines: Annotated[list[str], said("What it did, in figures.")] = msgspec.field(
        name="did", default_factory=list
    )
    problems: Annotated[list[str], said("Why it could not judge.")] = []


@dataclass
class Verdict:
    """Exit code 1 goes before 2: what was found and came back in fresh JVMs is true, whatever else could
    not be judged."""

    steps: list[Step] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [f"{step.name}: {problem}" for step in self.steps for problem in step.problems]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]

    @property
    def exit(self) -> int:
        if self.of(NEW):
            return 1
        return 2 if self.problems or not self.steps else 0

    @property
    def word(self) -> str:
        return {0: "nothing new", 1: "something new", 2: "could not judge"}[self.exit]
