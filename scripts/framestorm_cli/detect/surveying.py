"""Where a mutant acts: looked for once, for all of them, with none in force.

Each part of a contestant (a fuzz target, a scenario that is stepped) looks alone, while libjvm counts for
each mutant how often it would have acted. A mutant is then looked for with the parts that make it act. No run
is needed of one that no part makes act, nor by a contestant that tries them all meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from framestorm_cli.detect.contestants import CONTESTANTS
from framestorm_cli.detect.subjects import MUTANT, Subject, controls
from framestorm_cli.native import toolchain

_COUNTED = {MUTANT: "-1"}  # none in force, each counted (framestorm_canary.hpp)
_SECONDS = 3.0  # of a run for each part: shorter, and JVMs do little but start


class Surveyed(Protocol):
    """A part's look. `acts`: by mutant, how often it was reached and would have acted."""

    @property
    def contestant(self) -> str: ...
    @property
    def walkers(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> tuple[str, ...]: ...
    @property
    def acts(self) -> dict[int, tuple[int, int]]: ...


def parts(subjects: Sequence[Subject], name: str) -> Iterator[tuple[Subject, str]]:
    """Who is looked at, and with which part of the contestant of that name, once each."""
    contestant = CONTESTANTS[name]
    for one in controls(subjects):
        tools = toolchain.prepare(one.home(contestant.variant))
        for part in contestant.parts(tools, one.walkers):
            yield replace(one, environment=_COUNTED), part


def best(
    number: int, walkers: Sequence[str], contestant: str, seconds: float, done: Sequence[Surveyed]
) -> tuple[Surveyed, ...]:
    """The parts that made this mutant act most often, as many as `seconds` are enough for; none: none did."""
    acting = [
        one
        for one in done
        if (one.contestant, one.walkers) == (contestant, tuple(walkers)) and _acts(one, number)[1]
    ]
    acting.sort(key=lambda one: -_acts(one, number)[1])
    return tuple(acting[: max(1, int(seconds / _SECONDS))])


def reached(number: int, walkers: Sequence[str], done: Sequence[Surveyed]) -> int:
    """How often any part came to its place."""
    return sum(_acts(one, number)[0] for one in done if one.walkers == tuple(walkers))


def _acts(one: Surveyed, number: int) -> tuple[int, int]:
    return one.acts.get(number, (0, 0))
