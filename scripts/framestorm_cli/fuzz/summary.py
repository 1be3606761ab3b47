"""summary.json (docs/reference/summary.schema.json) and the summary a person reads."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
from rich.console import Console
from rich.table import Table

from framestorm_cli.base import paths
from framestorm_cli.base.machine import machine
from framestorm_cli.base.paths import relative
from framestorm_cli.findings.finding import STATES
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz import liveness
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.results import Results
from framestorm_cli.triage.buckets import Bucket
from framestorm_cli.triage.report import jdk_identity

FORMAT = 1
_COUNTERS = (
    "walks", "succeeded", "unmutated", "unmutated_java", "unmutated_java_succeeded", "findings",
    "executions", "contained", "halts",
)  # fmt: skip


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def _figures(run: Run, target: str | None = None) -> Json:
    totals = run.totals(target)
    processes = [one for one in run.processes if target in (None, one.target)]
    figures: Json = {name: int(totals.get(name, 0)) for name in _COUNTERS}
    fuzzed = sum(process.fuzzed for process in processes)
    figures |= {
        "process_seconds": round(fuzzed, 3),
        "walks_per_second": round(figures["walks"] / fuzzed, 1) if fuzzed else 0.0,
        "success_share": _ratio(figures["succeeded"], figures["walks"]),
        "unmutated_java_success_share": liveness.success_share(figures),
        "processes": len(processes),
        "deaths": sum(1 for process in processes if process.death is not None),
        "edges": run.edges(target),
        "rss_kb": int(totals.get("rss_kb", 0)),
        "startup_seconds": float(totals.get("startup", 0.0)),
        "by_scenario": totals.get("by_scenario", {}),
        "by_mode": totals.get("by_mode", {}),
        "by_walker": totals.get("by_walker", {}),
        "error_codes": totals.get("error_codes", {}),
        "unavailable": totals.get("unavailable", {}),
        "not_judged": totals.get("not_judged", {}),
    }
    return figures


def _bucket(bucket: Bucket, out: Path) -> Json:
    verification = bucket.verification
    return {
        "id": bucket.id,
        "state": bucket.state or None,
        "known": bucket.known,
        "write_ups": list(bucket.write_ups),
        "victims": bucket.victims,
        "signature": bucket.signature.to_json(),
        "merged_signatures": [signature.to_json() for signature in bucket.merged],
        "count": bucket.count,
        "recorded": len(bucket.findings),
        "targets": sorted({finding.target for finding in bucket.findings}),
        "explanation": bucket.explanation,
        "detail": bucket.best.detail,
        "artifact": relative(bucket.artifact, out),
        "text": relative(bucket.text, out),
        "report": relative(bucket.report, out),
        "replay": bucket.replay_command or None,
        "reproduces": verification.reproduces if verification.tries else None,
        "verification": {
            "status": verification.status,
            "tries": verification.tries,
            "reproduced": verification.reproduced,
            "tried": [
                {
                    "artifact": _below(one.artifact, out),
                    "tries": one.tries,
                    "reproduced": one.reproduced,
                }
                for one in verification.tried
            ],
            "skipped": verification.skipped,
        },
        "rechecks": bucket.best.rechecks,
        "rechecks_hit": bucket.best.rechecks_hit,
    }


def _states(buckets: Sequence[Bucket]) -> Json:
    """How many buckets are of which state, and of how many of them the cause is known."""
    return {
        state: {
            "buckets": sum(1 for one in buckets if one.state == state),
            "known": sum(1 for one in buckets if one.state == state and one.write_ups),
        }
        for state in STATES
    }


def _below(path: str, folder: Path) -> str:
    return path.removeprefix(f"{folder}/")


def to_json(results: Results, problems: list[str], exit_code: int, argv: list[str]) -> Json:
    """The run as summary.json holds it; valid by the schema."""
    run, options = results.run, results.run.options
    began = datetime.now(UTC).timestamp() - run.wall - results.verify_seconds
    summary: Json = {
        "format": FORMAT,
        "run": options.out.name,
        "command": argv,
        "engine": options.engine,
        "started": datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        "seconds": round(run.wall, 3),
        "exit": exit_code,
        "stopped": run.stopped,
        "jdk": results.jvm,
        "machine": machine(),
        "options": {
            "targets": list(options.targets),
            "seconds": options.seconds,
            "runs": options.runs,
            "seed": options.seed,
            "jobs": options.jobs,
            "walker": options.walker,
            "scenarios": list(options.scenarios),
            "modes": list(options.modes),
            "jvm_args": list(options.jvm_args),
            "corpus": [str(folder) for folder in options.corpus],
            "walker_plugin": options.walker_plugin,
            "strict": options.strict,
        },
        "totals": _figures(run),
        "targets": {target: _figures(run, target) for target in options.targets},
        "processes": [
            {
                "target": process.target,
                "folder": str(process.folder.relative_to(options.out)),
                "seed": process.seed,
                "exit": process.exit,
                "death": process.death.how if process.death else None,
                "error": process.setup_error,
                "walks": process.walks,
                "seconds": round(process.fuzzed, 3),
            }
            for process in run.processes
        ],
        "afl": [instance.figures() for instance in run.afl],
        "states": _states(results.buckets),
        "first_reproduced_seconds": (
            None if results.first_seconds is None else round(results.first_seconds, 1)
        ),
        "buckets": [_bucket(bucket, options.out) for bucket in results.buckets],
        "verification_seconds": round(results.verify_seconds, 3),
        "liveness": {
            "ok": not problems,
            "minimum_success_share": liveness.MINIMUM_SUCCESS,
            "problems": problems,
        },
        "unreadable_lines": results.unreadable_lines,
    }
    return summary


def validate(summary: Any) -> None:
    """Raises jsonschema.ValidationError when `summary` is not what the schema says."""
    jsonschema.validate(summary, json.loads(paths.SUMMARY_SCHEMA.read_text(encoding="utf-8")))


def show(results: Results, problems: list[str], console: Console | None = None) -> None:
    """The summary a person reads, to stdout."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 140)
    run = results.run
    totals = _figures(run)
    if results.jvm:
        console.print(
            f"JDK {jdk_identity(results.jvm, arguments=False)}", markup=False, soft_wrap=True
        )
    console.print(_target_table(run))
    share = totals["unmutated_java_success_share"]
    per_wall = totals["walks"] / run.wall if run.wall else 0
    lines = [
        f"{totals['walks']:,} walks in {run.wall:.0f} s ({per_wall:,.0f}/s with starts, "
        f"{totals['walks_per_second']:,.0f}/s per process), "
        f"{totals['success_share'] or 0:.1%} succeeded"
        + (f", {share:.2%} of the unmutated Java ones" if share is not None else ""),
    ]
    if totals["edges"] is not None:
        lines.append(f"{totals['edges']:,} edges of libjvm covered")
    lines += [_afl_line(instance.figures()) for instance in run.afl]
    if totals["unavailable"]:
        shown = "; ".join(f"{name}: {why}" for name, why in sorted(totals["unavailable"].items()))
        lines.append(f"unavailable scenarios: {shown}")
    if totals["not_judged"]:
        shown = "; ".join(f"{name}: {why}" for name, why in sorted(totals["not_judged"].items()))
        lines.append(f"oracles that have not judged what they should: {shown}")
    if totals["deaths"]:
        lines.append(f"processes that died: {totals['deaths']}")
    if elsewhere := run.totals().get("sanitizer_reports_elsewhere"):
        lines.append(
            f"sanitizer reports outside walks: {elsewhere:,}, see work/*/sanitizer.log "
            "(not blamed on any input)"
        )
    lines += [
        f"{process.target} ended early and was started again: {process.setup_error}"
        for process in run.processes
        if process.setup_error and process.target not in run.unable
    ]
    if results.unreadable_lines:
        lines.append(f"unreadable lines in findings.jsonl files: {results.unreadable_lines}")
    if run.stopped:
        lines.append(f"stopped early: {run.stopped}")
    lines += ["", *_bucket_lines(results)]
    lines.append(f"everything: {paths.shown(run.options.out)}")
    lines += [f"NOT TO BE BELIEVED: {problem}" for problem in problems]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _afl_line(figures: Json) -> str:
    hangs = f", {figures['hangs']:,} inputs that did not end" if figures["hangs"] else ""
    return (
        f"AFL++ on {figures['target']}: {figures['executions_per_second']:,.0f} executions/s, stability "
        f"{figures['stability_percent']:.2f}%, {figures['corpus']:,} inputs in its queue{hangs}"
    )


