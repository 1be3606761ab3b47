"""Signatures: what makes two findings the same. Kind, clause and the top three significant frames; of a
broken contract, whose walk has returned, what the walker did instead."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from framestorm_cli.binaries.symbols import Frame, Symbolizer
from framestorm_cli.findings.finding import Finding, Signature, thread_state

TOP_FRAMES = 3
# Where a walk starts. What called it is the profiler, not the walker.
ENTRY_POINT = re.compile(
    r"AsyncGetCallTrace2?|AsyncGetStackTrace|ASGST_\w+|JvmtiEnv::GetStackTrace|jvmti_GetStackTrace"
    r"|framestorm_walk"
)
VICTIM = "victim "  # starts the one entry of a signature without walker frames
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_IGNORED = Path(__file__).with_name("ignored_frames.txt")


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
    """The walker's stack of a finding."""
    first_is_return = starts_at_a_return(finding)
    return symbolizer.stack(finding.stack, finding.modules, first_is_return=first_is_return)


def starts_at_a_return(finding: Finding) -> bool:
    """Only faults and hangs start at a pc, see the protocol."""
    return finding.kind not in ("fault", "hang")


def signature_of(finding: Finding) -> Signature:
    """By its frames, or what the walker did."""
    names = significant(frame.name for frame in finding.frames)
    if names:
        return Signature(finding.kind, finding.clause, tuple(names[:TOP_FRAMES]))
    if finding.kind == "contract":
        # Older processes did not write the class of a detail.
        did = finding.detail_class or _NUMBER.sub("*", finding.detail)
        return Signature(finding.kind, finding.clause, (), did, finding.walker)
    return _by_victim(finding)


def _by_victim(finding: Finding) -> Signature:
    frames = (f"{VICTIM}{finding.scenario}",) if finding.scenario else ()
    return Signature(finding.kind, finding.clause, frames)


def signatures_of(finding: Finding) -> tuple[Signature, ...]:
    """Its own, and of a broken contract the ones it had when these were told apart by victim, by the state
    of a sampled thread, or not by the kind of code: expectations and lists of known buckets may still have
    those."""
    own = finding.signature
    if finding.kind != "contract" or own.frames:
        return (own,)
    every = [own, _by_victim(finding)]
    if state := finding.context.get("thread_state", ""):
        every.append(Signature(own.kind, own.clause, (f"a thread {thread_state(state)}",)))
    _, separator, anywhere = own.did.partition(": ")
    if separator:
        every.append(Signature(own.kind, own.clause, (), anywhere, own.walker))
    return tuple(every)


def _places(name: str, library: Path, symbolizer: Symbolizer) -> list[Any]:
    """A library and where in it the function is; a frame that stands for a library without symbols is
    anywhere in it. Empty: it has none."""
    if name == f"[{library.name}]":
        return [library.name, [0, library.stat().st_size]]
    found = symbolizer.module(library).ranges(name)
    return [library.name, *map(list, found)] if found else []


def native_filter(
    signature: Signature, symbolizer: Symbolizer, libraries: Sequence[Path]
) -> dict[str, Any] | None:
    """The signature as address ranges of these libraries, for the native programs; a function is that of
    the first one which has it. None when it cannot be said that way (the process dies, a frame is in
    none of them)."""
    if signature.kind == "process_death":
        return None  # seen from outside the process only
    frames: list[list[Any]] = []
    for name in signature.frames:
        if name.startswith(VICTIM):
            continue
        places = (_places(name, library, symbolizer) for library in libraries)
        found = next(filter(None, places), None)
        if found is None:
            return None
        frames.append(found)
    wanted = {"kind": signature.kind, "clause": signature.clause, "frames": frames}
    if signature.walker:  # one that was written with the class of its detail
        wanted |= {"detail_class": signature.did, "walker": signature.walker}
    return wanted
