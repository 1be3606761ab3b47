"""Between an artifact's binary form and its text form."""

import sys
from pathlib import Path

import msgspec

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings.finding import Input
from framestorm_cli.native import processes


class Described(msgspec.Struct):
    """What a native program says of an input: its text form, its fields, and how far the state that it
    makes is from one that a thread can have (real, torn, corrupt)."""

    text: str
    input: Input
    state: str = ""


def decode(program: Path, artifact: Path, *, force: bool = False) -> str:
    """The text form of an artifact, `-` for standard input. Raises FramestormError with what is wrong
    with the file."""
    return _decode(program, artifact, ("--force",) if force else ()).decode()


def describe(program: Path, artifact: Path) -> Described:
    """All that is known of an artifact, whatever wrote it. Raises FramestormError."""
    data = _decode(program, artifact, ("--force", "--json"))
    try:
        return msgspec.json.decode(data, type=Described)
    except msgspec.MsgspecError as error:
        raise FramestormError(f"{artifact}: {error}") from error


def _decode(program: Path, artifact: Path, options: tuple[str, ...]) -> bytes:
    try:
        data = sys.stdin.buffer.read() if str(artifact) == "-" else artifact.read_bytes()
    except OSError as error:
        raise FramestormError(f"cannot read artifact {artifact}: {error.strerror}") from error
    try:
        return processes.filter_text(program, "decode", data, *options)
    except FramestormError as error:
        # The native side names its own option, which not every command here has.
        raise FramestormError(f"{artifact}: {error.message.partition(' (--force')[0]}") from error
