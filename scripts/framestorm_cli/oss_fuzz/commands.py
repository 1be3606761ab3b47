"""Options of `framestorm oss-fuzz`."""

import os
from pathlib import Path

import click

from framestorm_cli.base import paths
from framestorm_cli.base.options import exit_with


@click.group("oss-fuzz")
def oss_fuzz() -> None:
    """Targets for OSS-Fuzz and ClusterFuzzLite.

    \b
    Example: scripts/framestorm oss-fuzz check out/bundle  # after OUT=out/bundle ... oss-fuzz build
    """


@oss_fuzz.command("build")
def oss_fuzz_build() -> None:
    """Fill $OUT with targets, JDK and inputs, as OSS-Fuzz's build.sh is asked to.

    Reads OSS-Fuzz's variables CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, FUZZING_ENGINE, SANITIZER, OUT
    and WORK. Also reads FRAMESTORM_JDK (a JDK's home), FRAMESTORM_JDK_SOURCE (what `jdk build --source`
    takes) and FRAMESTORM_WALKERS (comma separated, or all).

    \b
    Example: scripts/framestorm oss-fuzz build
    """
    from framestorm_cli.oss_fuzz import building, settings

    asked = settings.read(os.environ)
    for name in settings.TARGETS_ONLY:
        os.environ.pop(name, None)
    building.build(asked)


@oss_fuzz.command("check")
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Choice(paths.TARGETS),
    help="Only this one; repeatable.",
)
@click.option(
    "--engine",
    type=click.Choice(["libfuzzer", "afl", "none"]),
    default="libfuzzer",
    envvar="FUZZING_ENGINE",
    show_default=True,
    show_envvar=True,
    help="Engine that $OUT was built for.",
)
@click.option(
    "--sanitizer",
    type=click.Choice(["address", "undefined", "coverage", "none"]),
    default="address",
    envvar="SANITIZER",
    show_default=True,
    show_envvar=True,
    help="Sanitizer that $OUT was built with.",
)
@click.option("--runs", type=click.IntRange(min=4), default=1000, show_default=True,
              help="Runs of each target.")  # fmt: skip
def oss_fuzz_check(
    out: Path, targets: tuple[str, ...], engine: str, sanitizer: str, runs: int
) -> None:
    """Check a built $OUT as OSS-Fuzz does, from another folder, as another user, read-only.

    Exit code 0: a good build, 1: a bad one.

    \b
    Example: scripts/framestorm oss-fuzz check out/bundle --engine afl --sanitizer undefined
    """
    from framestorm_cli.oss_fuzz import checking

    code = checking.check_command(
        out, targets or paths.TARGETS, checking.Build(engine, sanitizer), runs
    )
    exit_with(code)


COMMANDS = (oss_fuzz,)
