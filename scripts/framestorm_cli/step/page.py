"""The page of a run: by section of code how each walker did, and each blob with its instructions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files
from framestorm_cli.base.machine import machine
from framestorm_cli.binaries import disassembly
from framestorm_cli.reports import templates
from framestorm_cli.step.results import VERDICTS, Blob, Results, Tally, named


@dataclass(frozen=True)
class Line:
    """An instruction. `verdicts`: of each walker, the verdict it got, the worst where several."""

    offset: int
    text: str
    section: str
    steps: int
    verdicts: tuple[str, ...]
    counts: tuple[str, ...]  # in words


@dataclass(frozen=True)
class Listing:
    title: str
    stepped: int
    not_right: tuple[int, ...]  # instructions, of each walker
    lines: tuple[Line | None, ...]  # None: instructions that were not stepped are left out there


# The worst first. `right`: an oracle found something else than the trace.
_RANK = {
    verdict: rank for rank, verdict in enumerate(("failed", "wrong", "right", "short", "refused"))
}
_MOST_LISTED = 20_000  # instructions; a browser takes long for more
_CONTEXT = 2  # instructions shown on either side of those that were stepped


def write(made: Results, jdk: str, path: Path) -> None:
    """Raises OSError."""
    blobs = sorted(made.blobs, key=lambda one: -sum(_not_right(one, made.walkers)))
    listed = list(_first(blobs, _MOST_LISTED))
    listings = [_listing(blob, made.walkers) for blob in listed]
    environment = templates.environment("framestorm_cli.step")
    text = environment.get_template("step.html").render(
        made=made,
        jdk=jdk,
        machine=machine(),
        verdicts=VERDICTS[:5],
        distinct=made.distinct_by_section,
        findings=sorted(made.findings, key=lambda one: (_RANK[one.verdict], -one.count)),
        left_out=len(blobs) - len(listed),
        sampled=made.sampled(),
        listings=sorted(listings, key=lambda one: (-sum(one.not_right), one.title)),
    )
    files.write_text(path, text)


def _first(blobs: list[Blob], most: int) -> Iterator[Blob]:
    """With so many instructions in all; at least one blob."""
    for blob in blobs:
        yield blob
        most -= len(blob.instructions)
        if most <= 0:
            return


def _not_right(blob: Blob, walkers: list[str]) -> tuple[int, ...]:
    """Instructions, of each walker."""
    return tuple(
        sum(
            _worst(one.walkers.get(name, Tally())) not in ("right", "unjudged", "")
            for one in blob.instructions
        )
        for name in walkers
    )


def _listing(blob: Blob, walkers: list[str]) -> Listing:
    decoded = disassembly.instructions(blob.code)
    stepped = {one.offset: one for one in blob.instructions}
    at = {offset: index for index, (offset, _) in enumerate(decoded)}
    wanted: set[int] = set()
    for offset in stepped:
        index = at.get(offset, 0)
        wanted.update(range(max(0, index - _CONTEXT), min(len(decoded), index + _CONTEXT + 1)))
    lines: list[Line | None] = []
    last = -1
    for index in sorted(wanted):
        if index != last + 1:
            lines.append(None)
        last = index
        offset, text = decoded[index]
        one = stepped.get(offset)
        tallies = [one.walkers.get(name, Tally()) if one else Tally() for name in walkers]
        lines.append(
            Line(
                offset,
                text,
                one.section if one else "",
                one.steps if one else 0,
                tuple(_worst(tally) for tally in tallies),
                tuple(_words(tally) for tally in tallies),
            )
        )
    return Listing(
        named(blob.kind, blob.name, blob.tier),
        len(stepped),
        _not_right(blob, walkers),
        tuple(lines),
    )


def _worst(tally: Tally) -> str:
    for verdict in ("failed", "wrong", "short", "refused", "right", "unjudged"):
        if getattr(tally, verdict):
            return verdict
    return ""


def _words(tally: Tally) -> str:
    return ", ".join(f"{getattr(tally, v):,} {v}" for v in VERDICTS if getattr(tally, v))
