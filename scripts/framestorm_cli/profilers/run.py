"""`framestorm profilers`: the table of known profilers, as a person reads it."""

import click

from framestorm_cli.base import paths
from framestorm_cli.profilers import obtaining, table
from framestorm_cli.profilers.table import Known


def _where(known: Known, fetch: bool) -> str:
    if known.released is None:
        return "part of the JDK under test"
    if fetch:
        obtaining.library(known)
    library = obtaining.cached(known)
    if library is None:
        return "has no library for this machine"
    if library.exists():
        return paths.shown(library)
    return f"fetched when it is first used, from {known.released.coordinates}"


def profilers_command(fetch: bool) -> int:
    for known in table.KNOWN:
        click.echo(f"{known.name} {known.version}".rstrip())
        lines = [known.what, _where(known, fetch)]
        if known.why_not:
            lines.append(known.why_not)
        if known.options:
            lines.append(f"options: {known.options}")
        lines += [
            f"JDK {first} and later: {argument}"
            for first, arguments in known.jvm_args.items()
            for argument in arguments
        ]
        for line in lines:
            click.echo(f"    {line}")
    click.echo(f"In place of a name: an agent library's file, or {table.JVM}.")
    return 0
