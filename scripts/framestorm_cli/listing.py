"""`framestorm scenarios` and `walkers`: questions to the native side, answers as tables."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from framestorm_cli import jdk as jdks
from framestorm_cli import native, toolchain
from framestorm_cli.errors import FramestormError
from framestorm_cli.toolchain import NATIVE
from framestorm_cli.walkers import WALKERS

_SHOWN_WRONG = 3


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 140)
    return console


def _answer(data: bytes, command: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise FramestormError(f"{NATIVE} {command} did not answer with JSON: {error}") from error


def scenarios_command(*, jdk: Path | None, jvm_args: tuple[str, ...]) -> int:
    tools = toolchain.prepare(jdk)
    with tempfile.TemporaryDirectory(prefix="framestorm-") as folder:
        out = Path(folder)
        arguments = native.jvm_arguments(tools, None, jvm_args)
        data = native.query([tools.program(NATIVE), "scenarios", *arguments], out)
    rows = _answer(data, "scenarios")
    table = Table(box=box.SIMPLE, title=f"scenarios on {tools.jdk}", title_justify="left")
    for name in ("scenario", "unmutated walks", "what"):
        table.add_column(name, overflow="fold")
    bad = []
    for row in rows:
        walks, succeeded = int(row.get("walks", 0)), int(row.get("succeeded", 0))
        if not row["available"]:
            state = f"unavailable: {row.get('reason') or 'no reason given'}"
        else:
            state = f"{succeeded} of {walks} succeeded"
            wanted = int(row.get("expected_percent", 0)) if row.get("java") else 0
            if walks == 0 or succeeded * 100 < wanted * walks:
                bad.append(row["name"])
                state += f"  (too few, {wanted} % expected)"
            for wrong, times in Counter(row.get("wrong", ())).most_common(_SHOWN_WRONG):
                state += f"\n{wrong}" + (f" ({times} times)" if times > 1 else "")
        table.add_row(row["name"], state, row.get("description", ""))
    _console().print(table)
    if bad:
        click.echo(f"do not walk as they should: {', '.join(bad)}")
        return 1
    return 0


def walkers_command(jdk: Path | None) -> int:
    programs = toolchain.native_programs()
    chosen = jdks.choose(jdk)
    names = _answer(native.query([programs / NATIVE, "names"]), "names")["walkers"]
    table = Table(box=box.SIMPLE, title=f"walkers on {chosen}", title_justify="left")
    for column in ("walker", "available", "what"):
        table.add_column(column)
    for name in names:
        walker = WALKERS[name]
        why = walker.why_missing(chosen.libjvm)
        table.add_row(name, f"no: {why}" if why else "yes", walker.description)
    _console().print(table)
    return 0
