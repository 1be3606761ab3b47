"""Options of `framestorm triage`."""

from pathlib import Path

import click

from framestorm_cli.base.options import exit_with


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for a report of each bucket.")
def triage(folder: Path, out: Path | None) -> None:
    """Sort what a folder holds into buckets: framestorm runs, hs_err files, sanitizer logs.

    Exit code 0: the files have no finding, 1: findings, 2: there is no file that can be read.

    \b
    Example: scripts/framestorm triage ~/crashes --out out/triage
    """
    from framestorm_cli.triage.run import triage_command

    exit_with(triage_command(folder, out))


COMMANDS = (triage,)
