"""Where instrumented JDKs are kept, and which there are.

<cache>/jdk/downloads   source tarballs
<cache>/jdk/ccache      compiled objects
<cache>/jdk/trees       per source and what configure is told: a copy of the source with additions, and
                        the build folder
<cache>/jdk/bases       the files that finished JDKs share
<cache>/jdk/homes       finished JDKs; the name ends in the key of everything that shaped it
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from framestorm_cli.base import files, paths, steps

RECORD = "framestorm.json"


@dataclass(frozen=True)
class Record:
    """What is written beside a finished JDK."""

    variant: str
    version: str
    source: str  # as --source takes it
    boot_jdk: str
    collectors: tuple[str, ...]
    key: str
    tree: str  # name of its folder below trees/
    base: str  # name of its folder below bases/
    built: float  # seconds since 1970
    seconds: float  # the build took

    @property
    def feature(self) -> int:
        return int(self.version.partition(".")[0].partition("+")[0])


def folder() -> Path:
    """<cache>/jdk; not created."""
    return paths.cache() / "jdk"


def homes() -> Path:
    return folder() / "homes"


def home_of(variant: str, version: str, key: str) -> Path:
    return homes() / f"{variant}-{version}-{key[:12]}"


def read(home: Path) -> Record | None:
    """The record of a finished JDK; None when the folder is none."""
    try:
        return msgspec.json.decode((home / RECORD).read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def write(home: Path, record: Record) -> None:
    files.write_json(home / RECORD, record)


def finished(variant: str | None = None) -> list[tuple[Path, Record]]:
    """Finished JDKs, of one variant or all, the one asked for last first."""
    if not homes().is_dir():
        return []
    found = [
        (home, record)
        for home in homes().iterdir()
        if not home.name.startswith(".") and (record := read(home)) is not None
    ]
    chosen = [entry for entry in found if variant is None or entry[1].variant == variant]
    return sorted(chosen, key=lambda entry: (entry[0] / RECORD).stat().st_mtime_ns, reverse=True)


def used(home: Path) -> None:
    """Makes this JDK the latest of its variant."""
    os.utime(home / RECORD)


def remove_older(variant: str, tree: str, keep: int = 3) -> None:
    """Removes all but the last few JDKs of a variant from one source: each change makes a new one.

    One that a process runs on, or has been started with, stays.
    """
    same = [entry for entry in finished(variant) if entry[1].tree == tree]
    old = [entry for entry in same[keep:] if not _runs(entry[0])]
    for home, _ in old:
        shutil.rmtree(home, ignore_errors=True)
    needed = {record.base for _, record in finished()}
    for _, record in old:
        if record.base not in needed:
            shutil.rmtree(folder() / "bases" / record.base, ignore_errors=True)


def _runs(home: Path) -> bool:
    """Whether a process has a file of the folder mapped, or its path among its arguments."""
    wanted = str(home).encode()
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "maps"):
            try:
                if wanted in (process / name).read_bytes():
                    return True
            except OSError:  # it has ended, or is somebody else's
                continue
    return False


def size_of(path: Path) -> int:
    """Bytes that the folder takes on the disk; a file that other folders share counts in part."""
    total = 0
    for entry in path.rglob("*"):
        status = entry.lstat()
        total += status.st_blocks * 512 // max(1, status.st_nlink)
    return total


def remove(targets: Iterable[Path]) -> int:
    """Removes folders; returns how many bytes that freed. Of a link only the link goes."""
    freed = 0
    for target in targets:
        if target.is_symlink():
            steps.say(f"removing {target}")
            target.unlink()
        elif target.exists():
            steps.say(f"removing {target}")
            freed += size_of(target)
            shutil.rmtree(target)
    return freed
