"""Commands of the groups `corpus` and `jdk`: their options. The work is in merging.py, judge_command.py."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.cli_options import jdk_option, jvm_arg_option


@click.command()
@click.argument("artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the verdict here as well: for machines.")  # fmt: skip
@click.option("--limit", type=click.FloatRange(min=1), default=120, show_default=True,
              help="Seconds a JVM may take before it is killed and counted as hung.")  # fmt: skip
@jdk_option
@jvm_arg_option
def judge(**options: Any) -> None:
    """Replay an artifact and say whether it does on this JDK what is expected of it.

    Expectations stand in ARTIFACT.json or expected.json beside it: an open crash has to come back, a fixed
    one must not. Where there are none, nothing at all may be found. Exit code 0: as expected, 1: not, 2:
    set-up or usage error, 5: there are expectations, but none for this JDK.

    \b
    Example: scripts/framestorm corpus judge corpus/crashes/safe-for-sender-accepts-misaligned-fp/input.bin
    """
    from framestorm_cli.judge_command import judge_command

    raise click.exceptions.Exit(judge_command(**options))


@click.command()
@click.argument("jdks_given", metavar="JDK...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--prepare", is_flag=True, help="Build what replaying on them needs, too.")
def identify(**options: Any) -> None:
    """Say which JDKs these are: JSON with home, version, and the label of expectations for each.

    \b
    Example: scripts/framestorm jdk identify /usr/lib/jvm/java-17-openjdk-amd64 instrumented:plain
    """
    from framestorm_cli.judge_command import identify_command

    raise click.exceptions.Exit(identify_command(**options))


@click.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the merged corpus.")  # fmt: skip
@click.option("--prune/--no-prune", default=True, show_default=True,
              help="Leave out inputs that reach nothing that smaller ones do not reach.")  # fmt: skip
@click.option("--halts", type=click.IntRange(min=1), default=6, show_default=True,
              help="Points each scenario is halted at.")  # fmt: skip
@click.option("--jdk", type=click.Path(path_type=Path),
              help="An instrumented JDK to prune by.  [default: instrumented]")  # fmt: skip
@jvm_arg_option
def merge(**options: Any) -> None:
    """Put the corpora of several machines together, named by content; the order of folders is of no account.

    Takes corpora (out/<run>/corpus), whole runs, and crashes. Crash artifacts are never pruned: they are in
    crashes/ of the result. `fuzz --corpus` and `gate --corpus` start from it.

    \b
    Example: scripts/framestorm corpus merge host1/corpus host2/corpus --into merged
    """
    from framestorm_cli.merging import merge_command

    raise click.exceptions.Exit(merge_command(**options))


@click.command("import")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True,
                type=click.Path(exists=True, file_okay=False, path_type=Path))  # fmt: skip
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the corpus.")  # fmt: skip
def import_(**options: Any) -> None:
    """Make a corpus of what runs of `stress` kept: inputs of unmutated samples, artifacts of findings.

    \b
    Example: scripts/framestorm corpus import out/20260102-030405-stress --into from-stress
    """
    from framestorm_cli.merging import import_command

    raise click.exceptions.Exit(import_command(**options))


@click.command()
@click.argument("into", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("summaries", metavar="RUN...", nargs=-1, required=True,
                type=click.Path(exists=True, path_type=Path))  # fmt: skip
def known(**options: Any) -> None:
    """Add what runs found to a list of known buckets, as `gate --baseline` and `stress --known` take it.

    RUN is the folder of a fuzz, stress or gate run, or its summary.json.

    \b
    Example: scripts/framestorm corpus known corpus/known/25-sanitized.json out/20260102-030405-fuzz
    """
    from framestorm_cli.gate.known import learn_command

    raise click.exceptions.Exit(learn_command(**options))
