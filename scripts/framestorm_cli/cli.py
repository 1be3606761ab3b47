"""The command line. Commands import what they need when they run: start-up time."""

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from framestorm_cli import corpus_cli
from framestorm_cli.bundle.cli import oss_fuzz
from framestorm_cli.cli_options import jdk_option, jvm_arg_option
from framestorm_cli.errors import FramestormError
from framestorm_cli.gate import cli as gate_cli
from framestorm_cli.stress import cli as stress_cli

FORCE_HINT = " (--force decodes it anyway)"
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_Command = TypeVar("_Command", bound=Callable[..., Any])

artifact_argument = click.argument(
    "artifact", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group(context_settings=_SETTINGS)
def framestorm() -> None:
    """Finds crashes, hangs, unsafe calls and wrong answers in JVM stack walkers.

    \b
    Example: scripts/framestorm fuzz --seconds 60
    """


@framestorm.command()
@click.option("--target", "targets", multiple=True, help="Fuzz target; repeatable. Default: all.")
@click.option(
    "--engine",
    type=click.Choice(["libfuzzer", "afl"]),
    default="libfuzzer",
    show_default=True,
    help="What mutates: libFuzzer, or AFL++ (installed when it is missing).",
)
@click.option(
    "--walker", default="", help="Walkers under test, comma separated. Default: all the JDK has."
)
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option("--mode", "modes", multiple=True, help="same-thread or separate-thread; repeatable.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), help="Time for all targets together.  [default: 60]"
)
@click.option("--runs", type=click.IntRange(min=1), help="Walks for all targets together.")
@click.option("--seed", type=int, help="Start of the random numbers.  [default: from the clock]")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at once.  [default: cores]")
@jdk_option
@jvm_arg_option
@click.option(
    "--corpus",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Folder with inputs, such as corpus/ of a run's folder; repeatable.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="The run's folder.  [default: out/<run>]"
)
@click.option(
    "--walker-plugin", type=click.Path(path_type=Path), help="The .so of --walker plugin."
)
@click.option(
    "--survey/--strict",
    default=True,
    help="Contain and count findings and go on (default), or end at the first.",
)
@click.option(
    "--verify",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Fresh JVMs each bucket is replayed in, fewer where that takes long; 0: none.",
)
def fuzz(**options: Any) -> None:
    """Fuzz the walkers of a JDK. Sets up everything that is missing first.

    Exit code 0: nothing found, 1: findings, 2: set-up or usage error, or a run that did too little.

    \b
    Example: scripts/framestorm fuzz --seconds 60 --target fuzz_ucontext --scenario c2-inlined
    """
    from framestorm_cli.fuzz_command import fuzz_command

    _exit(fuzz_command(**options))


@framestorm.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--halts", type=click.IntRange(min=1), default=64, show_default=True,
              help="Halt points a try goes through at most.")  # fmt: skip
