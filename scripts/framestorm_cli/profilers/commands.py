"""Options of `framestorm profilers`."""

import click

from framestorm_cli.base.options import exit_with


@click.command()
@click.option("--fetch", is_flag=True, help="Fetch those that are missing.")
def profilers(fetch: bool) -> None:
    """List the profilers that --profiler knows by name, and where they are.

    \b
    Example: scripts/framestorm profilers
    """
    from framestorm_cli.profilers.run import profilers_command

    exit_with(profilers_command(fetch))


COMMANDS = (profilers,)
