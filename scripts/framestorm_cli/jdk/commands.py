"""Options of `framestorm jdk`."""

from pathlib import Path
from typing import Any

import click

from framestorm_cli.base.options import exit_with


@click.group()
def jdk() -> None:
    """Build, list and remove JDKs with sanitizers, coverage and framestorm's additions.

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
    from framestorm_cli.jdk.run import build_command

    exit_with(build_command(**options))


@jdk.command("list")
def jdk_list() -> None:
    """List the instrumented JDKs in the cache.

    \b
    Example: scripts/framestorm jdk list
    """
    from framestorm_cli.jdk.run import list_command

    exit_with(list_command())


@jdk.command("path")
@click.argument("variant", default="sanitized")
def jdk_path(variant: str) -> None:
    """Print the home of the instrumented JDK of a variant that was last built or used.

    \b
    Example: scripts/framestorm jdk path sanitized
    """
    from framestorm_cli.jdk.run import path_command

    exit_with(path_command(variant))


@jdk.command("clean")
@click.option("--everything", is_flag=True, help="Remove downloads and compiled objects, too.")
def jdk_clean(everything: bool) -> None:
    """Remove instrumented JDKs and their build trees from the cache.

    \b
    Example: scripts/framestorm jdk clean
    """
    from framestorm_cli.jdk.run import clean_command

    exit_with(clean_command(everything=everything))


@jdk.command()
@click.argument("jdks_given", metavar="JDK...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--prepare", is_flag=True, help="Build what replaying on them needs, too.")
def identify(**options: Any) -> None:
    """Say which JDKs these are: JSON with home, version, and the label of expectations for each.

    \b
    Example: scripts/framestorm jdk identify /usr/lib/jvm/java-17-openjdk-amd64 instrumented:plain
    """
    from framestorm_cli.jdk.run import identify_command

    exit_with(identify_command(**options))


COMMANDS = (jdk,)
