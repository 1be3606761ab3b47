"""`framestorm bench`: the fuzz loop against bare calls of the walker, on one JDK or several."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from rich import box
from rich.table import Table

from framestorm_cli.base import files, paths, run_folder
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.live import results_console, results_table
from framestorm_cli.base.machine import machine as this_machine
from framestorm_cli.findings.records import Json
from framestorm_cli.native import processes, toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker

_IDLE_LOAD = 0.5
_BENCHED = "fuzz_ucontext"


def bench_command(
    *,
    seconds: int,
    out: Path | None,
    jdks: tuple[Path, ...],
    jvm_args: tuple[str, ...],
    profiler: str | None,
) -> int:
    """Each JDK in turn, the default one when none is named."""
    outside.check(None, profiler)
    folder = run_folder.prepare(out, "bench")
    tools_of_each = [toolchain.prepare(jdk) for jdk in jdks or (None,)]
    load = os.getloadavg()[0]
    measured: list[Json] = []
    record: Json = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            **msgspec.structs.asdict(this_machine()),
            "cpu": _cpu_model(),
            "load": round(load, 1),
        },
        "measured": measured,
    }
    machine = record["machine"]
    click.echo(f"{record['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['kernel']}")
    path = folder / "bench.json"
    for number, tools in enumerate(tools_of_each):
        own = folder if len(tools_of_each) == 1 else folder / f"{number}-{tools.jdk.label}"
        own.mkdir(exist_ok=True)
        walked = outside.given(None, profiler, tools.jdk)
        figures = _measure(tools, own, seconds, jvm_args, walked)
        jdk = {"version": tools.jdk.version, "vendor": tools.jdk.vendor, "label": tools.jdk.label}
        measured.append({"jdk": jdk, **walked.recorded(), "figures": figures})
        files.write_json(path, record)
        try:
            _show(tools, figures)
        except (KeyError, TypeError, AttributeError) as error:
            raise FramestormError(
                f"{_BENCHED} --bench answered without {error}; see {path}: are the programs of this checkout?"
            ) from error
    if load > _IDLE_LOAD:
        click.echo(
            f"the machine was busy (load {load:.1f} before the start): not the figures of an idle one"
        )
    click.echo(paths.shown(path))
    return 0


def _measure(
    tools: toolchain.Toolchain,
    folder: Path,
    seconds: int,
    jvm_args: tuple[str, ...],
    walked: OutsideWalker,
) -> Any:
    arguments = processes.jvm_arguments(tools, folder, jvm_args) + walked.arguments(folder)
    if walked:
        arguments += ["--walker", walked.walker]
    arguments += ["--seconds", str(seconds), "--corpus", str(paths.SEEDS / _BENCHED)]
    data = processes.query([tools.program(_BENCHED), "--bench", *arguments], folder)
    # A profiler says on the same stream that it has started.
    answer = data[max(data.find(b"\n{") + 1, 0) :]
    try:
        return json.loads(answer)
    except ValueError as error:
        raise FramestormError(f"{_BENCHED} --bench did not answer with JSON: {error}") from error


def _show(tools: toolchain.Toolchain, figures: Json) -> None:
    edges = int(figures["edges"])
    guided = f"guided by {edges:,} edge counters" if edges else "no edge counters"
    console = results_console()
    click.echo(f"\n{tools.jdk.label}: {tools.jdk.vendor} {tools.jdk.version}, {guided}")
    for title, table in (
        (
            f"{_BENCHED}: the loop with its per-walk oracles, against bare calls of the walker",
            _mode_table(figures["modes"]),
        ),
        (
            "one walk as the depth grows (deep-stack, separate-thread)",
            _depth_table(figures["depths"]),
        ),
    ):
        click.echo(f"\n{title}")
        console.print(table)


def _cpu_model() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else "unknown CPU"


def _mode_table(modes: Json) -> Table:
    titles = ("mode", "loop walks/s", "bare walks/s", "loop / bare", "walks")
    table = results_table(titles, titles[:1], box=box.SIMPLE)
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
    titles = (
        *("walker", "depth", "frames given", "bare, us", "to asgct", "bare, ns per frame"),
        "with the executor, us",
    )
    table = results_table(titles, titles[:1], box=box.SIMPLE)
    asgct = {row["depth"]: row["bare_ns"] for row in depths if row["walker"] == "asgct"}
    for row in depths:
        frames = max(1, int(row["frames"]))
        same = asgct.get(row["depth"])
        table.add_row(
            str(row["walker"]),
            f"{row['depth']:,}",
            f"{row['frames']:,}",
            f"{row['bare_ns'] / 1000:,.1f}",
            f"{row['bare_ns'] / same:,.2f}" if same else "",
            f"{row['bare_ns'] / frames:,.0f}",
            f"{row['executor_ns'] / 1000:,.1f}",
        )
    return table
