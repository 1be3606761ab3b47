"""summary.json of a stress run (docs/reference/stress-summary.schema.json), and what a person reads."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console
from rich.table import Table

from framestorm_cli.base import paths
from framestorm_cli.base.machine import machine
from framestorm_cli.base.paths import relative
from framestorm_cli.findings.records import Json
from framestorm_cli.reports.model import ERROR, FAILED, PASSED, Check, Report, issue_of
from framestorm_cli.stress import figures, units
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.figures import Figures
from framestorm_cli.stress.findings import StressBucket
from framestorm_cli.stress.outcome import Outcome
from framestorm_cli.stress.rates import achieved
from framestorm_cli.stress.verdicts import CLEAN, UNJUDGED, VERDICTS
from framestorm_cli.triage.buckets import Bucket

FORMAT = 1


def to_json(outcome: Outcome, argv: Sequence[str]) -> Json:
    """The run as summary.json holds it; valid by the schema."""
    run, plan = outcome.run, outcome.plan
    return {
        "format": FORMAT,
        "run": run.out.name,
        "command": list(argv),
        "started": _started(outcome),
        "seconds": round(run.wall, 3),
        "exit": outcome.exit,
        "stopped": run.stopped,
        "problems": outcome.problems,
        "jdk": {
            "home": plan.jdk_home,
            "version": plan.jdk_version,
            "libjvm_build_id": plan.libjvm_build_id,
        },
        "machine": machine(),
        "plan": {
            "cells": len(plan.cells),
            "seconds": plan.seconds,
            "iterations": plan.iterations,
            "limit": plan.limit,
            "seed": plan.seed,
            "threads": plan.threads,
            "parallel": plan.parallel,
            "jvm_args": list(plan.jvm_args),
        },
        "totals": figures.to_json(figures.of(run.finished)),
        "cells": [_cell(result) for result in outcome.results],
        "buckets": [_bucket(one, run.out) for one in outcome.found.buckets],
        "unreadable_lines": outcome.found.unreadable_lines,
        "sanitizer_reports_elsewhere": outcome.found.reports_elsewhere,
    }


def _started(outcome: Outcome) -> str:
    first = min((one.started for one in outcome.run.finished), default=None)
    moment = datetime.now(UTC) if first is None else datetime.fromtimestamp(first, UTC)
    return moment.isoformat(timespec="seconds")


def _cell(result: CellResult) -> Json:
    stats = result.stats
    return {
        **asdict(result.cell),
        "interval": result.cell.interval,
        "number": result.number,
        "folder": result.folder,
        "seed": result.seed,
        "verdict": result.verdict,
        "why": result.why,
        "rate_too_low": result.slow,
        "exit": result.exit,
        "seconds": result.seconds,
        "cpu_seconds": result.cpu_seconds,
        "samples": result.samples,
        "rate_hz": achieved(stats),
        "rate_asked_hz": 1e9 / result.cell.interval_ns,
        "latency_ns": stats.get("latency_ns") or {},
        "threads": stats.get("threads") or {},
        "work": result.work,
        "figures": figures.to_json(figures.of([result])),
    }


def _bucket(one: StressBucket, out: Path) -> Json:
    bucket = one.bucket
    return {
        "id": bucket.id,
        "state": bucket.state or None,
        "write_ups": list(bucket.write_ups),
        "victims": bucket.victims,
        "signature": bucket.signature.to_json(),
        "merged_signatures": [signature.to_json() for signature in bucket.merged],
        "count": bucket.count,
        "known": one.known,
        "explanation": one.bucket.explanation,
        "detail": one.bucket.best.detail,
        "cells": [result.number for result in one.cells],
        "report": relative(one.bucket.report, out),
        "repro": relative(one.repro, out),
        "files": [relative(file, out) for file in one.files],
    }


def validate(summary: Any) -> None:
    """Raises jsonschema.ValidationError when `summary` is not what the schema says."""
    jsonschema.validate(
        summary, json.loads(paths.STRESS_SUMMARY_SCHEMA.read_text(encoding="utf-8"))
    )


def to_report(outcome: Outcome, argv: Sequence[str]) -> Report:
    """For JUnit and SARIF. A cell with known buckets alone has passed."""
    plan = outcome.plan
    new_in: dict[int, list[StressBucket]] = {}
    known_in: dict[int, list[StressBucket]] = {}
    for one in outcome.found.buckets:
        for result in one.cells:
            (known_in if one.known else new_in).setdefault(result.number, []).append(one)
    checks = [
        _check(one, new_in.get(one.number, []), known_in.get(one.number, []))
        for one in outcome.results
    ]
    return Report(
        command="stress",
        run=outcome.out.name,
        exit=outcome.exit,
        started=_started(outcome),
        seconds=outcome.run.wall,
        argv=argv,
        checks=checks,
        issues=[
            issue_of(one.bucket, outcome.out, known=one.known) for one in outcome.found.buckets
        ],
        problems=outcome.problems,
        properties={
            "jdk": f"{plan.jdk_version} {plan.jdk_home}",
            "libjvm_build_id": plan.libjvm_build_id,
            "seed": str(plan.seed),
        },
    )


def _check(result: CellResult, new: list[StressBucket], known: list[StressBucket]) -> Check:
    message = details = ""
    outcome = PASSED
    if result.verdict == UNJUDGED or result.slow:
        outcome, message = ERROR, result.why or f"rate too low: {result.slow}"
    elif new:
        outcome = FAILED
        message = "; ".join(one.bucket.title for one in new)
        details = "\n".join(line for one in new for line in _described(one.bucket))
    elif known:
        message = "known: " + "; ".join(str(one.bucket.signature) for one in known)
    return Check(
        group=result.cell.workload,
        name=f"{result.cell}",
        seconds=result.seconds,
        outcome=outcome,
        message=message,
        details=details,
        properties={
            "seed": str(result.seed),
            "samples": str(result.samples),
            "verdict": result.verdict,
            "command": result.command_line,
        },
    )


def show(outcome: Outcome, console: Console | None = None) -> None:
    """The summary a person reads, to stdout."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 140)
    run, plan = outcome.run, outcome.plan
    total = figures.of(run.finished)
    console.print(f"JDK {plan.jdk_version} ({plan.jdk_home})", markup=False, soft_wrap=True)
    console.print(_table(outcome))
    lines = [
        f"{total.samples:,} walks in {len(run.finished)} of {len(plan.cells)} cells, "
        f"{units.duration_text(run.wall)}"
        + (f" ({run.resumed} cells were there already)" if run.resumed else "")
        + (f"; {total.ok_share:.1%} gave a trace" if total.ok_share is not None else ""),
        f"walks that did not return: {total.crashes}; cells that died: {total.cell_crashes}",
    ]
    if total.lost:
        most = sorted(total.lost.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{count:,} {cause}" for cause, count in most if count)
        lines.append(f"lost samples: {shown or 'none'}")
    if broken := {name: (m, b) for name, (m, b) in total.checks.items() if b}:
        shown = ", ".join(f"{name} {b:,} of {m:,}" for name, (m, b) in broken.items())
        lines.append(f"checks broken: {shown}")
    if outcome.found.unreadable_lines:
        lines.append(f"unreadable lines in findings: {outcome.found.unreadable_lines}")
    if outcome.found.reports_elsewhere:
        lines.append(f"sanitizer reports outside walks: {outcome.found.reports_elsewhere:,}")
    lines += ["", *_bucket_lines(outcome)]
    lines.append(f"report: {paths.shown(outcome.out / 'report.html')}")
    lines += [f"NOT TO BE BELIEVED: {problem}" for problem in outcome.problems]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _table(outcome: Outcome) -> Table:
    """One line for each workload and mode; what differs in one line is in the report."""
    table = Table(box=None, pad_edge=False)
    for name in ("workload", "sampled"):
        table.add_column(name)
    for name in ("walks", "per running s", "traces", "p99", "findings"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    groups = figures.by(outcome.results, "workload", "walker", "mode", "interval_ns", "gc", "jit")
    for group in sorted(groups.values(), key=lambda one: (one[0].cell.workload, one[0].number)):
        total = figures.of(group)
        table.add_row(
            group[0].cell.workload,
            group[0].cell.settings,
            f"{total.samples:,}",
            _rate(total) + ("!" if any(one.slow for one in group) else ""),
            "-" if total.ok_share is None else f"{total.ok_share:.1%}",
            _latency(group),
            f"{total.findings:,}",
            _verdicts(group),
        )
    return table


def _rate(total: Figures) -> str:
    return "-" if total.rate is None else f"{total.rate:,.0f}"


def _latency(group: list[CellResult]) -> str:
    """The worst of their walkers' p99."""
    found = [
        float(one["p99"])
        for result in group
        for one in (result.stats.get("latency_ns") or {}).values()
        if one.get("count")
    ]
    return units.nanoseconds_text(max(found)) if found else "-"


def _verdicts(group: list[CellResult]) -> str:
    seen = [result.verdict for result in group]
    if len(seen) == 1:
        return seen[0]
    return ", ".join(f"{seen.count(v)} {v}" for v in VERDICTS if v in seen) or CLEAN


def _bucket_lines(outcome: Outcome) -> list[str]:
    if not outcome.found.buckets:
        return ["nothing found"]
    lines = []
    new, known = outcome.found.new, [one for one in outcome.found.buckets if one.known]
    for head, group in (("findings", new), ("known findings", known)):
        if not group:
            continue
        lines += [f"{head}: {len(group)} bucket{'s' if len(group) > 1 else ''}", ""]
        for one in group:
            bucket = one.bucket
            times = f"{bucket.count:,} time{'s' if bucket.count > 1 else ''}"
            lines.append(f"{bucket.title}  ({times}, {len(one.cells)} cells)")
            lines += [*(f"     {line}" for line in _described(bucket)), ""]
    return lines


def _described(bucket: Bucket) -> list[str]:
    return [bucket.explanation, *bucket.about, bucket.replay_command]
