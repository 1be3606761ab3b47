"""Options of `framestorm bench` and `idle-cost`."""

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


@click.command("idle-cost")
@click.option("--variant", default="plain", show_default=True, help="Of the instrumented JDK.")
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True,
              help="JVMs of each kind, in turn.")  # fmt: skip
@click.option("--scale", type=click.IntRange(min=1), default=100, show_default=True,
              help="How much is done in a batch.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for idle-cost.json.")
@jvm_arg_option
def idle_cost(**options: Any) -> None:
    """Measure what the additions to HotSpot cost while nobody profiles.

    Threads, class loading and unloading, safepoints and handshakes in the instrumented JDK, and in one whose
    libjvm is of the same source and flags, without the additions.

    \b
    Example: scripts/framestorm idle-cost --rounds 20
    """
    from framestorm_cli.bench.idle_cost import idle_cost_command

    exit_with(idle_cost_command(**options))


COMMANDS = (bench, idle_cost)
