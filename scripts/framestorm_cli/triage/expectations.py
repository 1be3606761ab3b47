"""corpus/crashes: one folder per known crash, replayed by test_crashes.py, and a cause that runs name.

    <id>/input.bin  input.txt  expected.json  [input-17.bin  input-17.txt]
    expected.json: {"walker": "asgct", "state": "corrupt",
                    "per_jdk": {"25": {"status": "open", "signature": {...}, "also": [...]},
                                "17": {"status": "fixed"}}}

The keys are feature releases, and "25-sanitized" and the like for instrumented JDKs. `open`: the
signature must still come back. `fixed` (once open), `unaffected` (never seen): it must not. `also`:
other signatures that the cause is written up to have. `walker` and `state` are those of the input;
`also_walkers` have the cause's code, too. input-17.bin stands in for input.bin on JDK 17: code of a method
has the place in question at another offset there.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import STATES, Finding, Signature, state_rank
from framestorm_cli.findings.records import Json
from framestorm_cli.triage.buckets import Bucket
from framestorm_cli.triage.signature import signatures_of

STATUSES = ("open", "fixed", "unaffected")
_LABEL = r"\d+(?:-[a-z]+)?"


def folders(base: Path = paths.CRASHES) -> list[Path]:
    """The crash folders, by name."""
    return sorted(p for p in base.iterdir() if p.is_dir()) if base.is_dir() else []


def artifact_of(folder: Path, label: str) -> Path:
    """The one that is replayed on a JDK (Jdk.label)."""
    own = folder / f"input-{label}.bin"
    return own if own.exists() else folder / "input.bin"


def is_of(artifact: Path, label: str) -> bool:
    """Whether an artifact is for this JDK: not when it is another's own, or this one has its own."""
    own = re.fullmatch(rf"input-({_LABEL})\.bin", artifact.name)
    if own is not None:
        return own[1] == label
    return artifact.name != "input.bin" or artifact_of(artifact.parent, label) == artifact


def walkers_of(folder: Path) -> frozenset[str]:
    """Of the input, and others that have the cause's code."""
    found = records.read_json(folder / "expected.json")
    return _walkers_in(found) if "walker" in found else frozenset()


def _walkers_in(expected: Json) -> frozenset[str]:
    return frozenset([str(expected["walker"]), *expected.get("also_walkers", ())])


def profiler_of(folder: Path) -> str:
    """The name of the profiler that walks; empty: none does."""
    return _profiler_in(records.read_json(folder / "expected.json"))


def _profiler_in(expected: Json) -> str:
    of = expected.get("profiler")
    return str(of.get("name", "")) if isinstance(of, dict) else ""


def open_signatures(folder: Path) -> dict[str, set[Signature]]:
    """All that the cause is written up to have, by Jdk.label, where it is open. Raises FramestormError."""
    path = folder / "expected.json"
    expected = read_expectations(path)
    per_jdk: Json = records.read_json(path)["per_jdk"]
    try:
        return {
            label: {signature, *map(Signature.from_json, per_jdk[label].get("also", ()))}
            for label, (status, signature) in expected.items()
            if status == "open" and signature is not None
        }
    except (ValueError, TypeError) as error:
        raise FramestormError(f"{path}: {error}") from error


def read_expectations(path: Path) -> dict[str, tuple[str, Signature | None]]:
    """Status and signature per Jdk.label, of a file in the form of expected.json. Raises FramestormError when
    they make no sense."""
    try:
        per_jdk = json.loads(path.read_text(encoding="utf-8"))["per_jdk"]
        expected: dict[str, tuple[str, Signature | None]] = {}
        for label, entry in per_jdk.items():
            if not re.fullmatch(_LABEL, label):
                raise ValueError(f"{label!r} is no release like 25 or 25-sanitized")
            status, data = entry["status"], entry.get("signature")
            if status not in STATUSES:
                raise ValueError(f"status {status!r} is none of {', '.join(STATUSES)}")
            expected[label] = (status, Signature.from_json(data) if data else None)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FramestormError(f"{path}: {error}") from error
    opened = [signature for status, signature in expected.values() if status == "open"]
    if any(signature is None for signature in opened):
        raise FramestormError(f"{path}: an open crash needs its signature")
    known = next((signature for _, signature in expected.values() if signature), None)
    if known is None:
        raise FramestormError(f"{path}: no entry has a signature")
    # Where it is fixed, what must not come back is the signature of where it is open.
    return {label: (status, signature or known) for label, (status, signature) in expected.items()}


@dataclass(frozen=True)
class Cause:
    """A cause of corpus/crashes that is open on a JDK."""

    name: str
    walkers: frozenset[str]
    state: str
    signatures: frozenset[Signature]

    @property
    def write_up(self) -> str:
        return f"corpus/crashes/README.md#{self.name}"

    def explains(self, finding: Finding) -> bool:
        """Whether a finding is this cause, as far as it can say so: the walker's, with one of its
        signatures, and in a state no nearer to a real one than what is written up. What the cause needs a
        corrupt state for does not explain a finding in a state that threads have."""
        state = finding.state
        nearer = state_rank(state) < state_rank(self.state)
        return self.is_like(finding) and state in STATES and not nearer

    def is_like(self, finding: Finding) -> bool:
        """The same, whatever the state."""
        same = any(one in self.signatures for one in signatures_of(finding))
        return same and finding.walker in self.walkers


def causes_on(label: str, base: Path = paths.CRASHES, *, profiler: str = "") -> list[Cause]:
    """The causes that are open on a JDK (Jdk.label), of a profiler of this name or else of other walkers. Of
    an instrumented JDK that a cause does not mention they are those of its release. Raises FramestormError
    when one makes no sense."""
    found = []
    for folder in folders(base):
        path = folder / "expected.json"
        data = records.read_json(path)
        of = label if label in data.get("per_jdk", ()) else label.partition("-")[0]
        signatures = open_signatures(folder).get(of)
        if signatures is None:
            continue
        if _profiler_in(data) != profiler:
            continue
        try:
            walkers, state = _walkers_in(data), str(data["state"])
            if state not in STATES:
                raise ValueError(f"state {state!r} is none of {', '.join(STATES)}")
        except (ValueError, KeyError, TypeError) as error:
            raise FramestormError(f"{path}: {error}") from error
        found.append(Cause(folder.name, walkers, state, frozenset(signatures)))
    return found


def explaining(bucket: Bucket, causes: Sequence[Cause]) -> list[Cause]:
    """The known causes that a bucket's findings are of; empty as soon as one finding has none."""
    return _of_all(bucket, causes, Cause.explains)


def name(bucket: Bucket, causes: Sequence[Cause]) -> None:
    """Says in the bucket which known causes it is, or is like though its state is nearer to a real one
    than what is written up."""
    found = explaining(bucket, causes)
    bucket.write_ups = tuple(cause.write_up for cause in found)
    if found:
        bucket.known = f"known: {_shown(found)}"
    elif similar := _of_all(bucket, causes, Cause.is_like):
        bucket.known = (
            f"like {_shown(similar)}, which is written up in a state farther from a real one"
        )


def _shown(causes: Sequence[Cause]) -> str:
    return " or ".join(f"{cause.name} ({cause.write_up})" for cause in causes)


def _of_all(
    bucket: Bucket, causes: Sequence[Cause], of: Callable[[Cause, Finding], bool]
) -> list[Cause]:
    found: dict[str, Cause] = {}
    for finding in bucket.findings:
        own = [cause for cause in causes if of(cause, finding)]
        if not own:
            return []
        found |= {cause.name: cause for cause in own}
    return list(found.values())
