"""Signatures: what makes two findings the same. Kind, clause and the top three significant frames."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings.records import Finding

TOP_FRAMES = 3
# Where a walk starts. What called it is the profiler, not the walker.
ENTRY_POINT = re.compile(
    r"AsyncGetCallTrace2?|AsyncGetStackTrace|ASGST_\w+|JvmtiEnv::GetStackTrace|jvmti_GetStackTrace"
    r"|framestorm_walk"
)
VICTIM = "victim "  # starts the one entry of a signature without walker frames
_SCENARIO = re.compile(r"^scenario (\S+)", re.MULTILINE)
_IGNORED = Path(__file__).with_name("ignored_frames.txt")


@dataclass(frozen=True)
class Signature:
    """`frames`: normalised function names, innermost first, at most TOP_FRAMES. Without a walker's
    stack (contract findings) one entry: `victim <scenario>`."""

    kind: str
    clause: str
    frames: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "clause": self.clause, "frames": list(self.frames)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Signature":
        """Raises ValueError when a field is missing or of another type."""
        try:
            kind, clause, frames = data["kind"], data.get("clause", ""), data["frames"]
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"a signature has kind, clause and frames: {error} is missing"
            ) from error
        if not isinstance(kind, str) or not isinstance(clause, str) or not isinstance(frames, list):
            raise ValueError(
                "a signature's kind and clause are strings, its frames a list of strings"
            )
        return Signature(kind, clause, tuple(str(frame) for frame in frames))

    def __str__(self) -> str:
        head = f"{self.kind} {self.clause}" if self.clause else self.kind
        return f"{head} in {' < '.join(self.frames)}" if self.frames else head


@cache
def _ignored() -> re.Pattern[str]:
    patterns = []
    for line in _IGNORED.read_text(encoding="utf-8").splitlines():
        pattern = re.split(r"\s+#|^#", line, maxsplit=1)[0].strip()
        if pattern:
            patterns.append(f"(?:{pattern})")
    return re.compile("|".join(patterns))


def is_ignored(name: str) -> bool:
    """Whether a normalised name is on the ignore list (ignored_frames.txt)."""
    return _ignored().fullmatch(name) is not None


def significant(names: Iterable[str]) -> list[str]:
    """The frames that tell causes apart: those above the walker's entry point, without ignored ones.

    The entry point itself, or else the top frame, when that leaves none: a walker that faults right at
    its entry must not share a signature with a finding that has no stack at all.
    """
    walker: list[str] = []
    last: list[str] = []
    for name in names:
        if ENTRY_POINT.fullmatch(name):
            last = [name]
            break
        walker.append(name)
    return [name for name in walker if not is_ignored(name)] or last or walker[:1]


def symbolise(finding: Finding, symbolizer: Symbolizer) -> list[Frame]:
    """The walker's stack of a finding. Only faults and hangs start at a pc, see the protocol."""
    first_is_return = finding.kind not in ("fault", "hang")
    return symbolizer.stack(finding.stack, finding.modules, first_is_return=first_is_return)


def scenario_of(text: str) -> str:
    """The scenario of an input's text form; empty when there is none."""
    matched = _SCENARIO.search(text)
    return matched[1] if matched else ""


def signature_of(finding: Finding, frames: Sequence[Frame]) -> Signature:
    names = significant(frame.name for frame in frames)
    if not names:
        # A walk that returned has no stack to show: the victim is what tells causes apart.
        scenario = scenario_of(finding.text)
        names = [f"{VICTIM}{scenario}"] if scenario else []
    return Signature(finding.kind, finding.clause, tuple(names[:TOP_FRAMES]))


def native_filter(
    signature: Signature, symbolizer: Symbolizer, libjvm: Path
) -> dict[str, Any] | None:
    """The signature as address ranges of this libjvm, for the native programs; None when it cannot
    be said that way (the process dies, a frame is not in libjvm)."""
    if signature.kind == "process_death":
        return None  # seen from outside the process only
    symbols = symbolizer.module(libjvm)
    frames: list[list[Any]] = []
    for name in signature.frames:
        if name.startswith(VICTIM):
            continue
        found = symbols.ranges(name)
        if not found:
            return None
        frames.append([libjvm.name, *map(list, found)])
    return {"kind": signature.kind, "clause": signature.clause, "frames": frames}
