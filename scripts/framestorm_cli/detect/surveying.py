"""Surveys of the libjvm with mutants: each part of a contestant (a fuzz target, a scenario) looks alone.

libjvm counts for each mutant how often it would have acted, and the part tries those that act.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from framestorm_cli.detect.contestants import CONTESTANTS
from framestorm_cli.detect.measuring import Planned
from framestorm_cli.detect.subjects import Subject, controls
from framestorm_cli.native import toolchain

_COUNTED = {"FRAMESTORM_MUTANT": "-1"}  # none in force, each counted (framestorm_canary.hpp)


def plan(
    mutants: Sequence[Subject], contestants: Sequence[str], seed: int, budget: float, out: Path
) -> Iterator[Planned]:
    """Contestant by contestant. `budget`: seconds of a part."""
    for name in contestants:
        contestant = CONTESTANTS[name]
        assert contestant.parts is not None
        for one in controls(mutants):
            tools = toolchain.prepare(one.home(contestant.variant))
            counted = replace(one, environment=_COUNTED)
            for part in contestant.parts(tools, one.walkers):
                yield Planned(counted, name, 1, seed, budget, 0, out, parts=(part,))
