"""Options of `framestorm stress`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    exit_with,
    jdk_option,
    jvm_arg_option,
    run_folder_option,
    walker_plugin_option,
)


@click.command()
@click.option("--workload", "workloads", multiple=True, metavar="NAME",
              help="Built-in workload or a glob of them, renaissance:NAME|GLOB|all, 'jar:PATH ARG..', "
              "or 'class:' and the rest of a java command line; repeatable.  "
              "[default: all built-in]")  # fmt: skip
@click.option("--walker", "walkers", multiple=True, metavar="NAME[+NAME]",
              help="Walker; repeatable. Walkers joined by + take turns in one cell.  "
              "[default: all that the JDK has, taking turns]")  # fmt: skip
@click.option("--profiler", "profilers", multiple=True, metavar="NAME,..|NAME=OPTIONS|FILE=OPTIONS",
              help="Compare profilers as shipped, and walkers; repeatable. Each samples in cells of its own, "
              "and the program also runs by itself. In options %i is the interval, and %o the folder to "
              "record into.")  # fmt: skip
@click.option("--mode", "modes", multiple=True,
              help="same-thread, separate-thread, queued or unstopped; repeatable.  "
              "[default: the first two]")  # fmt: skip
@click.option("--interval", "intervals", multiple=True, metavar="TIME",
              help="Time between two samples of a thread: 100us, 10us, 1us; repeatable.  "
              "[default: 100us]")  # fmt: skip
@click.option("--duration", default="", metavar="TIME",
              help="Time for all cells together: 90s, 10m, 2h.  [default: 2m]")  # fmt: skip
@click.option("--iterations", type=click.IntRange(min=1),
              help="Iterations of the workload in each cell, instead of a time.")  # fmt: skip
@jdk_option
@click.option("--gc", "gcs", multiple=True, metavar="NAME",
              help="default, serial, parallel, g1, z or shenandoah; repeatable.")  # fmt: skip
@click.option("--jit", "jits", multiple=True, metavar="NAME",
              help="default, int, c1, c2 or comp; repeatable.")  # fmt: skip
@click.option("--threads", default="", metavar="WHICH",
              help="all (idle ones, too), running or random:N.  [default: running]")  # fmt: skip
@click.option("--matrix", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="TOML file with the axes (docs/guide/stress.md).")  # fmt: skip
@click.option("--resume", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT",
              help="Go on with the run in this folder, which was ended. Finished cells stay.")  # fmt: skip
@click.option("--parallel", type=click.IntRange(min=1), help="Cells at once.  [default: 1]")
@run_folder_option
@click.option("--seed", type=click.IntRange(min=0),
              help="Start of the random numbers.  [default: from the clock]")  # fmt: skip
@click.option("--truth/--no-truth", default=None,
              help="Compare each sample with the shadow stack that instrumented methods keep.  "
              "[default: only for built-in workloads, without --profiler]")  # fmt: skip
@click.option("--truth-classes", default="", metavar="GLOB:..",
              help="Classes that are instrumented, such as my.app.**:-my.app.Hot; - excludes.  "
              "[default: all but the JDK's]")  # fmt: skip
@click.option("--truth-share", type=click.FloatRange(min=0, max=1, min_open=True), metavar="SHARE",
              help="Share of their methods that is instrumented, such as 0.1. A smaller share changes the "
              "program less.  [default: 1]")  # fmt: skip
@jvm_arg_option
@walker_plugin_option
@click.option("--renaissance", type=click.Path(path_type=Path),
              help="Renaissance's jar.  [default: FRAMESTORM_RENAISSANCE, else downloaded]")  # fmt: skip
@click.option("--known", "known_file", type=click.Path(path_type=Path), metavar="FILE",
              help="List of known buckets. Only other buckets fail the run.")  # fmt: skip
@click.option("--write-known", type=click.Path(path_type=Path), metavar="FILE",
              help="Add this run's buckets to such a list. They count as known.")  # fmt: skip
def stress(**options: Any) -> None:
    """Sample real programs at high rates with the walkers of a JDK, and sort what is found into buckets.

    Exit code 0: nothing found (with --known: nothing new), 1: findings, 2: set-up or usage error, or a run
    that is not to be believed (docs/guide/stress.md says when).

    \b
    Example: scripts/framestorm stress
    Example: scripts/framestorm stress --workload 'thread-*' --walker asgct --interval 10us --duration 1m
    Example: scripts/framestorm stress --workload 'jar:app.jar --port 0' --mode same-thread
    """
    from framestorm_cli.stress.run import stress_command

    exit_with(stress_command(**options))


COMMANDS = (stress,)
