"""Options that several commands have."""

from pathlib import Path

import click

jdk_option = click.option(
    "--jdk",
    type=click.Path(path_type=Path),
    help="Home of the JDK under test, or instrumented[:VARIANT] for one that `jdk build` makes. "
    "Default: JAVA_HOME, else the newest installed HotSpot.",
)
jvm_arg_option = click.option(
    "--jvm-arg", "jvm_args", multiple=True, metavar="ARG", help="Argument for the JVM; repeatable."
)
