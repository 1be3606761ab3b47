"""`corpus judge` and `jdk identify` as commands: their options. The work is in judge_command.py."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.cli_options import jdk_option, jvm_arg_option


@click.command()
@click.argument("artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the verdict here as well: for machines.")  # fmt: skip
@click.option("--limit", type=click.FloatRange(min=1), default=120, show_default=True,
              help="Seconds a JVM may take before it is killed and counted as hung.")  # fmt: skip
@jdk_option
@jvm_arg_option
def judge(**options: Any) -> None:
    """Replay an artifact and say whether it does on this JDK what is expected of it.

    Expectations stand in ARTIFACT.json or expected.json beside it: an open crash has to come back, a fixed
    one must not. Where there are none, nothing at all may be found. Exit code 0: as expected, 1: not, 2:
    set-up or usage error, 5: there are expectations, but none for this JDK.

    \b
    Example: scripts/framestorm corpus judge corpus/crashes/safe-for-sender-accepts-misaligned-fp/input.bin
    """
    from framestorm_cli.judge_command import judge_command

    raise click.exceptions.Exit(judge_command(**options))


@click.command()
@click.argument("jdks_given", metavar="JDK...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--prepare", is_flag=True, help="Build what replaying on them needs, too.")
def identify(**options: Any) -> None:
    """Say which JDKs these are: JSON with home, version, and the label of expectations for each.

    \b
    Example: scripts/framestorm jdk identify /usr/lib/jvm/java-17-openjdk-amd64 instrumented:plain
    """
    from framestorm_cli.judge_command import identify_command

    raise click.exceptions.Exit(identify_command(**options))
