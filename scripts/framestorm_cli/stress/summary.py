"""summary.json of a stress run (docs/reference/stress-summary.schema.json), and what a person reads."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from rich.table import Table

from framestorm_cli.base import paths
from framestorm_cli.base.live import results_console, results_table
from framestorm_cli.base.machine import Machine, machine
from framestorm_cli.base.paths import relative
from framestorm_cli.findings.finding import Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.reports.model import ERROR, FAILED, PASSED, Check, Report, issue_of
from framestorm_cli.reports.schema import FORMAT, Number, record, said
from framestorm_cli.stress import distortion, figures, side_by_side, truth_figures, units
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.distortion import Distortion
from framestorm_cli.stress.figures import Figures
from framestorm_cli.stress.findings import StressBucket
from framestorm_cli.stress.outcome import Outcome
from framestorm_cli.stress.rates import achieved
from framestorm_cli.stress.side_by_side import Line
from framestorm_cli.stress.verdicts import CLEAN, UNJUDGED, VERDICTS
from framestorm_cli.triage.buckets import Bucket


class JdkRecord(msgspec.Struct, forbid_unknown_fields=True):
    home: str
    version: str
    libjvm_build_id: str


class PlanRecord(msgspec.Struct, forbid_unknown_fields=True):
    cells: Number
    seconds: Annotated[float | None, said("Sampling of each cell.")]
    iterations: int | None
    limit: Annotated[float, said("Wall time after which a cell hangs.")]
    seed: int
    threads: str
    parallel: Number
    jvm_args: list[str]


class CellRecord(msgspec.Struct, forbid_unknown_fields=True):
    workload: str
    walker: Annotated[str, said("Several, joined by +, took turns.")]
    mode: Literal["same-thread", "separate-thread", "queued", "unstopped", "self"]
    interval_ns: Number
    gc: str
    jit: str
    repetition: Number
    plain: Annotated[bool, said("Without the run's ground truth, to see what that changes.")]
    interval: str
    number: Annotated[int, said("In the order of the run.", ge=1)]
    folder: Annotated[str, said("Below the run's folder.")]
    seed: int
    verdict: Annotated[
        Literal[
            "clean",
            "short traces",
            "findings",
            "crash",
            "hang",
            "program harmed",
            "could not judge",
        ],
        said("`short traces`: nothing was found, but some traces end early."),
    ]
    why: str
    rate_too_low: Annotated[
        str, said("In what the rate falls short of what is promised; else empty.")
    ]
    exit: Annotated[int | None, said("Negative: the signal; null: was killed.")]
    seconds: Annotated[float, said("Wall time.", ge=0)]
    cpu_seconds: Annotated[float | None, said("User and system time of the process.")]
    samples: Number
    rate_hz: Annotated[float | None, said("Samples per second of a running thread.")]
    rate_asked_hz: float
    latency_ns: Annotated[Json, said("By walker: count, p50, p99, p99.9, max.")]
    threads: Json
    work: Annotated[Json, said("What the workload says it did.")]
    figures: Figures


class BucketRecord(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    state: Annotated[
        Literal["real", "torn", "corrupt"] | None,
        said("How far the sample's state is from one that a thread can have."),
    ]
    write_ups: Annotated[
        list[str], said("Where the known causes (corpus/crashes) that it is are written up.")
    ]
    victims: Annotated[dict[str, int], said("How often it was found with a thread in which state.")]
    signature: Signature
    merged_signatures: list[Signature]
    count: Number
    known: Annotated[bool, said("On the list of --known.")]
    explanation: str
    detail: str
    cells: Annotated[list[int], said("Numbers of the cells it was seen in; repro runs the first.")]
    report: str
    repro: str
    files: list[str]


class Summary(msgspec.Struct, forbid_unknown_fields=True):
    """summary.json of `framestorm stress`."""

    format: Annotated[Literal[1], FORMAT]
    run: Annotated[str, said("Name of the run's folder.")]
    command: list[str]
    started: Annotated[str, said("UTC, ISO 8601: the first finished cell's start.")]
    seconds: Annotated[
        float, said("Wall time of this run; of a resumed one, of its last part.", ge=0)
    ]
    exit: Annotated[
        Literal[0, 1, 2],
        said("0: nothing (new) found, 1: findings, 2: not to be believed, see problems."),
    ]
    stopped: Annotated[str, said("Why the run ended early; empty when it did not.")]
    problems: list[str]
    jdk: JdkRecord
    machine: Machine
    plan: PlanRecord
    totals: Figures
    cells: list[CellRecord]
    buckets: list[BucketRecord]
    side_by_side: Annotated[list[Line], said("Of a run with --profiler.")]
    distortion: Annotated[
        list[Distortion], said("Of a run with --truth: cells beside the same ones without it.")
    ]
    unreadable_lines: Number
    sanitizer_reports_elsewhere: Annotated[int, said("Of sanitizers, outside walks.", ge=0)]


def of(outcome: Outcome, argv: Sequence[str]) -> Summary:
    """The run as summary.json holds it."""
    run, plan = outcome.run, outcome.plan
    return Summary(
        format=1,
        run=run.out.name,
        command=list(argv),
        started=_started(outcome),
        seconds=round(run.wall, 3),
        exit=outcome.exit,  # type: ignore[arg-type]
        stopped=run.stopped,
        problems=outcome.problems,
        jdk=JdkRecord(plan.jdk_home, plan.jdk_version, plan.libjvm_build_id),
        machine=machine(),
        plan=record(PlanRecord, plan, cells=len(plan.cells)),
        totals=figures.of(run.finished),
        cells=[_cell(result) for result in outcome.results],
        buckets=[_bucket(one, run.out) for one in outcome.found.buckets],
        side_by_side=outcome.beside,
        distortion=outcome.distortion,
        unreadable_lines=outcome.found.unreadable_lines,
        sanitizer_reports_elsewhere=outcome.found.reports_elsewhere,
    )


def _started(outcome: Outcome) -> str:
    first = min((one.started for one in outcome.run.finished), default=None)
    moment = datetime.now(UTC) if first is None else datetime.fromtimestamp(first, UTC)
    return moment.isoformat(timespec="seconds")


def _cell(result: CellResult) -> CellRecord:
    stats = result.stats
    return record(
        CellRecord,
        result,
        **asdict(result.cell),
        interval=result.cell.interval,
        rate_too_low=result.slow,
        rate_hz=achieved(stats),
        rate_asked_hz=result.cell.rate_asked,
        latency_ns=stats.get("latency_ns") or {},
        threads=stats.get("threads") or {},
        figures=figures.of([result]),
    )


def _bucket(one: StressBucket, out: Path) -> BucketRecord:
    bucket = one.bucket
    return record(
        BucketRecord,
        bucket,
        state=bucket.state or None,
        merged_signatures=bucket.merged,
        known=one.known,
        detail=bucket.best.detail,
        cells=[result.number for result in one.cells],
        report=relative(bucket.report, out),
        repro=relative(one.repro, out),
        files=[relative(file, out) for file in one.files],
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
    slow = [f"rate too low: {result.slow}"] if result.slow else []
    if result.verdict == UNJUDGED or (slow and not new):
        outcome, message = ERROR, result.why or slow[0]
    elif new:
        outcome = FAILED
        message = "; ".join([*(one.bucket.title for one in new), *slow])
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


def show(outcome: Outcome) -> None:
    """The summary a person reads, to stdout."""
    console = results_console()
    run, plan = outcome.run, outcome.plan
    total = figures.of(run.finished)
    console.print(f"JDK {plan.jdk_version} ({plan.jdk_home})", markup=False, soft_wrap=True)
    console.print(_table(outcome))
    if outcome.beside:
        console.print()
        console.print(side_by_side.table(outcome.beside))
        console.print()
    lines = [
        f"{total.samples:,} walks in {len(run.finished)} of {len(plan.cells)} cells, "
        f"{units.duration_text(run.wall)}"
        + (f" ({run.resumed} cells were there already)" if run.resumed else "")
        + (f"; {total.ok_share:.1%} gave a trace" if total.ok_share is not None else ""),
        f"walks that did not return: {total.walk_crashes}; cells that died: {total.cell_crashes}",
    ]
    if total.lost:
        shown = ", ".join(f"{count:,} {cause}" for cause, count in total.lost.items() if count)
        lines.append(f"lost samples: {shown or 'none'}")
    if total.truth is not None:
        lines += truth_figures.lines(total.truth)
        lines += distortion.lines(outcome.distortion)
    if broken := [(name, one) for name, one in total.checks.items() if one.broken]:
        shown = ", ".join(f"{name} {one.broken:,} of {one.made:,}" for name, one in broken)
        lines.append(f"checks broken: {shown}")
    if outcome.found.unreadable_lines:
        lines.append(f"unreadable lines in findings: {outcome.found.unreadable_lines}")
    if outcome.found.reports_elsewhere:
        lines.append(f"sanitizer reports outside walks: {outcome.found.reports_elsewhere:,}")
    lines += ["", *_bucket_lines(outcome)]
    lines.append(f"report: {paths.shown(outcome.out / 'report.html')}")
    if outcome.beside:
        lines.append(f"profilers: {paths.shown(outcome.out / side_by_side.PAGE)}")
    head = "NOT TO BE BELIEVED" if outcome.exit == 2 else "NOT AS PROMISED"
    lines += [f"{head}: {problem}" for problem in outcome.problems]
    if outcome.problems and outcome.found.new:
        lines.append("what was found stands")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _table(outcome: Outcome) -> Table:
    """One line for each workload and mode; what differs in one line is in the report."""
    numbers = ("walks", "per running s", "traces", "p99", "findings")
    words = ("workload", "sampled", "verdict")
    table = results_table((*words[:2], *numbers, *words[2:]), words, box=None, pad_edge=False)
    groups = figures.by(
        outcome.results, "workload", "walker", "mode", "interval_ns", "gc", "jit", "plain"
    )
    for group in sorted(groups.values(), key=lambda one: (one[0].cell.workload, one[0].number)):
        total, p99 = figures.of(group), figures.worst_p99(group)
        table.add_row(
            group[0].cell.workload,
            group[0].cell.settings,
            f"{total.samples:,}",
            ("-" if total.rate_hz is None else f"{total.rate_hz:,.0f}")
            + ("!" if any(one.slow for one in group) else ""),
            "-" if total.ok_share is None else f"{total.ok_share:.1%}",
            "-" if p99 is None else units.nanoseconds_text(p99),
            f"{total.findings:,}",
            ", ".join(filter(None, (_verdicts(group), total.cut, total.at_continuations))),
        )
    return table


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
