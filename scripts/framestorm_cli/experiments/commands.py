"""Options of `framestorm compare`, `evaluate` and `truth`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    exit_with,
    instrumented_option,
    jdk_option,
    jvm_arg_option,
    walker_plugin_option,
)
from framestorm_cli.experiments import DEFAULT_INTERVALS, DEFAULT_PROGRAM, DEFAULT_WALKER


@click.command()
@click.option("--target", "targets", multiple=True,
              help="Fuzz target; repeatable.  [default: fuzz_ucontext, fuzz_stack]")  # fmt: skip
@click.option("--engine", "engines", multiple=True, type=click.Choice(["libfuzzer", "afl"]),
              help="Repeatable.  [default: both]")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=1), default=60, show_default=True,
              help="Fuzzing time of one run.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True,
              help="Runs of each kind.")  # fmt: skip
@click.option("--seed", type=int, help="Start of the random numbers.  [default: from the clock]")
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option("--mode", "modes", multiple=True, help="same-thread or separate-thread; repeatable.")
@click.option("--corpus", multiple=True, type=click.Path(path_type=Path),
              help="Folder with the inputs to start from; repeatable.  [default: the seeds]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--again", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Run nothing. Write table and picture from this compare.json.")  # fmt: skip
@instrumented_option
@jvm_arg_option
def compare(**options: Any) -> None:
    """Compare fuzzing guided by coverage with unguided fuzzing: edges and buckets over time.

    Guided and unguided runs take turns, one process at a time. An unguided run tries every mutant and keeps
    none, so the engine's inputs stay the seeds. Writes compare.json, compare.md (table) and compare.png.

    Exit code 0: guided reaches more edges with every engine and target, 1: not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm compare --target fuzz_stack --seconds 60 --repetitions 5
    """
    from framestorm_cli.experiments.compare import compare_command

    exit_with(compare_command(**options))


@click.command()
@click.option("--busy", default=DEFAULT_PROGRAM, show_default=True, metavar="NAME",
              help="Workload for one thread, named as for `stress`.")  # fmt: skip
@click.option("--parallel", default=DEFAULT_PROGRAM, show_default=True, metavar="NAME",
              help="Workload for as many threads as there are cores.")  # fmt: skip
@click.option("--interval", "intervals", multiple=True, metavar="TIME",
              help="Time between two samples; repeatable.  "
              f"[default: {', '.join(DEFAULT_INTERVALS)}]")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(min=1), default=10, show_default=True,
              help="Runs of each kind. One more run of each kind warms up.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=1), default=10, show_default=True,
              help="About how long a run without an agent takes. It decides how much work a run "
              "does.")  # fmt: skip
@click.option("--walker", default=DEFAULT_WALKER, show_default=True, help="As for `stress`.")
@walker_plugin_option
@jdk_option
@jvm_arg_option
@click.option("--renaissance", type=click.Path(path_type=Path), help="Renaissance's jar.  "
              "[default: FRAMESTORM_RENAISSANCE, else downloaded]")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0),
              help="Start of the random numbers.  [default: from the clock]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--again", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Run nothing. Write table and picture from this evaluation.json.")  # fmt: skip
@click.option(
    "--docs", is_flag=True, help="Copy the page and the picture into docs/measurements, too."
)
def evaluate(**options: Any) -> None:
    """Measure what sampling costs and yields in each mode, and without an agent.

    Wall and user time of the same work, samples, crash rate of walks, share of wrong and of broken traces.
    The modes take turns in random order. Run it on a quiet machine. Writes evaluation.json, evaluation.md and
    evaluation.png.

    \b
    Example: scripts/framestorm evaluate --docs
    Example: scripts/framestorm evaluate --busy renaissance:dotty --parallel renaissance:finagle-http
    """
    from framestorm_cli.experiments.evaluate import evaluate_command

    exit_with(evaluate_command(**options))


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN..",
                type=click.Path(exists=True, file_okay=False, path_type=Path))  # fmt: skip
def truth(**options: Any) -> None:
    """Print one table of the wrong traces in runs of `stress --truth`.

    A run may be unfinished. Then its finished cells count. `stress --resume RUN` goes on with it.

    \b
    Example: scripts/framestorm truth out/truth-17 out/truth-25
    """
    from framestorm_cli.experiments.truth_table import truth_command

    exit_with(truth_command(**options))


@click.command("truth-cost")
@jdk_option
def truth_cost(**options: Any) -> None:
    """Measure how much more a call costs when its method keeps a shadow stack (`stress --truth`).

    \b
    Example: scripts/framestorm truth-cost --jdk /usr/lib/jvm/java-17-openjdk-amd64
    """
    from framestorm_cli.experiments.truth_cost import cost_command

    exit_with(cost_command(**options))


COMMANDS = (
    compare,
    evaluate,
    truth,
    truth_cost,
)
