"""`framestorm scenarios`, `walkers` and `bench`: questions to the native side, answers as tables."""

import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from framestorm_cli import elf, fuzzing, native, paths, summary, toolchain
from framestorm_cli import jdk as jdks
from framestorm_cli.errors import FramestormError
from framestorm_cli.fuzz_command import new_folder
from framestorm_cli.toolchain import NATIVE

_SHOWN_WRONG = 3
_LEADING = ("mode", "depth", "frames")
_BENCHED = "fuzz_ucontext"
# Entry points by which a libjvm shows that it has a walker; None: always there.
_WALKERS: dict[str, tuple[str | None, str]] = {
    "asgct": ("AsyncGetCallTrace", "AsyncGetCallTrace"),
    "gst": (None, "JVMTI GetStackTrace, at safepoints only: the reference"),
    "plugin": (None, "a .so with framestorm_walker.h's functions (--walker-plugin FILE)"),
}


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
    for column in ("walker", "available", "entry point"):
        table.add_column(column)
    for name in names:
        symbol, what = _WALKERS.get(name, (None, ""))
        there = symbol is None or elf.exports(chosen.libjvm, symbol)
        table.add_row(name, "yes" if there else f"no: libjvm.so does not export {symbol}", what)
    _console().print(table)
    return 0


def bench_command(
    *, seconds: int, out: Path | None, jdk: Path | None, jvm_args: tuple[str, ...]
) -> int:
    folder = new_folder(out, "bench")
    fuzzing.check_room(folder)
    tools = toolchain.prepare(jdk)
    arguments = native.jvm_arguments(tools, folder, jvm_args)
    arguments += ["--seconds", str(seconds), "--corpus", str(paths.SEEDS / _BENCHED)]
    figures = _answer(
        native.query([tools.program(_BENCHED), "--bench", *arguments], folder), "--bench"
    )
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": summary.machine(),
        "jdk": {"version": tools.jdk.version, "vendor": tools.jdk.vendor},
        "figures": figures,
    }
    path = folder / "bench.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    machine = record["machine"]
    click.echo(f"{record['date']}, {tools.jdk}, {machine['cores']} cores, {machine['arch']}")
    for table in tables_of("bench", figures):
        _console().print(table)
    click.echo(paths.shown(path))
    return 0


def tables_of(title: str, data: Any) -> list[Table]:
    """Tables for whatever figures the native side gives: a list of objects is a table of rows, an
    object of objects too, an object of values one of names and values; what is nested deeper becomes a
    table of its own."""
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        columns = list(dict.fromkeys(key for row in data for key in row))
        columns.sort(
            key=lambda name: name not in _LEADING
        )  # stable: JSON objects come sorted by name
        table = _table(title, columns)
        for row in data:
            table.add_row(*(_cell(row.get(column)) for column in columns))
        return [table]
    if not isinstance(data, dict):
        data = {title: data}
    if data and all(isinstance(value, dict) for value in data.values()):
        rows = [{title.removesuffix("s"): key, **value} for key, value in data.items()]
        if not any(isinstance(cell, dict | list) for row in rows for cell in row.values()):
            return tables_of(title, rows)
    plain = {key: value for key, value in data.items() if not isinstance(value, dict | list)}
    tables = []
    if plain:
        table = _table(title, ["figure", "value"])
        for key, value in plain.items():
            table.add_row(key, _cell(value))
        tables.append(table)
    for key, value in data.items():
        if isinstance(value, dict | list):
            tables += tables_of(key, value)
    return tables


def _table(title: str, columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE, title=title.replace("_", " "), title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column.replace("_", " "), justify="left" if index == 0 else "right")
    return table


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "-" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)
