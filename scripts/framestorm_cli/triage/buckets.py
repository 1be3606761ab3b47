"""Findings with one cause, together. Same signature: same bucket. Near-duplicates are merged."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta
from rapidfuzz.distance import Indel

from framestorm_cli.base.words import shortened
from framestorm_cli.findings.finding import Finding, Signature, state_rank
from framestorm_cli.triage.explain import explain
from framestorm_cli.triage.signature import significant

# Two stacks with the same kind, clause and top frame are one cause when their first COMPARED significant
# frames are at least this alike (1: equal; normalised insert/delete distance of the frame sequences).
# 0.6: of four frames one may be inserted or missing on either side. Inlining and tail calls do that.
SIMILARITY = 0.6
COMPARED = 8
# An artifact reproduces when it did so in at least this share of its tries.
LEAST_SHARE = 0.9
_SHOWN = 4  # of a list
_EXPECTED = ", expected "  # what a scenario expects is the victim's
_METHOD = re.compile(r"[^\s,;]*[/$][^\s,;]*")

ProcessKey: TypeAlias = tuple[Path | None, str]  # a process's folder, and its key of a finding


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One artifact in fresh JVMs."""

    artifact: Annotated[str, Meta(description="Below the run's folder.")]
    tries: Annotated[int, Meta(ge=0)]
    reproduced: Annotated[int, Meta(ge=0)]


@dataclass(frozen=True)
class Verification:
    """How often the bucket's artifact showed its signature again in fresh JVMs, and what else was
    tried: one entry per artifact, the reported one's among them."""

    tries: int = 0
    reproduced: int = 0
    tried: tuple[Tried, ...] = ()
    skipped: str = ""  # why nothing was tried

    @property
    def status(self) -> str:
        if self.tries == 0:
            return "not verified"
        if self.reproduced == 0:
            return "not reproduced"
        often = self.reproduced >= LEAST_SHARE * self.tries
        return "reproduced" if often else "sometimes reproduced"

    @property
    def reproduces(self) -> bool:
        return self.status == "reproduced"

    def __str__(self) -> str:
        if self.tries == 0:
            return f"{self.status} ({self.skipped})" if self.skipped else self.status
        if self.reproduced == 0:
            tries = sum(one.tries for one in self.tried)
            return f"{self.status} in {tries} fresh JVMs with {_artifacts(len(self.tried))}"
        others = len(self.tried) - 1
        more = "" if self.reproduces or others < 1 else f"; {_artifacts(others)} more did no better"
        jvms = "fresh JVM" if self.tries == 1 else "fresh JVMs"
        return f"{self.status}, {self.reproduced} of {self.tries} {jvms}{more}"


def _artifacts(number: int) -> str:
    return f"{number} artifact{'s' if number != 1 else ''}"


