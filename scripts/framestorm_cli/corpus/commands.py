"""Options of `framestorm corpus`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import (
    artifact_argument,
    corpus_arguments,
    exit_with,
    halts_option,
    instrumented_option,
    jdk_option,
    jvm_arg_option,
    profiler_option,
)


@click.group()
def corpus() -> None:
    """Look after corpora: seeds, inputs that engines found, crashes that are tests.

    \b
    Example: scripts/framestorm corpus add out/20260102-030405-fuzz/artifacts/b01.bin --id sender-null-fp
    """


@corpus.command("minimize")
@corpus_arguments
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the inputs that are kept. Files are named by their content.")  # fmt: skip
@halts_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for what is measured.")
@instrumented_option
@jvm_arg_option
def corpus_minimize(**options: Any) -> None:
    """Keep the smallest inputs that together reach what all inputs reach.

    \b
    Example: scripts/framestorm corpus minimize out/20260102-030405-fuzz/corpus/fuzz_stack --into /tmp/small
    """
    from framestorm_cli.corpus.minimizing import minimize_command

    exit_with(minimize_command(**options))


@corpus.command("check")
@corpus_arguments
@halts_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for what is measured.")
@instrumented_option
@jvm_arg_option
def corpus_check(**options: Any) -> None:
    """Check that every input is legal, reaches a walk and adds coverage in its scenario.

    Exit code 1: some do not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm corpus check corpus/seeds/fuzz_ucontext
    """
    from framestorm_cli.corpus.minimizing import check_command

    exit_with(check_command(**options))


@corpus.command("add")
@artifact_argument
@click.option("--id", "name", required=True, help="Name of the folder in corpus/crashes.")
@click.option(
    "--jdk",
    "jdk_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="JDK to record; repeatable.  [default: the newest installed one of each release]",
)
@click.option("--tries", type=click.IntRange(min=1), default=5, show_default=True,
              help="Fresh JVMs on each JDK.")  # fmt: skip
@profiler_option
def corpus_add(**options: Any) -> None:
    """Replay an artifact on the installed JDKs and record what it does in corpus/crashes/ID.

    \b
    Example: scripts/framestorm corpus add out/20260102-030405-fuzz/artifacts/b01.bin --id sender-null-fp
    """
    from framestorm_cli.corpus.crashes import add_command

    exit_with(add_command(**options))


@corpus.command()
@click.argument("artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the verdict to this file, too, as JSON.")  # fmt: skip
@click.option("--limit", type=click.FloatRange(min=1), default=120, show_default=True,
              help="Seconds after which a JVM is killed and counts as hung.")  # fmt: skip
@jdk_option
@jvm_arg_option
@profiler_option
def judge(**options: Any) -> None:
    """Replay an artifact and say whether it does on this JDK what is expected of it.

    What is expected is in ARTIFACT.json or in expected.json beside it. An open crash has to come back. A
    fixed one must not come back. When nothing is written down, nothing at all may be found.

    Exit code 0: as expected, 1: not, 2: set-up or usage error, 5: there are expectations, but none for
    this JDK.

    \b
    Example: scripts/framestorm corpus judge corpus/crashes/safe-for-sender-accepts-misaligned-fp/input.bin
    """
    from framestorm_cli.corpus.judge_command import judge_command

    exit_with(judge_command(**options))


@corpus.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the merged corpus.")  # fmt: skip
@click.option("--prune/--no-prune", default=True, show_default=True,
              help="Leave out an input when smaller ones reach all that it reaches.")  # fmt: skip
@click.option("--halts", type=click.IntRange(min=1), default=6, show_default=True,
              help="Points at which each scenario is halted.")  # fmt: skip
@click.option("--jdk", type=click.Path(path_type=Path),
              help="The instrumented JDK whose coverage decides what is pruned.  "
              "[default: instrumented]")  # fmt: skip
@jvm_arg_option
def merge(**options: Any) -> None:
    """Put the corpora of several machines together. Files are named by their content.

    A FOLDER is a corpus (out/<run>/corpus), a whole run, or a folder of crashes. Crash artifacts are never
    pruned. They are in crashes/ of the result. `fuzz --corpus` and `gate --corpus` start from the result.

    \b
    Example: scripts/framestorm corpus merge host1/corpus host2/corpus --into merged
    """
    from framestorm_cli.corpus.merging import merge_command

    exit_with(merge_command(**options))


@corpus.command("import")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True,
                type=click.Path(exists=True, file_okay=False, path_type=Path))  # fmt: skip
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the corpus.")  # fmt: skip
@click.option("--most", type=click.IntRange(min=1), default=500, show_default=True,
              help="Most inputs that are taken from runs of `step`.")  # fmt: skip
def import_(**options: Any) -> None:
    """Make a corpus from runs of `stress` and `step`.

    From a run of stress come its unmutated samples, as inputs, and its findings, as artifacts. From a run of
    step comes one input for each instruction at which a walker was wrong, short, refused or failed.

    \b
    Example: scripts/framestorm corpus import out/20260102-030405-stress --into from-stress
    Example: scripts/framestorm corpus import out/20260102-030405-step --into from-step
    """
    from framestorm_cli.corpus.merging import import_command

    exit_with(import_command(**options))


@corpus.command()
@click.argument("into", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("summaries", metavar="RUN...", nargs=-1, required=True,
                type=click.Path(exists=True, path_type=Path))  # fmt: skip
def known(**options: Any) -> None:
    """Add what runs found to a list of known buckets. `gate --baseline` and `stress --known` read such lists.

    RUN is the folder of a fuzz, stress or gate run, or its summary.json.

    \b
    Example: scripts/framestorm corpus known corpus/known/25-sanitized.json out/20260102-030405-fuzz
    """
    from framestorm_cli.corpus.known import learn_command

    exit_with(learn_command(**options))


COMMANDS = (corpus,)
