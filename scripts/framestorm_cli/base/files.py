"""Writing files."""

from pathlib import Path


def write_if_different(path: Path, content: bytes) -> bool:
    """Writes the file, and leaves it with its time when it has that content. True: written."""
    try:
        if path.read_bytes() == content:
            return False
    except OSError:
        path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.framestorm-new")
    scratch.write_bytes(content)
    scratch.replace(path)
    return True
