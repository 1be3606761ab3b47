"""Files that are whole or not there, whatever ends this process."""

import hashlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def read_text(path: Path) -> str:
    """What another program wrote; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_bytes(path: Path, content: bytes) -> None:
    """Replaces a file in one step, on the disk before this returns. Raises OSError."""
    # A name of its own for each thread that writes the same file.
    scratch = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """What is put into the folder that this gives is renamed to `folder` at the end, or is gone."""
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        yield scratch
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """As write_bytes()."""
    write_bytes(path, text.encode())


def write_json(path: Path, data: Any) -> None:
    """As write_bytes(); records are objects."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)


def decode(data: bytes, kind: type[T]) -> T:
    """JSON as a record with paths. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(data, type=kind, strict=False, dec_hook=_path)


def write_if_different(path: Path, content: bytes) -> bool:
    """Writes the file, and leaves it with its time when it has that content. True: written."""
    try:
        if path.read_bytes() == content:
            return False
    except OSError:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content)
    return True
