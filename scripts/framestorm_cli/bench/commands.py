"""Options of `framestorm bench` and `idle-cost`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with, jvm_arg_option, profiler_option


@click.command()
@click.option("--seconds", type=click.IntRange(min=1), default=20, show_default=True,
              help="Seconds of the measurement.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for bench.json.")
@click.option(
    "--jdk",
    "jdks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="As for `fuzz`; repeatable. Each JDK is measured in turn.",
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
@click.option(
    "--variant", default="plain", show_default=True, help="Variant of the instrumented JDK."
)
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True,
              help="JVMs of each kind. The two kinds take turns.")  # fmt: skip
@click.option("--scale", type=click.IntRange(min=1), default=100, show_default=True,
              help="Amount of work in a batch.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for idle-cost.json.")
@jvm_arg_option
def idle_cost(**options: Any) -> None:
    """Measure what the additions to HotSpot cost while nobody profiles.

    Times threads, class loading and unloading, safepoints and handshakes in two JDKs: the instrumented one,
    and one whose libjvm is built from the same source with the same flags, but without the additions.

    \b
    Example: scripts/framestorm idle-cost --rounds 20
    """
    from framestorm_cli.bench.idle_cost import idle_cost_command

    exit_with(idle_cost_command(**options))


COMMANDS = (bench, idle_cost)
