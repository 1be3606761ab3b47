"""Options of `framestorm coverage`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    corpus_arguments,
    exit_with,
    halts_option,
    instrumented_option,
    jvm_arg_option,
)


@click.command()
@corpus_arguments
@halts_option
@click.option("--check", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="File with the share of its edges that each walker function has to keep "
              "(corpus/coverage-floor.json).")  # fmt: skip
@click.option("--write-floor", type=click.Path(dir_okay=False, path_type=Path),
              help="Write such a file from this measurement, less a margin.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report.")
@instrumented_option
@jvm_arg_option
def coverage(**options: Any) -> None:
    """Show which functions and lines of the walkers a corpus reaches, per scenario.

    The default corpus is the seeds. Writes HTML and JSON, with the functions that nothing reaches.

    Exit code 1: a function fell below the floor, 2: set-up or usage error.

    \b
    Example: scripts/framestorm coverage corpus/seeds/fuzz_ucontext --check corpus/coverage-floor.json
    """
    from framestorm_cli.coverage.run import coverage_command

    exit_with(coverage_command(**options))


COMMANDS = (coverage,)