@click.option(
    "--signature",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON file with the signature to look for. Default: the one recorded beside the artifact.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Keep what the tries write here.")
@jdk_option
@jvm_arg_option
def replay(**options: Any) -> None:
    """Replay an artifact in fresh JVMs, or show a sample that `stress` kept (*.sample).

    Exit code 0: the recorded signature came back, 1: it did not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm replay out/20260102-030405/artifacts/b01.bin --tries 10
    """
    from framestorm_cli.replay_command import replay_command

    _exit(replay_command(**options))


@framestorm.command()
@artifact_argument
@click.option("--tries", type=click.IntRange(min=1), default=3, show_default=True,
              help="Fresh JVMs the result is checked in.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Result.  [default: ARTIFACT.min.bin]")
@jdk_option
@jvm_arg_option
def minimize(**options: Any) -> None:
    """Shrink an artifact while its recorded signature holds.

    \b
    Example: scripts/framestorm minimize out/20260102-030405/artifacts/b01.bin
    """
    from framestorm_cli.replay_command import minimize_command

    _exit(minimize_command(**options))


@framestorm.command()
@click.argument("artifact", type=click.Path(dir_okay=False, path_type=Path), default="-")
@click.option("--force", is_flag=True, help="Decode what framestorm did not write, too.")
def decode(artifact: Path, force: bool) -> None:
    """Print an artifact, or what standard input holds, in its text form.

    \b
    Example: scripts/framestorm decode out/20260102-030405/artifacts/b01.bin
    """
    from framestorm_cli import replaying, toolchain

    program = toolchain.native_programs() / toolchain.NATIVE
    try:
        click.echo(replaying.decode(program, artifact, force=force), nl=False)
    except FramestormError as error:
        raise FramestormError(f"{error.message}{'' if force else FORCE_HINT}") from error


@framestorm.command()
@click.argument("text", type=click.File("rb"), default="-")
@click.argument("artifact", type=click.File("wb", lazy=True), default="-")
def encode(text: Any, artifact: Any) -> None:
    """Turn a text form into an artifact. `-`, or nothing, is standard input and output.

    \b
    Example: scripts/framestorm encode edited.txt edited.bin
    """
    from framestorm_cli import native, toolchain

    program = toolchain.native_programs() / toolchain.NATIVE
    data = native.filter_text(program, "encode", text.read())
    artifact.write(data)  # only now: opening it empties the file


@framestorm.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write a report per bucket here.")
def triage(folder: Path, out: Path | None) -> None:
    """Sort what a folder holds into buckets: framestorm runs, hs_err files, sanitizer logs.

    Exit code 0: nothing found in the files, 1: findings, 2: no file that can be read.

    \b
    Example: scripts/framestorm triage ~/crashes --out out/triage
    """
    from framestorm_cli.triage_command import triage_command

    _exit(triage_command(folder, out))


@framestorm.command()
@jdk_option
@jvm_arg_option
def scenarios(**options: Any) -> None:
    """Start every scenario, walk it unmutated with every walker, and list them.

    Exit code 1 when a scenario that this JVM can reach does not walk, or when a walk other than
    AsyncGetCallTrace's is wrong.

    \b
    Example: scripts/framestorm scenarios --jdk /usr/lib/jvm/java-17-openjdk-amd64
    """
    from framestorm_cli.listing import scenarios_command

    _exit(scenarios_command(**options))


@framestorm.command()
@jdk_option
def walkers(jdk: Path | None) -> None:
    """List the walkers and whether this JDK has them.

    \b
    Example: scripts/framestorm walkers
    """
    from framestorm_cli.listing import walkers_command

    _exit(walkers_command(jdk))


@framestorm.command()
@click.option("--seconds", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for bench.json.")
@click.option(
    "--jdk",
    "jdks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="As for `fuzz`; repeatable: each is measured in turn.",
)
@jvm_arg_option
def bench(**options: Any) -> None:
    """Measure the fuzz loop against bare walker calls on the same libjvm.

    \b
    Example: scripts/framestorm bench --jdk /usr/lib/jvm/java-17-openjdk-amd64
    Example: scripts/framestorm bench --jdk instrumented --jdk instrumented:coverage
    """
    from framestorm_cli.benching import bench_command

    _exit(bench_command(**options))


corpus_arguments = click.argument("corpus", nargs=-1, type=click.Path(path_type=Path))
halts_option = click.option("--halts", type=click.IntRange(min=1), default=2, show_default=True,
                            help="Points each scenario is halted at.")  # fmt: skip
instrumented_option = click.option(
    "--jdk",
    type=click.Path(path_type=Path),
    help="An instrumented JDK: a path, or instrumented[:VARIANT].  [default: instrumented]",
)


@framestorm.command()
@corpus_arguments
@halts_option
@click.option("--check", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Floor that no walker function may fall below (corpus/coverage-floor.json).")  # fmt: skip
@click.option("--write-floor", type=click.Path(dir_okay=False, path_type=Path),
              help="Write the floor from this measurement, less a margin.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report.")
@instrumented_option
@jvm_arg_option
def coverage(**options: Any) -> None:
    """What a corpus (default: the seeds) reaches in the walkers: functions and lines, per scenario.

    HTML and JSON, with the functions that nothing reaches. Exit code 1: a function fell below the
    floor, 2: set-up or usage error.

    \b
    Example: scripts/framestorm coverage corpus/seeds/fuzz_ucontext --check corpus/coverage-floor.json
    """
    from framestorm_cli.coverage.command import coverage_command

    _exit(coverage_command(**options))


@framestorm.command()
@click.option("--target", "targets", multiple=True,
              help="Fuzz target; repeatable.  [default: fuzz_ucontext, fuzz_stack]")  # fmt: skip
@click.option("--engine", "engines", multiple=True, type=click.Choice(["libfuzzer", "afl"]),
              help="Repeatable.  [default: both]")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=1), default=60, show_default=True,
              help="Fuzzing of one run.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True,
              help="Runs of each kind.")  # fmt: skip
@click.option("--seed", type=int, help="Start of the random numbers.  [default: from the clock]")
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option("--mode", "modes", multiple=True, help="same-thread or separate-thread; repeatable.")
@click.option("--corpus", multiple=True, type=click.Path(path_type=Path),
              help="Folder with the inputs to start from; repeatable.  [default: the seeds]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--again", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Run nothing: table and picture of this compare.json.")  # fmt: skip
@instrumented_option
@jvm_arg_option
def compare(**options: Any) -> None:
    """Guided by coverage against unguided: edges and buckets over time, each engine, same time.

    Guided and unguided runs take turns, one process at a time. Unguided, every mutant is tried and none
    is kept; the engine's inputs stay the seeds. Writes compare.json, compare.md (table) and compare.png.

    Exit code 0: guided reaches more edges with every engine and target, 1: not, 2: set-up or usage error.

    \b
    Example: scripts/framestorm compare --target fuzz_stack --seconds 60 --repetitions 5
    """
    from framestorm_cli.comparing.command import compare_command

    _exit(compare_command(**options))


@framestorm.command()
@click.option("--ci", is_flag=True, help="For CI: every step but clang-tidy, no terminal effects.")
@click.option("--tidy", is_flag=True, help="clang-tidy as well (minutes).")
@click.option("--only", multiple=True, help="Only this step; repeatable.")
@click.argument("pytest_args", nargs=-1)
def test(ci: bool, tidy: bool, only: tuple[str, ...], pytest_args: tuple[str, ...]) -> None:
    """Run all tests and checks: ruff, mypy, clang-format, ctest, pytest.

    \b
    Example: scripts/framestorm test
    Example: scripts/framestorm test --only pytest -- -k triage
    """
    from framestorm_cli.testing import test_command

    _exit(test_command(ci=ci, tidy=tidy, only=only, pytest_args=pytest_args))


@framestorm.command()
def doctor() -> None:
    """Say what the machine has, what is missing, and what will not work and why.

    Exit code 2 when something is missing that framestorm cannot install by itself.

    \b
    Example: scripts/framestorm doctor
    """
    from framestorm_cli.doctor import doctor_command

    _exit(doctor_command())


@framestorm.group()
def jdk() -> None:
    """Build HotSpot with sanitizers, coverage and framestorm's additions; keep what was built.

    \b
    Example: scripts/framestorm jdk build && scripts/framestorm fuzz --jdk instrumented
    """


@jdk.command("build")
@click.option(
    "--source",
    default="debian:openjdk-25",
    show_default=True,
    metavar="debian:PACKAGE|DIR|TARBALL",
    help="The OpenJDK source. A DIR is only read.",
)
@click.option(
    "--boot-jdk",
    type=click.Path(path_type=Path),
    help="JDK to build with, of the same or the previous release.  [default: an installed one]",
)
@click.option(
    "--variant",
    default="sanitized",
    show_default=True,
    help="sanitized: ASan, UBSan, coverage; fastdebug: HotSpot's assertions, coverage; "
    "undefined: UBSan, coverage; coverage: coverage alone; plain: none of these.",
)
@click.option(
    "--gc",
    "gcs",
    multiple=True,
    help="Only this collector: serial, parallel, g1, z, shenandoah; repeatable.  [default: all]",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Compilers at once.  [default: cores]")
def jdk_build(**options: Any) -> None:
    """Make a complete JDK folder in the cache and print its path. Running it again resumes.

    \b
    Example: scripts/framestorm jdk build --variant sanitized
    Example: scripts/framestorm jdk build --source ~/jdk --variant fastdebug
    """
    from framestorm_cli.hotspot.command import build_command

    _exit(build_command(**options))


@jdk.command("list")
def jdk_list() -> None:
    """List the instrumented JDKs in the cache.

    \b
    Example: scripts/framestorm jdk list
    """
    from framestorm_cli.hotspot.command import list_command

    _exit(list_command())


@jdk.command("path")
@click.argument("variant", default="sanitized")
def jdk_path(variant: str) -> None:
    """Print the home of the instrumented JDK of a variant that was last built or used.

    \b
    Example: scripts/framestorm jdk path sanitized
    """
    from framestorm_cli.hotspot.command import path_command

    _exit(path_command(variant))


@jdk.command("clean")
@click.option("--everything", is_flag=True, help="Downloads and compiled objects, too.")
def jdk_clean(everything: bool) -> None:
    """Remove instrumented JDKs and their build trees from the cache.

    \b
    Example: scripts/framestorm jdk clean
    """
    from framestorm_cli.hotspot.command import clean_command

    _exit(clean_command(everything=everything))


@framestorm.group()
def corpus() -> None:
    """Look after corpora: seeds, what the engines found, crashes that are tests.

    \b
    Example: scripts/framestorm corpus add out/20260102-030405/artifacts/b01.bin --id sender-null-fp
    """


@corpus.command("minimize")
@corpus_arguments
@click.option("--into", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="New folder for the inputs that are kept, named by their content.")  # fmt: skip
@halts_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for what is measured.")
@instrumented_option
@jvm_arg_option
def corpus_minimize(**options: Any) -> None:
    """Keep the smallest inputs that reach together what all of them reach.

    \b
    Example: scripts/framestorm corpus minimize out/20260102-030405/corpus/fuzz_stack --into /tmp/small
    """
    from framestorm_cli.coverage.command import minimize_command

    _exit(minimize_command(**options))


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
    from framestorm_cli.coverage.command import check_command

    _exit(check_command(**options))


@corpus.command("add")
@artifact_argument
@click.option("--id", "name", required=True, help="Name of the folder in corpus/crashes.")
@click.option(
    "--jdk",
    "jdk_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="JDK to record; repeatable. Default: the newest installed one of each release.",
)
@click.option("--tries", type=click.IntRange(min=1), default=5, show_default=True)
def corpus_add(**options: Any) -> None:
    """Replay an artifact on the installed JDKs and record what it does in corpus/crashes/ID.

    \b
    Example: scripts/framestorm corpus add out/20260102-030405/artifacts/b01.bin --id sender-null-fp
    """
    from framestorm_cli.crashes import add_command

    _exit(add_command(**options))


framestorm.add_command(stress_cli.stress)
framestorm.add_command(stress_cli.evaluate)
corpus.add_command(corpus_cli.judge)
corpus.add_command(corpus_cli.merge)
corpus.add_command(corpus_cli.import_)
corpus.add_command(corpus_cli.known)
jdk.add_command(corpus_cli.identify)
framestorm.add_command(gate_cli.gate)
framestorm.add_command(oss_fuzz)


def _exit(code: int) -> NoReturn:
    raise click.exceptions.Exit(code)


def main() -> None:
    """Runs the command. A bug in framestorm itself is exit 2: 1 means findings."""
    try:
        # Not standalone: an Exit's code is returned.
        sys.exit(framestorm.main(prog_name="framestorm", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        FramestormError("interrupted").show()
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(2)
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        FramestormError("this is a defect of framestorm itself").show()
        sys.exit(2)
