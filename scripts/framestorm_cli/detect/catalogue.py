"""The planted bugs: harness/hotspot/planted, as its README describes it.

catalogue.toml has every fix that the rule names; bugs/<id>.toml what is planted: edits of a JDK source.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import additions
from framestorm_cli.hotspot.additions import Additions, Edit

FOLDER = additions.FOLDER / "planted"
_CANARY_FILES = FOLDER / "canary"
_CANARY = "FRAMESTORM_CANARY"
INCLUDE = '#include "utilities/framestorm_canary.hpp"\n'


class _Bug(msgspec.Struct, forbid_unknown_fields=True):
    """As bugs/<id>.toml has it."""

    origin: tuple[str, ...]
    year: int
    title: str
    walkers: tuple[str, ...]
    shows: tuple[str, ...]
    edit: list[dict[str, Any]]
    functions: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    kind: str = msgspec.field(name="class", default="")


@dataclass(frozen=True)
class Bug:
    """`walkers`: in which it can be met. `functions`: a right report has one of them among its top frames;
    none where no code stands out, as in a wrong trace."""

    id: str
    year: int
    kind: str
    title: str
    walkers: tuple[str, ...]
    functions: tuple[str, ...]
    edits: tuple[Edit, ...]

    def planted(self, added: Additions) -> Additions:
        """`added` with this bug and its canary. Raises FramestormError where an edit does not fit."""
        with_canary = {edit.file: None for edit in self.edits if _CANARY in edit.insert}
        if not with_canary:
            raise FramestormError(
                f"planted bug {self.id} has no {_CANARY}(...): nothing tells that it acts"
            )
        includes = [Edit(file, r"\A", "before", INCLUDE) for file in with_canary]
        return added.with_edits([*self.edits, *includes], canary_files())


def canary_files() -> dict[str, bytes]:
    """By path in the source tree."""
    return {
        str(path.relative_to(_CANARY_FILES)): path.read_bytes()
        for path in sorted(_CANARY_FILES.rglob("*"))
        if path.is_file()
    }


def bugs() -> dict[str, Bug]:
    """Every planted bug by its id. Raises FramestormError."""
    return {path.stem: read(path) for path in sorted((FOLDER / "bugs").glob("*.toml"))}


def listed(folder: Path = FOLDER) -> dict[str, frozenset[str]]:
    """Every fix of the catalogue by its id: the bugs that bring it back, none where it cannot be planted.
    Raises FramestormError."""
    path = folder / "catalogue.toml"
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["entry"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise FramestormError(f"{path}: {error}") from error
    return {entry["id"]: frozenset(entry.get("planted", ())) for entry in entries}


def read(path: Path) -> Bug:
    """Raises FramestormError for what is no planted bug."""
    try:
        made = msgspec.toml.decode(path.read_bytes(), type=_Bug)
    except (OSError, msgspec.MsgspecError, tomllib.TOMLDecodeError) as error:
        raise FramestormError(f"{path}: {error}") from error
    edits = tuple(additions.read_edit(path, entry) for entry in made.edit)
    return Bug(path.stem, made.year, made.kind, made.title, made.walkers, made.functions, edits)


def chosen(names: tuple[str, ...]) -> list[Bug]:
    """The bugs of these names; all when there are none. Raises FramestormError for a name that is none."""
    every = bugs()
    if unknown := [name for name in names if name not in every]:
        raise FramestormError(
            f"there is no planted bug {', '.join(unknown)}: `scripts/framestorm detect --list` names them"
        )
    return [every[name] for name in dict.fromkeys(names or every)]
