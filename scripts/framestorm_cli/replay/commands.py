"""Options of `framestorm replay` and `minimize`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    artifact_argument,
    exit_with,
    jdk_option,
    jvm_arg_option,
    profiler_option,
)

walker_plugin_option = click.option(
    "--walker-plugin", metavar="FILE[=OPTIONS]",
    help="Use this .so instead of the recorded one. Without OPTIONS it gets the recorded ones.",
)  # fmt: skip


@click.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=10, show_default=True,
              help="Fresh JVMs in which it is replayed.")  # fmt: skip
@click.option("--halts", type=click.IntRange(min=1), default=64, show_default=True,
              help="Most halts of one try.")  # fmt: skip
@click.option(
    "--signature",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with the signature to look for.  [default: the one beside the artifact]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder in which to keep what the tries write."
)
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def replay(**options: Any) -> None:
    """Replay an artifact in fresh JVMs, or show a sample that `stress` or `step` kept (*.sample).

    Exit code 0: the recorded signature came back, 1: it did not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm replay out/20260102-030405-fuzz/artifacts/b01.bin --tries 10
    """
    from framestorm_cli.replay.run import replay_command

    exit_with(replay_command(**options))


@click.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=3, show_default=True,
              help="Fresh JVMs in which the result is checked.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Result.  [default: ARTIFACT.min.bin]")
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def minimize(**options: Any) -> None:
    """Shrink an artifact as far as it still shows its recorded signature.

    \b
    Example: scripts/framestorm minimize out/20260102-030405-fuzz/artifacts/b01.bin
    """
    from framestorm_cli.replay.run import minimize_command

    exit_with(minimize_command(**options))


COMMANDS = (
    replay,
    minimize,
)
