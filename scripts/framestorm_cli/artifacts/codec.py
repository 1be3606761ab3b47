"""Between an artifact's binary form and its text form."""

import sys
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import processes


def decode(program: Path, artifact: Path, *, force: bool = False) -> str:
    """The text form of an artifact, `-` for standard input. Raises FramestormError with what is wrong
    with the file."""
    try:
        data = sys.stdin.buffer.read() if str(artifact) == "-" else artifact.read_bytes()
    except OSError as error:
        raise FramestormError(f"cannot read artifact {artifact}: {error.strerror}") from error
    options = ("--force",) if force else ()
    try:
        return processes.filter_text(program, "decode", data, *options).decode()
    except FramestormError as error:
        # The native side names its own option, which not every command here has.
        raise FramestormError(f"{artifact}: {error.message.partition(' (--force')[0]}") from error
