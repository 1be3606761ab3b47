"""The folder that a command writes its results to."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError

NEEDED_FREE = 200 << 20  # bytes below the out folder, checked before


def check_new(into: Path) -> None:
    """Raises FramestormError when something is there that is not an empty folder."""
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise FramestormError(f"{into} is not empty: name a new folder, nothing is overwritten")


def new_folder(out: Path | None, name: str) -> Path:
    """The folder a command writes to: `out`, which must be new or empty, or out/<time>-<name>."""
    if out is not None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FramestormError(f"{out} exists and is not an empty folder: give another --out")
        return out.resolve()
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    base = paths.CHECKOUT / "out"
    folder = base / f"{stamp}-{name}"
    number = 1
    while folder.exists():
        number += 1
        folder = base / f"{stamp}-{name}-{number}"
    return folder


def check_cache(folder: Path, needed: int, what: str) -> None:
    """Raises FramestormError when the disk of a folder in the cache has too little room for `what`."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FramestormError(
            f"the cache folder {folder} has {free >> 20} MiB of free disk, {what} needs {needed >> 20} MiB: "
            "make room there, or name another folder with FRAMESTORM_CACHE"
        )


def prepare(out: Path | None, name: str) -> Path:
    """new_folder(), created, with room in it. Raises FramestormError."""
    folder = new_folder(out, name)
    check_room(folder)
    return folder


def check_room(folder: Path, needed: int = NEEDED_FREE) -> None:
    """Raises FramestormError when `folder` cannot be written or its disk has too little room."""
    probe = folder / ".framestorm-probe"
    created = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(b"\0" * 4096)
        finally:
            probe.unlink(missing_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise FramestormError(
            f"cannot write to {folder}: {error.strerror}. Make room or permission there, or give "
            "another folder with --out"
        ) from error
    if free < needed:
        if created:
            folder.rmdir()
        raise FramestormError(
            f"{folder} has {free >> 20} MiB of free disk, {needed >> 20} MiB are needed: make room or "
            "give another folder with --out"
        )
