"""What framestorm adds to a JDK source tree: new files, and insertions at anchors.

Both come from harness/hotspot. They are applied to a copy in the cache folder, never to the user's
own tree, and as often as wanted: a file is written only when its content changes, so that make
recompiles only what an addition touches.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import write_if_different

FOLDER = paths.CHECKOUT / "harness" / "hotspot"
_INSTALLED = "installed.json"
_WHERE = ("before", "after", "replace")


@dataclass(frozen=True)
class Edit:
    """Text that goes before or after the one place where `anchor` matches, or instead of what it matches."""

    file: str
    anchor: str
    where: str
    insert: str

    def apply(self, text: str) -> str:
        """Raises FramestormError when the anchor does not match exactly once."""
        matches = list(re.finditer(self.anchor, text, re.MULTILINE))
        if len(matches) != 1:
            raise FramestormError(
                f"{self.file} of the JDK source: the anchor {self.anchor!r} matches "
                f"{len(matches)} times, not once. framestorm does not know this version of the file: "
                f"see harness/hotspot/edits.toml"
            )
        start, end = matches[0].span()
        if self.where == "before":
            end = start
        elif self.where == "after":
            start = end
        return text[:start] + self.insert + text[end:]


@dataclass(frozen=True)
class Additions:
    """`files` by path in the source tree; `edits` in the order in which they are applied; `jdk` are the
    feature releases whose source they are for, any when empty."""

    files: dict[str, bytes]
    edits: tuple[Edit, ...]
    jdk: tuple[int, ...] = ()

    def fit(self, feature: int) -> bool:
        """Whether they are for the source of this release."""
        return not self.jdk or feature in self.jdk

    def digest(self) -> str:
        """Changes when any of it does."""
        whole = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
        for edit in self.edits:
            whole.update(repr(edit).encode())
        return whole.hexdigest()

    def edited(self) -> set[str]:
        return {edit.file for edit in self.edits}

    def with_edits(self, edits: Iterable[Edit], files: dict[str, bytes]) -> "Additions":
        """With more files, and edits that come after these; files that are added can be edited, too. Raises
        FramestormError."""
        every = {**self.files, **files}
        more = list(self.edits)
        for edit in edits:
            if edit.file in every:
                every[edit.file] = edit.apply(every[edit.file].decode()).encode()
            else:
                more.append(edit)
        return Additions(every, tuple(more), self.jdk)


NONE = Additions({}, ())


def load(folder: Path = FOLDER) -> Additions:
    """Reads additions/ and edits.toml of harness/hotspot. Raises FramestormError."""
    root = folder / "additions"
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    listed = folder / "edits.toml"
    try:
        table = tomllib.loads(listed.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FramestormError(f"{listed}: {error}") from error
    jdk = table.get("jdk", [])
    if not isinstance(jdk, list) or not all(isinstance(feature, int) for feature in jdk):
        raise FramestormError(f"{listed}: `jdk` is a list of feature releases; this one is {jdk!r}")
    edits = tuple(read_edit(listed, entry) for entry in table.get("edit", []))
    return Additions(files, edits, tuple(jdk))


def read_edit(listed: Path, entry: dict[str, Any]) -> Edit:
    """An entry of the file `listed`. Raises FramestormError."""
    if set(entry) != {"file", "anchor", "where", "insert"} or entry["where"] not in _WHERE:
        raise FramestormError(
            f"{listed}: an edit has file, anchor, insert, and where = {', '.join(_WHERE)}; this one "
            f"is {entry}"
        )
    try:
        re.compile(entry["anchor"])
    except re.error as error:
        raise FramestormError(f"{listed}: anchor {entry['anchor']!r}: {error}") from error
    return Edit(entry["file"], entry["anchor"], entry["where"], entry["insert"])


class PatchedTree:
    """A copy of a JDK source tree with additions.

    `source` is the copy; `originals` keeps the untouched text of every edited file and the list of
    the new files, so that a later set of additions starts from the source as it was.
    """

    def __init__(self, source: Path, originals: Path) -> None:
        self.source = source
        self.originals = originals

    def apply(self, additions: Additions) -> list[str]:
        """Brings the tree to this set of additions; returns the files whose content changed.

        Everything is worked out before the first byte is written: a failing anchor changes nothing.
        """
        installed = self.own()
        wanted: dict[str, bytes] = {}
        for name, content in additions.files.items():
            if name not in installed and (self.source / name).exists():
                raise FramestormError(
                    f"{name} is in the JDK source already, and in harness/hotspot/additions too"
                )
            wanted[name] = content
        for name in self._kept() - additions.edited():
            wanted[name] = (self.originals / name).read_bytes()
        for name in sorted(additions.edited()):
            wanted[name] = self.edited(name, additions).encode()
        for name in additions.edited():
            write_if_different(self.originals / name, self._original(name).encode())
        # Remembered first: whatever is interrupted, no new file is ever taken for the source's own.
        self._remember(installed | set(additions.files))
        changed = [
            name
            for name, content in sorted(wanted.items())
            if write_if_different(self.source / name, content)
        ]
        gone = installed - set(additions.files)
        for name in sorted(gone):
            (self.source / name).unlink(missing_ok=True)
        self._remember(set(additions.files))
        for name in self._kept() - additions.edited():
            (self.originals / name).unlink()
        return changed + sorted(gone)

    def edited(self, name: str, additions: Additions) -> str:
        """The source's file with these edits, whatever stands in the tree now. Raises FramestormError."""
        text = self._original(name)
        for edit in additions.edits:
            if edit.file == name:
                text = edit.apply(text)
        return text

    def original_path(self, name: str) -> Path:
        """Where a new version of a source file goes: aside when the file in the tree is edited."""
        kept = self.originals / name
        return kept if kept.exists() else self.source / name

    def _original(self, name: str) -> str:
        path = self.original_path(name)
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise FramestormError(
                f"the JDK source has no {name} ({error.strerror}), which framestorm adds to: is it a "
                "complete OpenJDK tree?"
            ) from error

    def _kept(self) -> set[str]:
        return {
            str(path.relative_to(self.originals))
            for path in self.originals.rglob("*")
            if path.is_file() and path != self.originals / _INSTALLED
        }

    def own(self) -> set[str]:
        """The files that are framestorm's, not the source's."""
        try:
            names: list[str] = json.loads((self.originals / _INSTALLED).read_text("utf-8"))
        except FileNotFoundError:
            return set()
        return set(names)

    def _remember(self, names: Iterable[str]) -> None:
        write_if_different(self.originals / _INSTALLED, json.dumps(sorted(names)).encode())
