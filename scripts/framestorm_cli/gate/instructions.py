"""Stepping runs of two sides held against each other: at which instructions a walker is not right on one
of them, and right on the other.

An instruction is the same one in two runs when it stands at the same place of code of the same name and
size, with the same instructions around it: what is compiled differs from run to run. What only one run
has is compared by section of code.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from framestorm_cli.binaries import disassembly
from framestorm_cli.step.results import NOT_RIGHT, Blob, Miss, Results, Tally, named
from framestorm_cli.stress.proportion import chance

_AROUND = 3  # instructions on either side
# Addresses, and what is patched, differ between processes; a displacement of nothing is not printed.
_NUMBER = re.compile(r"( [+-] )?\b(0x[0-9a-f]+|\d+)\b")


@dataclass(frozen=True, order=True)
class Place:
    """An instruction; without `code`, any of a section."""

    section: str
    code: str = ""  # kind, name and tier of its blob
    offset: int = 0
    size: int = 0  # of the blob
    around: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}+{self.offset:#x}" if self.code else self.section


@dataclass(frozen=True, order=True)
class Way:
    """In which a walker is not right somewhere."""

    walker: str
    verdict: str  # of NOT_RIGHT
    place: Place


@dataclass
class Stepped:
    """A run."""

    tallies: dict[Place, dict[str, Tally]] = field(default_factory=dict)
    misses: dict[Way, Miss] = field(default_factory=dict)
    texts: dict[Place, str] = field(default_factory=dict)  # disassembled

    def tally(self, way: Way) -> Tally:
        return self.tallies.get(way.place, {}).get(way.walker, Tally())

    def has(self, way: Way) -> bool:
        """Whether it was walked there, and could be judged."""
        tally = self.tally(way)
        return tally.right + tally.not_right > 0

    def hit(self, way: Way) -> bool:
        return bool(getattr(self.tally(way), way.verdict))


def of(made: Results) -> Stepped:
    run = Stepped()
    for section, walkers in made.sections.items():
        run.tallies[Place(section)] = walkers
    for blob in made.blobs:
        for place, text, walkers, misses in _of_blob(blob):
            tallies = run.tallies.setdefault(place, {})
            for walker, tally in walkers.items():
                tallies[walker] = tallies.get(walker, Tally()) + tally
            run.texts[place] = text
            for miss in misses:
                run.misses.setdefault(Way(miss.walker, miss.verdict, place), miss)
                run.misses.setdefault(Way(miss.walker, miss.verdict, Place(place.section)), miss)
    return run


def _of_blob(blob: Blob) -> Iterator[tuple[Place, str, dict[str, Tally], Sequence[Miss]]]:
    decoded = disassembly.instructions(blob.code)
    bare = [_NUMBER.sub("", text) for _, text in decoded]
    at = {offset: index for index, (offset, _) in enumerate(decoded)}
    code = named(blob.kind, blob.name, blob.tier)
    for one in blob.instructions:
        index = at.get(one.offset)
        around = () if index is None else tuple(bare[max(0, index - _AROUND) : index + _AROUND + 1])
        yield (
            Place(one.section, code, one.offset, len(blob.code) // 2, around),
            "" if index is None else decoded[index][1],
            one.walkers,
            one.misses,
        )


def worse(run: Stepped, other: Stepped) -> set[Way]:
    """Where a walker is not right in `run`, and nothing but right in `other`. By section: where in
    `other` it is never so."""
    found = set()
    for place, walkers in run.tallies.items():
        for walker, tally in walkers.items():
            for verdict in NOT_RIGHT:
                way = Way(walker, verdict, place)
                theirs = other.tally(way)
                clean = not (theirs.not_right if place.code else getattr(theirs, verdict))
                if getattr(tally, verdict) and theirs.right and clean:
                    found.add(way)
    return found


@dataclass(frozen=True)
class Compared:
    """How many runs had a way, of those that walked there; never one of the others' `others`."""

    way: Way
    hits: int
    tries: int
    others: int

    @property
    def chance(self) -> float:
        return chance(self.hits, self.tries, self.others)


def compared(ways: set[Way], runs: Sequence[Stepped], others: Sequence[Stepped]) -> list[Compared]:
    """Those of the ways that no run of the other side has. A section tells nothing where an
    instruction does."""
    found = []
    for way in sorted(ways):
        if any(run.tally(way).not_right if way.place.code else run.hit(way) for run in others):
            continue
        tries = [run for run in runs if run.has(way)]
        hits = sum(run.hit(way) for run in tries)
        found.append(Compared(way, hits, len(tries), sum(run.has(way) for run in others)))
    return found
