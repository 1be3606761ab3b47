"""Options of `framestorm bench`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with, jvm_arg_option, profiler_option


@click.command()
@click.option("--seconds", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for bench.json.")
@click.option(
    "--jdk",
    "jdks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="As for `fuzz`; repeatable: each is measured in turn.",
)
@jvm_arg_option
@profiler_option
def bench(**options: Any) -> None:
    """Measure the fuzz loop against bare walker calls on the same libjvm.

    \b
    Example: scripts/framestorm bench --jdk /usr/lib/jvm/java-17-openjdk-amd64
    Example: scripts/framestorm bench --jdk instrumented --jdk instrumented:coverage
    """
    from framestorm_cli.bench.run import bench_command

    exit_with(bench_command(**options))


COMMANDS = (bench,)
