"""Mutants that were read and found equivalent: harness/hotspot/planted/equivalent.toml."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect.catalogue import FOLDER
from framestorm_cli.detect.mutation import NOTHING, Mutant

FILE = FOLDER / "equivalent.toml"

Named = tuple[str, str, str, str]  # file, function, what was there, what stands there instead


class _Reason(msgspec.Struct, forbid_unknown_fields=True):
    why: str
    mutants: list[Named]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    equivalent: list[_Reason]


def read() -> list[Named]:
    """Raises FramestormError."""
    try:
        found = msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8")), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FramestormError(f"{FILE}: {error}") from error
    return [named for reason in found.equivalent for named in reason.mutants]


def name(mutant: Mutant) -> Named:
    return Path(mutant.file).name, mutant.function, mutant.was, mutant.becomes


def among(mutants: Sequence[Mutant]) -> set[int]:
    """Their numbers."""
    known = set(read())
    return {one.number for one in mutants if name(one) in known}


def strangers(mutants: Sequence[Mutant]) -> list[Named]:
    """Entries that name none of them, where all are deleted statements, or none is."""
    names = {name(one) for one in mutants}
    are_statements = any(becomes == NOTHING for *_, becomes in names)
    return [
        named for named in read() if named not in names and (named[3] == NOTHING) == are_statements
    ]
