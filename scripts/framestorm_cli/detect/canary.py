"""What a planted bug's canary counted: the file that libjvm maps (framestorm_canary.cpp)."""

import struct
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "FRAMESTORM_CANARY"
_LAYOUT = struct.Struct("<4Q")
_OF_MUTANT = struct.Struct("<2Q")
_MUTANTS = 8192


@dataclass(frozen=True)
class Canary:
    """`reached`: the place of the fix was executed so often; `triggered`: the fix would have acted so often.
    `first_triggered`: CLOCK_MONOTONIC seconds; None: never."""

    reached: int
    triggered: int
    first_triggered: float | None


def prepare(file: Path) -> None:
    """An untouched file for a run."""
    file.write_bytes(bytes(_LAYOUT.size + _MUTANTS * _OF_MUTANT.size))


def read(file: Path) -> Canary:
    reached, triggered, _, first = _LAYOUT.unpack(file.read_bytes()[: _LAYOUT.size])
    return Canary(reached, triggered, first / 1e9 if first else None)


def read_mutants(file: Path) -> dict[int, tuple[int, int]]:
    """By number: how often a mutant was reached, and would have acted. Those that were reached, where none
    was in force."""
    counts = _OF_MUTANT.iter_unpack(file.read_bytes()[_LAYOUT.size :])
    return {number: both for number, both in enumerate(counts) if both[0]}
