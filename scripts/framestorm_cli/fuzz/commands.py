"""Options of `framestorm fuzz`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    exit_with,
    jdk_option,
    jvm_arg_option,
    profiler_option,
    run_folder_option,
    walker_option,
    walker_plugin_option,
)


@click.command()
@click.option("--target", "targets", multiple=True, help="Fuzz target; repeatable.  [default: all]")
@click.option(
    "--engine",
    type=click.Choice(["libfuzzer", "afl"]),
    default="libfuzzer",
    show_default=True,
    help="What mutates: libFuzzer, or AFL++ (installed when it is missing).",
)
@walker_option("Walkers under test; repeatable.  [default: all that the JDK has]")
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option("--mode", "modes", multiple=True, help="same-thread or separate-thread; repeatable.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), help="Time for all targets together.  [default: 60]"
)
@click.option("--runs", type=click.IntRange(min=1), help="Walks for all targets together.")
@click.option("--seed", type=int, help="Start of the random numbers.  [default: from the clock]")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at once.  [default: cores]")
@jdk_option
@jvm_arg_option
@click.option(
    "--corpus",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder with inputs, such as corpus/ of a run's folder; repeatable.",
)
@run_folder_option
@walker_plugin_option
@profiler_option
@click.option(
    "--survey/--strict",
    default=True,
    help="Contain findings, count them and go on, or end at the first one.  [default: survey]",
)
@click.option(
    "--verify",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Fresh JVMs in which each bucket is replayed; fewer when that takes long. 0: none.",
)
def fuzz(**options: Any) -> None:
    """Fuzz the walkers of a JDK. Sets up everything that is missing first.

    Exit code 0: nothing found, 1: findings, 2: set-up or usage error, or a run that is not to be believed.

    \b
    Example: scripts/framestorm fuzz --seconds 60 --target fuzz_ucontext --scenario c2-inlined
    """
    from framestorm_cli.fuzz.run import fuzz_command

    exit_with(fuzz_command(**options))


COMMANDS = (fuzz,)
