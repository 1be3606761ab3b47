"""What a report is about, whichever command made it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from framestorm_cli.base.paths import relative
from framestorm_cli.findings.finding import Signature
from framestorm_cli.reports.schema import record
from framestorm_cli.triage.buckets import Bucket

PASSED, FAILED, ERROR = "passed", "failed", "error"


class Issue(msgspec.Struct, frozen=True):
    """A bucket as a report shows it. Paths are relative to the report's folder."""

    id: str
    signature: Signature
    explanation: str
    count: int
    known: bool = False
    state: str = ""  # how far from one that a thread can have
    write_ups: tuple[str, ...] = ()  # links, of the known causes that it is
    detail: str = ""
    stack: tuple[str, ...] = ()  # innermost first
    report: str | None = None  # its Markdown report
    artifact: str | None = None
    command: str = ""  # shows it again

    @property
    def fingerprint(self) -> str:
        """The same in every run that finds it."""
        signature = self.signature
        parts = (signature.kind, signature.clause, *signature.frames)
        text = "\0".join(parts + tuple(filter(None, (signature.did, signature.walker))))
        return hashlib.sha256(text.encode()).hexdigest()


def issue_of(bucket: Bucket, out: Path, *, known: bool = False, detail: str = "") -> Issue:
    """A bucket of a run in the folder `out`."""
    return record(
        Issue,
        bucket,
        known=known,
        detail=detail or bucket.best.detail,
        stack=tuple(frame.name for frame in bucket.best.frames),
        report=relative(bucket.report, out),
        artifact=relative(bucket.artifact, out),
        command=bucket.replay_command,
    )


@dataclass(frozen=True)
class Check:
    """One thing that was judged: a cell, a fuzz target. `outcome` ERROR: it could not be judged."""

    group: str
    name: str
    seconds: float
    outcome: str
    message: str = ""
    details: str = ""
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """`problems`: why the run as a whole is not to be believed."""

    command: str  # "stress"
    run: str
    exit: int
    started: str  # ISO 8601
    seconds: float
    argv: Sequence[str]
    checks: Sequence[Check]
    issues: Sequence[Issue]
    problems: Sequence[str]
    properties: dict[str, str] = field(default_factory=dict)
