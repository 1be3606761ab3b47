"""Options that several commands have, and how a command ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

jdk_option = click.option(
    "--jdk",
    type=click.Path(path_type=Path),
    help="Home of the JDK under test, a release such as 21, or instrumented[:VARIANT] for one that "
    "`jdk build` makes.  [default: JAVA_HOME, else the newest installed HotSpot]",
)
jvm_arg_option = click.option(
    "--jvm-arg", "jvm_args", multiple=True, metavar="ARG", help="Argument for the JVM; repeatable."
)
profiler_option = click.option(
    "--profiler", metavar="NAME|FILE[=OPTIONS]",
    help="Call the signal handler of this profiler: one that `framestorm profilers` lists, or an agent's "
    "library.",
)  # fmt: skip

walker_plugin_option = click.option(
    "--walker-plugin", metavar="FILE[=OPTIONS]",
    help="The .so of --walker plugin. OPTIONS go to its init function.",
)  # fmt: skip


def _listed(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> str:
    return ",".join(given)


def walker_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--walker as one text, names separated by commas, however often it was given."""
    return click.option(
        "--walker", multiple=True, callback=_listed, metavar="NAME,..", help=help_text
    )


artifact_argument = click.argument(
    "artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
corpus_arguments = click.argument("corpus", nargs=-1, type=click.Path(path_type=Path))
run_folder_option = click.option(
    "--out", type=click.Path(path_type=Path), help="The run's folder.  [default: out/<run>]"
)
halts_option = click.option("--halts", type=click.IntRange(min=1), default=2, show_default=True,
                            help="Points at which each scenario is halted.")  # fmt: skip
instrumented_option = click.option(
    "--jdk",
    type=click.Path(path_type=Path),
    help="An instrumented JDK: a path, or instrumented[:VARIANT].  [default: instrumented]",
)


def exit_with(code: int) -> NoReturn:
    """Ends the command with this exit code."""
    raise click.exceptions.Exit(code)
