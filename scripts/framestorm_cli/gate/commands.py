"""Options of `framestorm gate`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with, profiler_option, run_folder_option, walker_option

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--jdk-source", type=_FOLDER, metavar="DIR",
              help="JDK source tree. It is built incrementally, as by `jdk build --source`.")  # fmt: skip
@click.option("--jdk", type=click.Path(path_type=Path), metavar="PATH",
              help="A JDK's home, or instrumented[:VARIANT].")  # fmt: skip
@click.option("--walker-plugin", metavar="SO[=OPTIONS]",
              help="A walker of your own, on --jdk.")  # fmt: skip
@profiler_option
@walker_option("Only these of the JDK's walkers; repeatable.")
@click.option("--base", type=click.Path(exists=True, path_type=Path), metavar="PATH",
              help="What it is compared with: a source tree, a JDK's home, or a .so.")  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0.5), default=8, show_default=True,
              help="Time for everything after the build.")  # fmt: skip
@click.option("--baseline", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="List of known buckets.  [default: corpus/known/<label of the JDK>.json]")  # fmt: skip
@click.option("--write-baseline", type=_FILE, metavar="FILE",
              help="Add all that this run found to such a list.")  # fmt: skip
@click.option("--floor", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="What the seeds have to reach.  [default: corpus/coverage-floor-VARIANT.json if there "
              "is one for the JDK's variant, else corpus/coverage-floor.json for a JDK with ASan]"
              )  # fmt: skip
@click.option("--changed", multiple=True, metavar="FILE",
              help="What the change touches, as a path in the source tree; repeatable.  [default: by "
              "--base's source tree, else by git]")  # fmt: skip
@click.option("--since", default="", metavar="REVISION",
              help="The change is what the source tree has beyond its merge base with this revision.  "
              "[default: its upstream]")  # fmt: skip
@click.option("--target", "targets", multiple=True, help="Only this fuzz target; repeatable.")
@click.option("--workload", "workloads", multiple=True, metavar="NAME",
              help="Stress this workload; repeatable.  [default: some short ones]")  # fmt: skip
@click.option("--corpus", multiple=True, type=click.Path(path_type=Path),
              help="Folder with inputs to start from, in addition to the seeds; repeatable.")  # fmt: skip
@click.option(
    "--variant",
    default="sanitized",
    show_default=True,
    help="Variant in which --jdk-source is built.",
)
@click.option(
    "--boot-jdk", type=click.Path(path_type=Path), help="For --jdk-source, as for `jdk build`."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at once.  [default: cores]")
@click.option("--seed", type=int, help="Start of the random numbers.  [default: from the clock]")
@click.option("--jvm-arg", "jvm_args", multiple=True, metavar="ARG",
              help="Argument for the JVMs; repeatable.")  # fmt: skip
@run_folder_option
def gate(**options: Any) -> None:
    """Judge a change before it is merged: replay the corpus, fuzz every target, step, and stress both modes.

    Exit code 0: nothing new, 1: something new, with the command that shows it again, 2: could not judge.

    \b
    Example: scripts/framestorm gate --jdk-source ~/jdk --base ~/jdk-master
    Example: scripts/framestorm gate --walker-plugin ./libmywalker.so --jdk /usr/lib/jvm/jdk-25
    Example: scripts/framestorm gate --profiler ./libmyprofiler.so --base ./libmyprofiler-1.2.so
    """
    from framestorm_cli.gate.run import gate_command

    exit_with(gate_command(**options))


COMMANDS = (gate,)
