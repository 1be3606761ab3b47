"""What a gate has come to so far: run.py fills it, reporting.py writes it down."""

from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.gate.shares import Reach
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import Verdict


@dataclass
class Outcome:
    """`None` is what a gate that ended early did not get to."""

    verdict: Verdict = field(default_factory=Verdict)
    change: Subject | None = None
    base: Subject | None = None
    baseline: Path | None = None
    reach: Reach | None = None
