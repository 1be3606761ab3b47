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
    help="Another .so than the recorded one. Without OPTIONS it is given the recorded ones.",
)  # fmt: skip


@click.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--halts", type=click.IntRange(min=1), default=64, show_default=True,
              help="Halt points a try goes through at most.")  # fmt: skip
@click.option(
    "--signature",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with the signature to look for. Default: the one recorded beside the artifact.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Keep what the tries write here.")
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def replay(**options: Any) -> None:
    """Replay an artifact in fresh JVMs, or show a sample that `stress` kept (*.sample).

    Exit code 0: the recorded signature came back, 1: it did not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm replay out/20260102-030405/artifacts/b01.bin --tries 10
    """
    from framestorm_cli.replay.run import replay_command

    exit_with(replay_command(**options))


@click.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=3, show_default=True,
              help="Fresh JVMs the result is checked in.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Result.  [default: ARTIFACT.min.bin]")
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def minimize(**options: Any) -> None:
    """Shrink an artifact while its recorded signature holds.

    \b
    Example: scripts/framestorm minimize out/20260102-030405/artifacts/b01.bin
    """
    from framestorm_cli.replay.run import minimize_command

    exit_with(minimize_command(**options))


COMMANDS = (
    replay,
    minimize,
)
