"""The list of known buckets: a run fails on others only. One JSON file that people may edit.

{"format": 1, "known": [{"kind": "fault", "clause": "", "frames": ["frame::sender"], "note": "JDK-1"}]}
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from framestorm_cli.base import files
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings.finding import STATES, Signature
from framestorm_cli.triage.buckets import Bucket
from framestorm_cli.triage.signature import signatures_of

FORMAT = 1


@dataclass(frozen=True)
class Known:
    """`notes` by signature; empty for one that nobody wrote anything about."""

    notes: dict[Signature, str]

    def __contains__(self, bucket: Bucket) -> bool:
        """A bucket is known when its own signature is, and each that was merged into it."""
        return all(self._has(bucket, one) for one in (bucket.signature, *bucket.merged))

    def _has(self, bucket: Bucket, signature: Signature) -> bool:
        """Older lists have contract findings by victim. Where something was mutated, the victim is only
        where it was tried: one that is listed is enough."""
        if signature in self.notes:
            return True
        own = [finding for finding in bucket.findings if finding.signature == signature]
        listed = [any(one in self.notes for one in signatures_of(finding)) for finding in own]
        return any(listed) and all(
            known or finding.state != STATES[0] for finding, known in zip(own, listed, strict=True)
        )

    def with_buckets(self, buckets: Iterable[Bucket]) -> "Known":
        notes = dict(self.notes)
        for bucket in buckets:
            for signature in (bucket.signature, *bucket.merged):
                notes.setdefault(signature, "")
        return Known(notes)

    def to_json(self) -> dict[str, Any]:
        ordered = sorted(self.notes.items(), key=lambda one: str(one[0]))
        return {
            "format": FORMAT,
            "known": [
                {**msgspec.to_builtins(signature), "note": note} for signature, note in ordered
            ],
        }


NOTHING = Known({})


def read(path: Path) -> Known:
    """Raises FramestormError."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, not {FORMAT}")
        return Known({Signature.from_json(one): str(one.get("note", "")) for one in data["known"]})
    except OSError as error:
        raise FramestormError(f"cannot read the known buckets {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FramestormError(f"{path} is no list of known buckets: {error}") from error


def write(path: Path, known: Known) -> None:
    """Replaces the file. Raises FramestormError."""
    try:
        files.write_json(path, known.to_json())
    except OSError as error:
        raise FramestormError(f"cannot write the known buckets {path}: {error.strerror}") from error


def add(path: Path, signatures: Iterable[Signature]) -> tuple[int, int]:
    """Adds to a list, or begins one; how many signatures it has then, and how many are new."""
    notes = dict(read(path).notes) if path.exists() else {}
    before = len(notes)
    for signature in signatures:
        notes.setdefault(signature, "")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, Known(notes))
    return len(notes), len(notes) - before
