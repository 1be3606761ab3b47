"""`framestorm scenarios` and `walkers`: questions to the native side, answers as tables."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.live import results_console
from framestorm_cli.hotspot import choosing
from framestorm_cli.native import processes, toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.profilers import outside

_SHOWN_WRONG = 3
# Not the project's own, and with known defects in states that threads have; so are JFR's stages, which say
# nothing of threads of their choice.
_JUDGED = ("asgct", outside.PROFILER)
_WHERE = ", halted at "  # ends what was wrong (scripts/native/replay.cpp)


def _traces(counts: dict[str, Any]) -> int:
    """How many there are: that a walk gave, or of a profiler, that it has stored."""
    stored = counts.get("recorded")
    if stored is None:
        return int(counts["succeeded"])
    return sum(int(count) for verdict, count in stored.items() if verdict != "missing")


def _stored(by_walker: dict[str, dict[str, Any]]) -> str:
    """`; profiler stored 18 right, 2 short`: of a trace for each walk. `; asgst-mark put 12 together`: walks
    that went on with frames kept from before."""
    said = ""
    for name, counts in by_walker.items():
        told = [
            f"{count} {verdict}" for verdict, count in counts.get("recorded", {}).items() if count
        ]
        said += f"; {name} stored {', '.join(told)}" if told else ""
        said += f"; {name} put {n} together" if (n := counts.get("put_together")) else ""
    return said


def _shares(by_walker: dict[str, dict[str, Any]]) -> str:
    """What share of its walks gave frames, for each walker: those that are not like the most first."""
    if not by_walker.keys() - {outside.PROFILER}:
        return "no walks" + _stored(by_walker)
    shares: dict[str, list[str]] = {}
    for name, counts in by_walker.items():
        if "recorded" in counts:
            continue
        walks, succeeded = int(counts["walks"]), int(counts["succeeded"])
        whole = "all" if succeeded == walks else "none" if succeeded == 0 else ""
        shares.setdefault(whole or f"{succeeded} of {walks}", []).append(name)
    most = max(shares, key=lambda share: len(shares[share]))
    few = [f"{' '.join(names)} {share}" for share, names in shares.items() if share != most]
    return ", ".join([*few, f"others {most}" if few else most]) + _stored(by_walker)


def _is_a_problem(wrong: str, by_walker: dict[str, dict[str, Any]]) -> bool:
    name = wrong.split(":", maxsplit=1)[0]
    return name not in _JUDGED and not by_walker.get(name, {}).get("chooses")


def _problems(row: dict[str, Any]) -> list[str]:
    """What makes a scenario fail. Not what AsyncGetCallTrace, JFR or a profiler got wrong: that is what
    framestorm finds."""
    by_walker = row.get("by_walker", {})
    problems = []
    walks, succeeded = int(row.get("walks", 0)), int(row.get("succeeded", 0))
    wanted = int(row.get("expected_percent", 0)) if row.get("java") else 0
    if walks == 0 or succeeded * 100 < wanted * walks:
        problems.append(f"too few by asgct: {succeeded} of {walks}, {wanted} % expected")
    if row.get("java"):
        silent = [
            name
            for name, counts in by_walker.items()
            if name != "asgct" and _traces(counts) == 0 and not counts.get("chooses")
        ]
        problems += [f"no frames by {name}" for name in silent]
    if any(_is_a_problem(wrong, by_walker) for wrong in row.get("wrong", ())):
        problems.append("wrong walks")
    return problems


def scenarios_command(
    *, jdk: Path | None, jvm_args: tuple[str, ...], walker_plugin: str | None, profiler: str | None
) -> int:
    outside.check(walker_plugin, profiler)
    tools = toolchain.prepare(jdk)
    walked = outside.given(walker_plugin, profiler, tools.jdk)
    with tempfile.TemporaryDirectory(prefix="framestorm-") as folder:
        out = Path(folder)
        arguments = processes.jvm_arguments(tools, None, jvm_args) + walked.arguments(out)
        data = processes.query([tools.program(NATIVE), "scenarios", *arguments], out)
    try:
        rows = json.loads(data)
    except ValueError as error:
        raise FramestormError(f"{NATIVE} scenarios did not answer with JSON: {error}") from error
    title = f"scenarios on {tools.jdk}" + (f", {walked}" if walked else "")
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for name in ("scenario", "walks that gave frames", "what"):
        table.add_column(name, overflow="fold")
    bad = []
    for row in rows:
        if not row["available"]:
            state = f"unavailable: {row.get('reason') or 'no reason given'}"
        else:
            by_walker = row.get("by_walker", {})
            state = _shares(by_walker)
            if problems := _problems(row):
                bad.append(row["name"])
                state += f"  ({'; '.join(problems)})"
            wrongs = Counter(str(wrong).split(_WHERE)[0] for wrong in row.get("wrong", ()))
            shown = sorted(
                wrongs.most_common(), key=lambda one: not _is_a_problem(one[0], by_walker)
            )
            for wrong, times in shown[:_SHOWN_WRONG]:
                state += f"\n{wrong}" + (f" ({times} times)" if times > 1 else "")
        table.add_row(row["name"], state, row.get("description", ""))
    results_console().print(table)
    if bad:
        click.echo(f"do not walk as they should: {', '.join(bad)}")
        return 1
    return 0


# Walkers that are not the JDK's.
_GIVEN = {"shared-object": "with --walker-plugin FILE", "agent": "with --profiler NAME"}


def walkers_command(jdk: Path | None) -> int:
    native = toolchain.native_program()
    chosen = choosing.choose(jdk)
    table = Table(box=box.SIMPLE, title=f"walkers on {chosen}", title_justify="left")
    for column in ("walker", "available", "what"):
        table.add_column(column)
    for name, walker in walkers.table(native).walkers.items():
        why = walker.why_missing(chosen.libjvm)
        available = f"no: {why}" if why else _GIVEN.get(walker.origin, "yes")
        table.add_row(name, available, walker.description)
    results_console().print(table)
    return 0
