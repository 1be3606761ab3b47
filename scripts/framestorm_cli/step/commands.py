"""Options of `framestorm step`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    exit_with,
    jdk_option,
    jvm_arg_option,
    profiler_option,
    walker_plugin_option,
)
from framestorm_cli.native.jvm_modes import DEFAULT, GCS, JITS


@click.command()
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option("--workload", metavar="NAME",
              help="Instead of scenarios a whole program: a built-in workload of stress, renaissance:NAME, "
              "'jar:PATH ARG..', or 'class:' and the rest of a java command line.")  # fmt: skip
@click.option("--renaissance", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="JAR",
              help="Renaissance's jar.  [default: FRAMESTORM_RENAISSANCE, else downloaded]")  # fmt: skip
@click.option("--also", type=click.Path(exists=True, file_okay=False, path_type=Path), multiple=True,
              metavar="RUN",
              help="Folder of another run on the same JDK; repeatable. What it has stepped counts for the "
              "program's samples, too.")  # fmt: skip
@click.option("--walker", "walkers", multiple=True,
              help="Only this walker; repeatable.  [default: all that give traces]")  # fmt: skip
@click.option("--event", "events", multiple=True,
              help="Inject this event at instructions, and walk again; repeatable: signal, gc, deoptimise,"
                   " redefine, unload, sigsegv, pop-frame, exit.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=1), default=120.0, show_default=True,
              help="For all scenarios together, or for the program.")  # fmt: skip
@click.option("--gc", type=click.Choice(list(GCS)), default=DEFAULT, help="Collector.")
@click.option("--jit", type=click.Choice(list(JITS)), default=DEFAULT, help="Compilers.")
@click.option("--verify", type=click.IntRange(min=0), default=2, show_default=True,
              help="Fresh JVMs that step to each finding again.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results.")
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def step(**options: Any) -> None:
    """Run scenarios, or a program, instruction by instruction, and walk and judge at each.

    The stack is known from the calls and returns that were executed. A trace that differs from it is
    wrong. Nothing is mutated.

    Exit code 0: nothing found, 1: findings, 2: set-up or usage error, or a run that is not to be believed.

    \b
    Example: scripts/framestorm step --scenario exception-unwind --seconds 10
    Example: scripts/framestorm step --workload javac --walker asgct
    """
    from framestorm_cli.step.run import step_command

    exit_with(step_command(**options))


COMMANDS = (step,)
