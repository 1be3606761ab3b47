"""Files that are whole or not there, whatever ends this process."""

import json
import os
import threading
from pathlib import Path
from typing import Any


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


def write_text(path: Path, text: str) -> None:
    """As write_bytes()."""
    write_bytes(path, text.encode())


def write_json(path: Path, data: Any) -> None:
    """As write_bytes()."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def write_if_different(path: Path, content: bytes) -> bool:
    """Writes the file, and leaves it with its time when it has that content. True: written."""
    try:
        if path.read_bytes() == content:
            return False
    except OSError:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content)
    return True
