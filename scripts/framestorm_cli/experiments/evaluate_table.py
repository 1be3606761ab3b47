"""An evaluation as Markdown."""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from framestorm_cli.experiments import DEFAULT_INTERVALS, DEFAULT_PROGRAM, DEFAULT_WALKER
from framestorm_cli.experiments.measured import NONE, Row, Spread, baseline
from framestorm_cli.experiments.shared import table
from framestorm_cli.stress import units

PICTURE = "evaluation.png"


def _seconds(spread: Spread | None, base: Spread | None) -> str:
    if spread is None:
        return "-"
    text = f"{spread.mean:.2f}"
    if not math.isnan(spread.deviation):
        text += f" ± {spread.deviation:.2f}"
    if base is not None and base.mean:
        text += f" ({spread.mean / base.mean - 1:+.1%})"
    return text


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def figures(rows: Sequence[Row]) -> str:
    """One line per workload, interval and condition. Times are of the runs that did their work."""
    head = [
        "workload",
        "sampled",
        "wall, s",
        "user, s",
        "system, s",
        "samples a run",
        "gave a trace",
    ]
    lines = []
    for row in rows:
        base = baseline(row, rows) if row.condition != NONE else None
        cells = [f"{row.role}: {row.workload}", row.condition]
        if row.condition != NONE:
            cells[1] += f", {units.interval_text(row.interval_ns)}"
        cells += [
            _seconds(row.spread(name), base.spread(name) if base else None)
            for name in ("wall", "user", "system")
        ]
        if row.condition == NONE:
            cells += ["-"] * 5
        else:
            samples = row.spread("samples")
            cells += [
                "-" if samples is None else f"{samples.mean:,.0f}",
                _share(row.trace_share),
                "-" if row.wrong is None else str(row.wrong),
                _share(row.broken_share),
                str(row.crashes),
            ]
        lines.append(cells)
    return table([*head, "wrong by ground truth", "broken traces", "walks that crashed"], lines)


def docs_stem(data: dict[str, Any]) -> str:
    """The name of page and picture in docs/measurements, without suffix: one per pair of programs."""
    names = [one["name"] for one in data["programs"]]
    if set(names) == {DEFAULT_PROGRAM}:
        return "evaluation"
    last = [re.split("[:/]", name)[-1] for name in dict.fromkeys(names)]
    slugs = [re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in last]
    return "-".join(["evaluation", *slugs])


def _command(rows: Sequence[Row], data: dict[str, Any]) -> str:
    words = ["scripts/framestorm", "evaluate"]
    for one in data["programs"]:
        if one["name"] != DEFAULT_PROGRAM:
            words += [f"--{one['role']}", one["name"]]
    taken = sorted({row.interval_ns for row in rows if row.condition != NONE})
    if taken != sorted(map(units.interval_ns, DEFAULT_INTERVALS)):
        words += [word for one in taken for word in ("--interval", units.interval_text(one))]
    if data["walker"] != DEFAULT_WALKER:
        words += ["--walker", data["walker"]]
    if "seconds" in data:  # older files do not have it
        words += ["--seconds", f"{data['seconds']:g}"]
    return " ".join([*words, "--repetitions", str(data["repetitions"]), "--docs"])


def _wrapped(paragraph: str) -> list[str]:
    return textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def page(rows: Sequence[Row], data: dict[str, Any], picture: str = PICTURE) -> str:
    """The page, beside a picture of that name."""
    machine, jdk = data["machine"], data["jdk"]
    programs = "; ".join(
        f"{one['role']}: {one['name']}, {one['threads']} thread{'s' if one['threads'] != 1 else ''}, "
        f"{one['iterations']:,} iterations a run"
        for one in data["programs"]
    )
    failed = [run for row in rows for run in row.runs if run.failed]
    lines = [
        "# What sampling costs, and what it yields",
        "",
        *_wrapped(
            "This is the evaluation of the separate-thread experiment, done again. Every run does the same "
            "work: without an agent, with walks in the signal handler of the sampled thread "
            "(same-thread), with walks of a halted thread from another one (separate-thread), the "
            "same of threads that CPU-time timers put into a queue (queued), and with walks of a thread "
            "that runs on (unstopped, crashes contained). All have "
            "-XX:+DebugNonSafepoints. Times are those of the whole process."
        ),
        "",
        *_wrapped(
            f"JDK {jdk['version']}, walker {data['walker']}, {machine['cores']} cores, "
            f"Linux {machine['kernel']}, {data['started'][:10]}; one run of each kind to warm up, then "
            f"{data['repetitions']} in random order, seed {data['seed']}. {programs}. The table gives mean "
            "and standard deviation, and in brackets the difference from no agent."
        ),
        "",
        figures(rows),
        "",
        f"![wall and user time, samples]({picture})",
        "",
        *_wrapped(
            "Wrong are traces that are not the thread's own by its shadow stack (reference/stress.md), of "
            "those judged: of the runs that warm up, which are instrumented for it and whose times do not "
            "count. A thread that runs on has no such truth. "
            "A trace is broken when it does not end in a frame that is at the bottom of a thread. "
            "Same-thread traces of the program say which frames these are. Intervals are Wilson's at 95 %."
        ),
        "",
        f"Again (about {units.duration_text(data['took'])} on that machine):",
        "",
        f"    {_command(rows, data)}",
    ]
    if failed:
        lines += ["", "Runs that do not count for times:", ""]
        for run in failed:
            at = f" {units.interval_text(run.interval_ns)}" if run.interval_ns else ""
            name = f"{run.role} {run.workload}, {run.condition}{at}"
            lines.append(f"- {name}, #{run.repetition}: {run.failed}")
    return "\n".join(lines) + "\n"