def _target_table(run: Run) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("target")
    for name in ("walks", "walks/s", "succeeded", "unmutated Java", "findings", "processes"):
        table.add_column(name, justify="right")
    for target in run.options.targets:
        figures = _figures(run, target)
        share = figures["unmutated_java_success_share"]
        table.add_row(
            target,
            f"{figures['walks']:,}",
            f"{figures['walks_per_second']:,.0f}",
            f"{figures['success_share'] or 0:.1%}",
            "-" if share is None else f"{share:.2%}",
            f"{figures['findings']:,}",
            str(figures["processes"]),
        )
    return table


def _bucket_lines(results: Results) -> list[str]:
    """What a profiler's user can meet; then findings in up to three groups that are never mixed: they
    reproduce, they do not, unknown."""
    if not results.buckets:
        return ["nothing found"]
    lines = [_states_line(results.buckets)]
    if results.first_seconds is not None:
        lines.append(
            f"first came back in a fresh JVM {results.first_seconds:.0f} s after the start"
        )
    lines.append("")
    groups: dict[str, list[Bucket]] = {"reproduces": [], "seen": [], "unknown": []}
    for bucket in results.buckets:
        verification = bucket.verification
        name = "reproduces" if verification.reproduces else "seen"
        groups[name if verification.tries else "unknown"].append(bucket)
    took = f"in {results.verify_seconds:.0f} s"
    heads = {
        "reproduces": f"findings that reproduce in fresh JVMs (verified {took}): ",
        "seen": "seen, not reproduced (or not every time): ",
        "unknown": "findings that were not verified: ",
    }
    for name, group in groups.items():
        if group:
            count = f"{len(group)} bucket{'s' if len(group) != 1 else ''}"
            lines += [f"{heads[name]}{count}", ""]
            for bucket in group:
                lines += _one_bucket(bucket)
    return lines


def _states_line(buckets: Sequence[Bucket]) -> str:
    """`buckets by state: 1 real (a profiler can meet these), 2 torn, 9 corrupt (5 of known causes)`."""
    parts = []
    for state, figures in _states(buckets).items():
        hint = " (a profiler can meet these)" if state == STATES[0] else ""
        known = f" ({figures['known']} of known causes)" if figures["known"] else ""
        parts.append(f"{figures['buckets']} {state}{hint}{known}")
    return f"buckets by state: {', '.join(parts)}"


def _one_bucket(bucket: Bucket) -> list[str]:
    lines = [
        f"{bucket.title}  ({bucket.count:,} time{'s' if bucket.count > 1 else ''})",
        f"     {bucket.explanation}",
        *(f"     {line}" for line in bucket.about),
        f"     {bucket.verification}",
    ]
    if bucket.replay_command:
        lines.append(f"     {bucket.replay_command}")
    return [*lines, ""]
