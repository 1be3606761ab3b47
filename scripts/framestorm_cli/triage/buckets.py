"""Findings with one cause, together. Same signature: same bucket. Near-duplicates are merged."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rapidfuzz.distance import Indel

from framestorm_cli.binaries.symbols import Frame
from framestorm_cli.findings.records import Finding
from framestorm_cli.triage.signature import Signature, scenario_of, significant

# Two stacks with the same kind, clause and top frame are one cause when their first COMPARED significant
# frames are at least this alike (1: equal; normalised insert/delete distance of the frame sequences).
# 0.6: of four frames one may be inserted or missing on either side. Inlining and tail calls do that.
SIMILARITY = 0.6
COMPARED = 8
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_MUTATION = re.compile(r"(register|stack|thread|depth|env|options|context) ")


@dataclass
class Case:
    """One finding with what triage found out about it."""

    finding: Finding
    signature: Signature
    frames: list[Frame]
    count: int = 1
    rechecks: int = 0
    rechecks_hit: int = 0
    target: str = ""
    seed: int | None = None

    @property
    def names(self) -> list[str]:
        return significant(frame.name for frame in self.frames)[:COMPARED]

    @property
    def robustness(self) -> float:
        """Share of re-executions at other halt points that showed it again; the fewer there were, the
        nearer to a half."""
        return (self.rechecks_hit + 1) / (self.rechecks + 2)

    @property
    def mutations(self) -> int:
        """What the input changes; each has to fall into place again in another process."""
        return sum(1 for line in self.finding.text.splitlines() if _MUTATION.match(line))

    @property
    def scenario(self) -> str:
        return scenario_of(self.finding.text)


@dataclass
class Bucket:
    """Cases with one cause; the signature is that of the most frequent one."""

    signature: Signature
    cases: list[Case] = field(default_factory=list)
    id: str = ""

    @property
    def count(self) -> int:
        # Cases of one process and key share one count.
        per_key: dict[tuple[object, str], int] = {}
        for case in self.cases:
            folder = case.finding.artifact.parent if case.finding.artifact else None
            key = (folder, case.finding.key)
            per_key[key] = max(per_key.get(key, 0), case.count)
        return sum(per_key.values())

    @property
    def merged(self) -> list[Signature]:
        """Other signatures that were merged into this bucket."""
        return sorted({case.signature for case in self.cases} - {self.signature}, key=str)

    def best_first(self) -> list[Case]:
        """Cases with an artifact: the bucket's own signature first, robust and simple ones first."""
        with_artifact = [case for case in self.cases if case.finding.artifact is not None]
        return sorted(
            with_artifact,
            key=lambda case: (
                case.signature != self.signature,
                -case.robustness,
                case.mutations,
                len(case.finding.text),
            ),
        )

    def candidates(self) -> list[Case]:
        """best_first() with the best of every scenario ahead: where one artifact does not come back,
        others of its scenario seldom do."""
        seen: set[str] = set()
        ahead: list[Case] = []
        others: list[Case] = []
        for case in self.best_first():
            (others if case.scenario in seen else ahead).append(case)
            seen.add(case.scenario)
        return ahead + others

    @property
    def best(self) -> Case:
        ordered = self.best_first()
        return ordered[0] if ordered else self.cases[0]


def alike(one: Case, other: Case) -> bool:
    """Whether two cases are near-duplicates."""
    if one.signature == other.signature:
        return True
    if (one.signature.kind, one.signature.clause) != (other.signature.kind, other.signature.clause):
        return False
    if not one.frames and not other.frames and one.mutations and other.mutations:
        # Walks that returned: what was mutated did it, and the victim is only where it was tried.
        details = [_NUMBER.sub("", case.finding.detail) for case in (one, other)]
        return details[0] == details[1]
    if not one.names or not other.names or one.names[0] != other.names[0]:
        return False
    return bool(Indel.normalized_similarity(one.names, other.names) >= SIMILARITY)


def into_buckets(cases: Iterable[Case]) -> list[Bucket]:
    """Buckets, most frequent first, with ids b01, b02, ... The order of cases does not matter much:
    frequent signatures come first, so that they name the bucket."""
    by_signature: dict[Signature, list[Case]] = {}
    for case in cases:
        by_signature.setdefault(case.signature, []).append(case)
    groups = [Bucket(signature, group) for signature, group in by_signature.items()]
    groups.sort(key=lambda bucket: (-bucket.count, str(bucket.signature)))
    merged: list[Bucket] = []
    for group in groups:
        home = next((b for b in merged if alike(b.cases[0], group.cases[0])), None)
        if home is None:
            merged.append(group)
        else:
            home.cases += group.cases
    merged.sort(key=lambda bucket: (-bucket.count, str(bucket.signature)))
    for number, bucket in enumerate(merged, start=1):
        bucket.id = f"b{number:02d}"
    return merged
