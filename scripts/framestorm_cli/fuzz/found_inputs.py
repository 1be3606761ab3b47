"""Inputs the engines found: collected in out/<run>/corpus/<target>/, where either engine can start from.

A file is named by the SHA-1 of its content, so an input that several processes found is kept once.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

SUFFIXES = (".bin", ".txt")  # binary and text forms, as the native programs read them


def has_inputs(folder: Path) -> bool:
    """Whether a process can start from this folder."""
    return folder.is_dir() and any(entry.suffix in SUFFIXES for entry in folder.iterdir())


def of_target(folder: Path, target: str) -> Path:
    """A corpus folder's part for a target: its subfolder of that name, else the folder itself."""
    own = folder / target
    return own if has_inputs(own) else folder


def _name(data: bytes) -> str:
    return f"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}.bin"


class Collector:
    """Copies what processes found, each file once, while they run or when they have ended."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._seen: set[Path] = set()
        self._refused: set[str] = set()

    def folder(self, target: str) -> Path:
        """Where a target's inputs are; need not exist."""
        return self._into / target

    def set_aside(self, target: str) -> Path | None:
        """Moves a target's inputs to a folder of their own, where successors do not get them; that
        folder, or None when there are none."""
        if not has_inputs(self.folder(target)):
            return None
        number = 1
        while (aside := self._into / f"{target}-set-aside-{number}").exists():
            number += 1
        return self.folder(target).rename(aside)

    def set_one_aside(self, target: str, data: bytes) -> Path | None:
        """The same with one input, for good, by its content; where it is now, or None when it was not
        among them."""
        file = self.folder(target) / _name(data)
        if not file.exists():
            return None
        self._refused.add(file.name)
        aside = self._into / f"{target}-set-aside-singly"
        aside.mkdir(exist_ok=True)
        return file.rename(aside / file.name)

    def collect(self, target: str, files: Iterable[Path]) -> None:
        """Takes over the files that were not taken before. One that is gone meanwhile is left out."""
        for file in files:
            if file in self._seen:
                continue
            self._seen.add(file)
            try:
                data = file.read_bytes()
            except OSError:
                continue
            if data and _name(data) not in self._refused:
                self.folder(target).mkdir(parents=True, exist_ok=True)
                (self.folder(target) / _name(data)).write_bytes(data)


def write_seeds(folders: Iterable[Path], into: Path, encode: Callable[[Path], bytes]) -> int:
    """Binary forms of all inputs in `folders`, for an engine that reads nothing else. How many.

    Their names begin with the bytes for scenario and mode (harness/input/binary.h): in the order of
    their names, inputs of one scenario follow each other, and the world has to be halted less often.
    """
    into.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for file in sorted(folder.iterdir()):
            if file.suffix in SUFFIXES:
                data = encode(file) if file.suffix == ".txt" else file.read_bytes()
                (into / f"{data[1:3].hex()}-{_name(data)}").write_bytes(data)
    return sum(1 for _ in into.iterdir())