@dataclass
class Bucket:
    """Findings with one cause; the signature is that of the most frequent one. The rest is what the
    run made of it."""

    signature: Signature
    findings: list[Finding] = field(default_factory=list)
    id: str = ""
    shown: Finding | None = None  # the one whose artifact came back best
    verification: Verification = field(default_factory=Verification)
    artifact: Path | None = None
    text: Path | None = None
    report: Path | None = None
    replay_command: str = ""
    known: str = ""  # in words: the known causes that it is, or is like
    write_ups: tuple[str, ...] = ()  # links, of those that it is
    # Of the counts of keys whose findings are in other buckets, too.
    shares: dict[ProcessKey, float] = field(default_factory=dict)
    sampled: bool = False  # nothing was set to anything, so the explanation leaves the input out

    @property
    def count(self) -> int:
        return sum(self._own_part(finding, finding.count) for finding in self._per_key())

    def _own_part(self, finding: Finding, count: int) -> int:
        return round(count * self.shares.get(_process_key(finding), 1))

    def _per_key(self) -> list[Finding]:
        """Findings of one process and key share one count: the one that says most of it."""
        found: dict[ProcessKey, Finding] = {}
        for finding in self.findings:
            key = _process_key(finding)
            if key not in found or found[key].count < finding.count:
                found[key] = finding
        return list(found.values())

    @property
    def victims(self) -> dict[str, int]:
        """How often it was seen with which victim, the most frequent first."""
        found: Counter[str] = Counter()
        for finding in self._per_key():
            victim = finding.victim or finding.scenario
            counts = finding.victims or ({victim: finding.count} if victim else {})
            found.update({name: self._own_part(finding, count) for name, count in counts.items()})
        return dict(found.most_common())

    @property
    def state(self) -> str:
        """Of the finding that is shown."""
        return self.best.state

    @property
    def merged(self) -> list[Signature]:
        """Other signatures that were merged into this bucket."""
        return sorted({finding.signature for finding in self.findings} - {self.signature}, key=str)

    def best_first(self) -> list[Finding]:
        """Findings with an artifact: the bucket's own signature first, then the nearest to a real state,
        then robust and simple ones."""
        with_artifact = [finding for finding in self.findings if finding.artifact is not None]
        return sorted(
            with_artifact,
            key=lambda finding: (
                finding.signature != self.signature,
                state_rank(finding.state),
                -finding.robustness,
                finding.mutations,
                len(finding.text),
            ),
        )

    def candidates(self) -> list[Finding]:
        """best_first() with the best of every scenario ahead: where one artifact does not come back,
        others of its scenario seldom do."""
        seen: set[str] = set()
        ahead: list[Finding] = []
        others: list[Finding] = []
        for finding in self.best_first():
            (others if finding.scenario in seen else ahead).append(finding)
            seen.add(finding.scenario)
        return ahead + others

    @property
    def best(self) -> Finding:
        return self.shown or next(iter(self.best_first()), self.findings[0])

    @property
    def about(self) -> list[str]:
        """Lines beside the explanation: known causes, the victims where there are several, and what
        else was done that is told apart by numbers alone."""
        victims = [f"{name} {count:,}" for name, count in self.victims.items()]
        others = self._other_details()
        return [
            *([self.known] if self.known else []),
            *([f"victims: {shortened(victims, _SHOWN, last=', ')}"] if len(victims) > 1 else []),
            *([f"also: {shortened(others, _SHOWN, '; ', '; ')}"] if others else []),
        ]

    def _other_details(self) -> list[str]:
        """Of a broken contract, where nothing was mutated: each other way of breaking it once."""
        seen = {_shape(self.best)}
        others = []
        for finding in self.best_first():
            is_plain = finding.kind == "contract" and finding.state in ("real", "")
            if is_plain and _shape(finding) not in seen:
                seen.add(_shape(finding))
                others.append(finding.detail.split(_EXPECTED)[0])
        return others

    @property
    def title(self) -> str:
        """`b01 torn fault in frame::sender`."""
        return " ".join(part for part in (self.id, self.state, str(self.signature)) if part)

    @property
    def explanation(self) -> str:
        return explain(self.best, with_input=not self.sampled)


def _process_key(finding: Finding) -> ProcessKey:
    return (finding.artifact.parent if finding.artifact else None, finding.key)


def _shape(finding: Finding) -> str:
    """What a contract's walker did, with its numbers and without methods, which are the victim's."""
    return _METHOD.sub("*", finding.detail.split(_EXPECTED)[0])


def names_of(finding: Finding) -> list[str]:
    """The frames that two findings are compared by."""
    return significant(frame.name for frame in finding.frames)[:COMPARED]


def alike(one: Finding, other: Finding) -> bool:
    """Whether two findings are near-duplicates."""
    if one.signature == other.signature:
        return True
    if (one.signature.kind, one.signature.clause) != (other.signature.kind, other.signature.clause):
        return False
    if not names_of(one) or not names_of(other) or names_of(one)[0] != names_of(other)[0]:
        return False
    return bool(Indel.normalized_similarity(names_of(one), names_of(other)) >= SIMILARITY)


def _share_counts(buckets: Sequence[Bucket]) -> None:
    """A process counts by key: where its findings are in several buckets, each has its part."""
    recorded = Counter(_process_key(finding) for one in buckets for finding in one.findings)
    for bucket in buckets:
        own = Counter(map(_process_key, bucket.findings))
        bucket.shares = {
            key: count / recorded[key] for key, count in own.items() if count < recorded[key]
        }


def into_buckets(findings: Iterable[Finding]) -> list[Bucket]:
    """Buckets with ids b01, b02, ...: the nearest to a real state first, then the most frequent. The order
    of findings does not matter much: frequent signatures come first, so that they name the bucket."""
    by_signature: dict[Signature, list[Finding]] = {}
    for finding in findings:
        by_signature.setdefault(finding.signature, []).append(finding)
    groups = [Bucket(signature, group) for signature, group in by_signature.items()]
    groups.sort(key=lambda bucket: (-bucket.count, str(bucket.signature)))
    merged: list[Bucket] = []
    for group in groups:
        home = next((b for b in merged if alike(b.findings[0], group.findings[0])), None)
        if home is None:
            merged.append(group)
        else:
            home.findings += group.findings
    _share_counts(merged)
    merged.sort(key=lambda one: (state_rank(one.state), -one.count, str(one.signature)))
    for number, bucket in enumerate(merged, start=1):
        bucket.id = f"b{number:02d}"
    return merged
