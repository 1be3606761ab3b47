"""What a planted bug's canary counted: the file that libjvm maps (framestorm_canary.cpp).

Behind it stands, of mutants, what a driver that tries them writes (harness/jvm/libjvm_mutants.h).
"""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "FRAMESTORM_CANARY"
_LAYOUT = struct.Struct("<4QqQ")
_OF_MUTANT = struct.Struct("<2Q")
_TRYING = struct.Struct("<Q")
_TRIED = struct.Struct("<2IB3x")
_KILLED, _DIED = 1, 2  # Fate in libjvm_mutants.h
_MUTANTS = 8192
_END_OF_COUNTS = _LAYOUT.size + _MUTANTS * _OF_MUTANT.size


@dataclass(frozen=True)
class Canary:
    """`reached`: the place of the fix was executed so often; `triggered`: the fix would have acted so often.
    `first_triggered`: CLOCK_MONOTONIC seconds; None: never."""

    reached: int
    triggered: int
    first_triggered: float | None


@dataclass(frozen=True)
class Tried:
    """`tries`: walks that made a mutant act were made again with it so often. `differed`: so many of them
    answered otherwise. `killed`: one of them showed it, or the process then died."""

    tries: int
    differed: int
    killed: bool


def prepare(file: Path, mutants: int = 0, killed: Collection[int] = ()) -> None:
    """An untouched file for a run. `mutants`: so many has the libjvm. `killed`: those that are not tried."""
    fates = (_KILLED if number in killed else 0 for number in range(_MUTANTS))
    file.write_bytes(
        _LAYOUT.pack(0, 0, 0, 0, 0, mutants)
        + bytes(_MUTANTS * _OF_MUTANT.size + _TRYING.size)
        + b"".join(_TRIED.pack(0, 0, fate) for fate in fates)
    )


def read(file: Path) -> Canary:
    reached, triggered, _, first, _, _ = _LAYOUT.unpack(file.read_bytes()[: _LAYOUT.size])
    return Canary(reached, triggered, first / 1e9 if first else None)


def read_mutants(file: Path) -> dict[int, tuple[int, int]]:
    """By number: how often a mutant was reached, and would have acted. Those that were reached, where none
    was in force."""
    counts = _OF_MUTANT.iter_unpack(file.read_bytes()[_LAYOUT.size : _END_OF_COUNTS])
    return {number: both for number, both in enumerate(counts) if both[0]}


def write_tried(file: Path, tried: Mapping[int, Tried]) -> None:
    """For who tries them by starting processes. None of them has been tried before."""
    with file.open("r+b") as out:
        for number, one in tried.items():
            out.seek(_END_OF_COUNTS + _TRYING.size + number * _TRIED.size)
            out.write(_TRIED.pack(one.tries, one.differed, _KILLED if one.killed else 0))


def read_killed(file: Path) -> set[int]:
    """By number, those that need not be tried."""
    tried = _TRIED.iter_unpack(file.read_bytes()[_END_OF_COUNTS + _TRYING.size :])
    return {number for number, (_, _, fate) in enumerate(tried) if fate == _KILLED}


def read_tried(file: Path) -> dict[int, Tried]:
    """By number, those that were tried."""
    data = file.read_bytes()[_END_OF_COUNTS:]
    (trying,) = _TRYING.unpack(data[: _TRYING.size])
    tried = enumerate(_TRIED.iter_unpack(data[_TRYING.size :]))
    return {
        number: Tried(tries, differed, fate in (_KILLED, _DIED) or number == trying)
        for number, (tries, differed, fate) in tried
        if tries
    }
