"""Options of `framestorm decode` and `encode`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.errors import FramestormError

_FORCE_HINT = " (--force decodes it anyway)"


@click.command()
@click.argument("artifact", type=click.Path(dir_okay=False, path_type=Path), default="-")
@click.option("--force", is_flag=True, help="Decode what framestorm did not write, too.")
def decode(artifact: Path, force: bool) -> None:
    """Print an artifact, or what standard input holds, in its text form.

    \b
    Example: scripts/framestorm decode out/20260102-030405-fuzz/artifacts/b01.bin
    """
    from framestorm_cli.artifacts import codec
    from framestorm_cli.native import toolchain

    program = toolchain.native_program()
    try:
        click.echo(codec.decode(program, artifact, force=force), nl=False)
    except FramestormError as error:
        raise FramestormError(f"{error.message}{'' if force else _FORCE_HINT}") from error


@click.command()
@click.argument("text", type=click.File("rb"), default="-")
@click.argument("artifact", type=click.File("wb", lazy=True), default="-")
def encode(text: Any, artifact: Any) -> None:
    """Turn a text form into an artifact. `-`, or nothing, is standard input and output.

    \b
    Example: scripts/framestorm encode edited.txt edited.bin
    """
    from framestorm_cli.native import processes, toolchain

    program = toolchain.native_program()
    data = processes.filter_text(program, "encode", text.read())
    artifact.write(data)  # only now: opening it empties the file


COMMANDS = (
    decode,
    encode,
)
