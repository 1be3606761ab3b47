"""Options of `framestorm scenarios` and `walkers`."""

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


@click.command()
@jdk_option
@jvm_arg_option
@walker_plugin_option
@profiler_option
def scenarios(**options: Any) -> None:
    """Start every scenario, walk it unmutated with every walker, and list them.

    Exit code 1: a scenario that this JVM can reach gives too few traces, or an added walker or a plugin is
    wrong. Wrong walks of AsyncGetCallTrace, JFR and profilers are shown, and do not count.

    \b
    Example: scripts/framestorm scenarios --jdk /usr/lib/jvm/java-17-openjdk-amd64
    """
    from framestorm_cli.scenarios.listing import scenarios_command

    exit_with(scenarios_command(**options))


@click.command()
@jdk_option
def walkers(jdk: Path | None) -> None:
    """List the walkers and whether this JDK has them.

    \b
    Example: scripts/framestorm walkers
    """
    from framestorm_cli.scenarios.listing import walkers_command

    exit_with(walkers_command(jdk))


COMMANDS = (
    scenarios,
    walkers,
)
