"""`framestorm jdk identify`: what ci/pytest asks for."""

import json
from pathlib import Path

import click

from framestorm_cli.base import steps
from framestorm_cli.hotspot import choosing
from framestorm_cli.native import toolchain


def identify_command(*, jdks_given: tuple[Path, ...], prepare: bool) -> int:
    """Prints a JSON list, in the order given."""
    found = []
    for given in jdks_given:
        jdk = choosing.choose(given)
        if prepare:
            steps.say(f"setting up for {jdk}")
            toolchain.prepare(jdk.home)
        found.append(
            {"given": str(given), "home": str(jdk.home), "version": jdk.version, "label": jdk.label}
        )
    click.echo(json.dumps(found))
    return 0
