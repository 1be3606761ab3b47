"""`framestorm scenarios`, `walkers` and `bench`: questions to the native side, answers as tables."""

import json
import os
import re
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
from framestorm_cli.records import Json
from framestorm_cli.toolchain import NATIVE

_SHOWN_WRONG = 3
_IDLE_LOAD = 0.5
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
    load = os.getloadavg()[0]
    figures = _answer(
        native.query([tools.program(_BENCHED), "--bench", *arguments], folder), "--bench"
    )
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {**summary.machine(), "cpu": _cpu_model(), "load": round(load, 1)},
        "jdk": {"version": tools.jdk.version, "vendor": tools.jdk.vendor},
        "figures": figures,
    }
    path = folder / "bench.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    machine = record["machine"]
    click.echo(
        f"{record['date']}, {tools.jdk.vendor} {tools.jdk.version}, {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['kernel']}"
    )
    try:
        tables = {
            f"{_BENCHED}: the loop with its per-walk oracles, against bare calls of the walker": (
                _mode_table(figures["modes"])
            ),
            "one walk as the depth grows (deep-stack, separate-thread)": (
                _depth_table(figures["depths"])
            ),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise FramestormError(
            f"{_BENCHED} --bench answered without {error}; see {path}: are the programs of this checkout?"
        ) from error
    for title, table in tables.items():
        click.echo(f"\n{title}")
        _console().print(table)
    if load > _IDLE_LOAD:
        click.echo(
            f"the machine was busy (load {load:.1f} before the start): not the figures of an idle one"
        )
    click.echo(paths.shown(path))
    return 0


def _cpu_model() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else "unknown CPU"


def _mode_table(modes: Json) -> Table:
    table = _table(["mode", "loop walks/s", "bare walks/s", "loop / bare", "walks"])
    for name, row in sorted(modes.items()):
        table.add_row(
            name,
            f"{row['walks_per_second']:,.0f}",
            f"{row['bare_per_second']:,.0f}",
            f"{row['ratio']:.2f}",
            f"{row['walks']:,}",
        )
    return table


def _depth_table(depths: list[Json]) -> Table:
    columns = ["depth", "frames given", "bare, us", "bare, ns per frame", "with the engine, us"]
    table = _table(columns)
    for row in depths:
        frames = max(1, int(row["frames"]))
        table.add_row(
            f"{row['depth']:,}",
            f"{row['frames']:,}",
            f"{row['bare_ns'] / 1000:,.1f}",
            f"{row['bare_ns'] / frames:,.0f}",
            f"{row['engine_ns'] / 1000:,.1f}",
        )
    return table


def _table(columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table
