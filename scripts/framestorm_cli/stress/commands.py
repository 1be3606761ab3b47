"""Options of `framestorm stress`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with, jdk_option, jvm_arg_option, walker_plugin_option


@click.command()
@click.option("--workload", "workloads", multiple=True, metavar="NAME",
              help="Built-in workload or a glob of them, renaissance:NAME|GLOB|all, 'jar:PATH ARG..', "
              "or 'class:' and the rest of a java command line; repeatable.  "
              "[default: all built-in]")  # fmt: skip
@click.option("--walker", "walkers", multiple=True, metavar="NAME[+NAME]",
              help="Walker; several joined by + take turns in one cell; repeatable.  "
              "[default: all the JDK has, in turn]")  # fmt: skip
@click.option("--profiler", "profilers", multiple=True, metavar="NAME,..|NAME=OPTIONS|FILE=OPTIONS",
              help="Profilers as shipped, and walkers, side by side, each in cells of its own, with the "
              "program by itself beside them; %i in options is the interval, %o the folder to record into; "
              "repeatable.")  # fmt: skip
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
              help="Go on with a run that was ended: its folder. Finished cells stay.")  # fmt: skip
@click.option("--parallel", type=click.IntRange(min=1), help="Cells at once.  [default: 1]")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The run's folder.  [default: out/<run>]"
)
@click.option("--seed", type=click.IntRange(min=0),
              help="Start of the random numbers.  [default: from the clock]")  # fmt: skip
@click.option("--truth/--no-truth", default=None,
              help="Hold each sample against what its thread says of itself: instrumented methods keep "
              "shadow stacks.  [default: with built-in workloads alone]")  # fmt: skip
@click.option("--truth-classes", default="", metavar="GLOB:..",
              help="Classes that do so, as my.app.**; one with a - ahead does not.  "
              "[default: all but the JDK's]")  # fmt: skip
@click.option("--truth-share", type=click.FloatRange(min=0, max=1, min_open=True), metavar="SHARE",
              help="How many of their methods do so, as 0.1: a program stays more as it is.  "
              "[default: 1]")  # fmt: skip
@jvm_arg_option
@walker_plugin_option
@click.option("--renaissance", type=click.Path(path_type=Path),
              help="Renaissance's jar.  [default: FRAMESTORM_RENAISSANCE, else downloaded]")  # fmt: skip
@click.option("--known", "known_file", type=click.Path(path_type=Path), metavar="FILE",
              help="List of known buckets: the run fails on others only.")  # fmt: skip
@click.option("--write-known", type=click.Path(path_type=Path), metavar="FILE",
              help="Add this run's buckets to such a list, and take them for known.")  # fmt: skip
def stress(**options: Any) -> None:
    """Sample real programs at high rates with the walkers of a JDK, and triage what breaks.

    Exit code 0: nothing (new) found, 1: findings, 2: set-up or usage error, or a run that is not to be
    believed, because a cell could not be judged or a rate is below what is promised.

    \b
    Example: scripts/framestorm stress
    Example: scripts/framestorm stress --workload 'thread-*' --walker asgct --interval 10us --duration 1m
    Example: scripts/framestorm stress --workload 'jar:app.jar --port 0' --mode same-thread
    """
    from framestorm_cli.stress.run import stress_command

    exit_with(stress_command(**options))


COMMANDS = (stress,)
