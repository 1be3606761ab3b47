"""Options of `framestorm detect`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with


@click.command()
@click.argument("names", metavar="[BUG]...", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Name the planted bugs and the contestants.")
@click.option("--mutants", is_flag=True,
              help="Instead of bugs of the past: delete checks, shift bounds by one, invert comparisons."
              )  # fmt: skip
@click.option("--statements", is_flag=True, help="With --mutants: delete statements instead.")
@click.option("--contestant", "contestants", multiple=True,
              help="What looks for the bugs; repeatable. --list explains each.  "
              "[default: libfuzzer]")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=5), default=60, show_default=True,
              help="Time of a run, on one core.")  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True,
              help="Runs of each contestant on each bug.")  # fmt: skip
@click.option("--whole", is_flag=True,
              help="Do not end a run when the bug is found. The page then says what each oracle "
              "is worth.")  # fmt: skip
@click.option("--replays", type=click.IntRange(min=3), default=10, show_default=True,
              help="Fresh JVMs in which a detection is replayed.")  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Start of the random numbers.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at once.  [default: cores]")
@click.option("--out", type=click.Path(path_type=Path),
              help="Folder for the results. Runs that it has already are kept, and the others "
              "are made.")  # fmt: skip
@click.option(
    "--again", is_flag=True, help="Run nothing. Write table and page from the runs in --out."
)
def detect(**options: Any) -> None:
    """Plant bugs of the past into HotSpot, and measure whether and when each is found.

    Builds a libjvm for each bug, lets contestants look for it, and replays what they report with the bug and
    without it. Writes runs.jsonl, detect.md and detect.html; with --mutants, runs.jsonl and mutants.md. When
    it is ended early, the same command with the same --out goes on.

    Exit code 0: every bug whose canary was triggered was found (--mutants: no mutant survived), 1: not,
    2: set-up or usage error, or a run that did not look.

    \b
    Example: scripts/framestorm detect --list
    Example: scripts/framestorm detect unextended-sp-below-stack --seconds 60
    Example: scripts/framestorm detect --mutants --seconds 90 --out mutants
    Example: scripts/framestorm detect --contestant libfuzzer --contestant step --runs 10 --out detected
    """
    from framestorm_cli.detect.run import detect_command

    exit_with(detect_command(**options))


COMMANDS = (detect,)
