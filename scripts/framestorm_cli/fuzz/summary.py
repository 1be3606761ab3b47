"""summary.json (docs/reference/summary.schema.json) and the summary a person reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from rich.table import Table

from framestorm_cli.base import paths
from framestorm_cli.base.live import results_console, results_table
from framestorm_cli.base.machine import Machine, machine
from framestorm_cli.base.paths import relative
from framestorm_cli.findings.finding import STATES, Signature
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz import liveness, profiler_figures
from framestorm_cli.fuzz.afl_process import AflFigures
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.profiler_figures import ProfilerFigures, ProfilerRecord
from framestorm_cli.fuzz.results import Results
from framestorm_cli.profilers import outside
from framestorm_cli.reports.schema import FORMAT, Number, Share, record, said
from framestorm_cli.triage.buckets import Bucket, Tried
from framestorm_cli.triage.report import jdk_identity

_COUNTERS = (
    "walks", "succeeded", "unmutated", "unmutated_java", "unmutated_java_succeeded", "findings",
    "executions", "contained", "halts", "places",
)  # fmt: skip
_COUNTED_BY = (
    "by_scenario", "by_mode", "by_walker", "error_codes", "unavailable", "not_judged",
)  # fmt: skip


class Figures(msgspec.Struct, forbid_unknown_fields=True):
    walks: Number
    succeeded: Annotated[int, said("Walks that gave at least one frame.", ge=0)]
    unmutated: Number
    unmutated_java: Annotated[int, said("Unmutated walks of scenarios with Java frames.", ge=0)]
    unmutated_java_succeeded: Number
    findings: Annotated[int, said("Seen, not recorded: only a handful per cause are kept.", ge=0)]
    executions: Annotated[int, said("libFuzzer executions.", ge=0)]
    contained: Annotated[int, said("Faults, hangs and ends of the process caught in a walk.", ge=0)]
    halts: Annotated[int, said("How often the world was halted.", ge=0)]
    places: Annotated[
        int,
        said("Where a halt found its victim, and where that went on to in the same halt.", ge=0),
    ]
    process_seconds: Annotated[float, said("Summed over processes, from their first walk.", ge=0)]
    walks_per_second: Annotated[float, said("walks / process_seconds.", ge=0)]
    success_share: Share | None
    unmutated_java_success_share: Share | None
    processes: Number
    deaths: Number
    edges: Annotated[
        int | None, said("Most edges of libjvm that one process covered; null without coverage.")
    ]
    rss_kb: Annotated[int, said("Largest of the processes.", ge=0)]
    startup_seconds: Annotated[float, said("Largest time from start to first walk.", ge=0)]
    by_scenario: Annotated[
        Json,
        said("Walks; unmutated_errors: how often such a walk gave which negative frame count."),
    ]
    by_mode: Json
    by_walker: Annotated[Json, said("As by_scenario; contained: walks that did not return.")]
    error_codes: Annotated[Json, said("How often the walker gave each negative frame count.")]
    unavailable: Annotated[Json, said("Scenarios this JDK cannot reach, and why.")]
    not_judged: Annotated[Json, said("Oracles that have not judged what they should, and why.")]
    profiler: Annotated[ProfilerFigures | None, said("Null without --profiler.")]


class ProcessRecord(msgspec.Struct, forbid_unknown_fields=True):
    target: str
    folder: Annotated[str, said("Below the run's folder.")]
    seed: int
    exit: Annotated[int | None, said("Negative: the signal that ended it.")]
    death: Annotated[str | None, said("How it died; null when it ended as agreed.")]
    error: Annotated[str, said("What it said when it could not start or go on; else empty.")]
    walks: Number
    seconds: Annotated[float, said("Since its first walk.")]


class VerificationRecord(msgspec.Struct, forbid_unknown_fields=True):
    status: Literal["not verified", "not reproduced", "sometimes reproduced", "reproduced"]
    tries: Annotated[int, said("Fresh JVMs `artifact` was replayed in.", ge=0)]
    reproduced: Number
    tried: Annotated[
        list[Tried],
        said(
            "Every artifact that was tried; `artifact` is a copy of the one that reproduced best."
        ),
    ]
    skipped: Annotated[str, said("Why nothing was tried.")]


class BucketRecord(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    state: Annotated[
        Literal["real", "torn", "corrupt"] | None,
        said("How far the artifact's state is from one that a thread can have; null: not known."),
    ]
    known: Annotated[
        str,
        said(
            "The known causes (corpus/crashes) that it is, or is like in another state; empty: none."
        ),
    ]
    write_ups: Annotated[
        list[str], said("Where the causes that it is are written up, below the checkout.")
    ]
    victims: Annotated[dict[str, int], said("How often it was found with which victim.")]
    signature: Signature
    merged_signatures: list[Signature]
    count: Number
    recorded: Number
    targets: list[str]
    explanation: str
    detail: str
    artifact: Annotated[str | None, said("Below the run's folder, like text and report.")]
    text: str | None
    report: str | None
    replay: Annotated[str | None, said("The exact command.")]
    reproduces: Annotated[
        bool | None,
        said(
            "Whether `artifact` showed its signature in at least 9 of 10 fresh JVMs; null: not verified."
        ),
    ]
    verification: VerificationRecord
    rechecks: Number
    rechecks_hit: Number


class OptionsRecord(msgspec.Struct):
    targets: list[str]
    seconds: float | None
    runs: int | None
    seed: int
    jobs: int
    walker: str
    scenarios: list[str]
    modes: list[str]
    jvm_args: list[str]
    corpus: list[str]
    walker_plugin: str
    profiler: ProfilerRecord | None
    strict: bool


class StateRecord(msgspec.Struct, forbid_unknown_fields=True):
    buckets: Number
    known: Number


class LivenessRecord(msgspec.Struct, forbid_unknown_fields=True):
    ok: bool
    minimum_success_share: float
    problems: list[str]


class Summary(msgspec.Struct, forbid_unknown_fields=True):
    """summary.json of `framestorm fuzz`."""

    format: Annotated[Literal[1], FORMAT]
    run: Annotated[str, said("Name of the run's folder.")]
    command: list[str]
    engine: Annotated[Literal["libfuzzer", "afl"], said("What mutated.")]
    started: Annotated[str, said("UTC, ISO 8601.")]
    seconds: Annotated[float, said("Wall time of fuzzing, JVM starts included.", ge=0)]
    exit: Annotated[
        Literal[0, 1, 2],
        said("0: nothing found, 1: findings, 2: the run is not to be believed."),
    ]
    stopped: Annotated[str, said("Why the run ended early; empty when it did not.")]
    jdk: Annotated[Json, said("jvm.json as the native side wrote it; empty: no JVM came up.")]
    machine: Machine
    options: OptionsRecord
    totals: Figures
    targets: dict[str, Figures]
    processes: list[ProcessRecord]
    afl: Annotated[
        list[AflFigures], said("What each afl-fuzz says of itself; empty with libFuzzer.")
    ]
    states: Annotated[
        dict[str, StateRecord],
        said("Buckets by state, nearest to a real one first; how many of them have known causes."),
    ]
    first_reproduced_seconds: Annotated[
        float | None,
        said(
            "From the command's start, set-up included, until a finding came back in a fresh JVM."
        ),
    ]
    buckets: Annotated[
        list[BucketRecord],
        said("Nearest to a real state first, then the most frequent; known causes behind others."),
    ]
    verification_seconds: Annotated[float, Meta(ge=0)]
    liveness: LivenessRecord
    unreadable_lines: Annotated[int, said("Damaged lines in findings.jsonl files.", ge=0)]


def _ratio(part: float, whole: float) -> float | None:
    """A profiler may have stored a sample or two that nobody asked it for."""
    return min(round(part / whole, 6), 1.0) if whole else None


def _figures(run: Run, target: str | None = None) -> Figures:
    totals = run.totals(target)
    processes = [one for one in run.processes if target in (None, one.target)]
    maps: Json = {name: totals.get(name, {}) for name in _COUNTED_BY}
    counted: Json = {name: int(totals.get(name, 0)) for name in _COUNTERS}
    fuzzed = sum(process.fuzzed for process in processes)
    return Figures(
        **counted,
        process_seconds=round(fuzzed, 3),
        walks_per_second=round(counted["walks"] / fuzzed, 1) if fuzzed else 0.0,
        success_share=_ratio(counted["succeeded"], counted["walks"]),
        unmutated_java_success_share=liveness.success_share(counted),
        processes=len(processes),
        deaths=sum(1 for process in processes if process.death is not None),
        edges=run.edges(target),
        rss_kb=int(totals.get("rss_kb", 0)),
        startup_seconds=float(totals.get("startup", 0.0)),
        profiler=profiler_figures.of(run.options.outside, totals),
        **maps,
    )


def _bucket(bucket: Bucket, out: Path) -> BucketRecord:
    verification = bucket.verification
    tried = [
        msgspec.structs.replace(one, artifact=one.artifact.removeprefix(f"{out}/"))
        for one in verification.tried
    ]
    return record(
        BucketRecord,
        bucket,
        state=bucket.state or None,
        merged_signatures=bucket.merged,
        recorded=len(bucket.findings),
        targets=sorted({finding.target for finding in bucket.findings}),
        detail=bucket.best.detail,
        artifact=relative(bucket.artifact, out),
        text=relative(bucket.text, out),
        report=relative(bucket.report, out),
        replay=bucket.replay_command or None,
        reproduces=verification.reproduces if verification.tries else None,
        verification=record(VerificationRecord, verification, tried=tried),
        rechecks=bucket.best.rechecks,
        rechecks_hit=bucket.best.rechecks_hit,
    )


def _states(buckets: Sequence[Bucket]) -> dict[str, StateRecord]:
    """How many buckets are of which state, and of how many of them the cause is known."""
    return {
        state: StateRecord(
            sum(1 for one in buckets if one.state == state),
            sum(1 for one in buckets if one.state == state and one.write_ups),
        )
        for state in STATES
    }


def of(results: Results, problems: list[str], exit_code: int, argv: list[str]) -> Summary:
    """The run as summary.json holds it."""
    run, options = results.run, results.run.options
    first = results.first_seconds
    return Summary(
        format=1,
        run=options.out.name,
        command=argv,
        engine=options.engine,  # type: ignore[arg-type]
        started=results.started,
        seconds=round(run.wall, 3),
        exit=exit_code,  # type: ignore[arg-type]
        stopped=run.stopped,
        jdk=results.jvm,
        machine=machine(),
        options=record(
            OptionsRecord,
            options,
            corpus=[str(one) for one in options.corpus],
            walker_plugin=options.outside.spec if options.outside.walker == outside.PLUGIN else "",
            profiler=profiler_figures.named(options.outside),
        ),
        totals=_figures(run),
        targets={target: _figures(run, target) for target in options.targets},
        processes=[
            record(
                ProcessRecord,
                process,
                folder=str(process.folder.relative_to(options.out)),
                death=process.death.how if process.death else None,
                error=process.setup_error,
                seconds=round(process.fuzzed, 3),
            )
            for process in run.processes
        ],
        afl=[instance.figures() for instance in run.afl],
        states=_states(results.buckets),
        first_reproduced_seconds=None if first is None else round(first, 1),
        buckets=[_bucket(bucket, options.out) for bucket in results.buckets],
        verification_seconds=round(results.verify_seconds, 3),
        liveness=LivenessRecord(not problems, liveness.MINIMUM_SUCCESS, problems),
        unreadable_lines=results.unreadable_lines,
    )


def show(results: Results, problems: list[str]) -> None:
    """The summary a person reads, to stdout."""
    console = results_console()
    run = results.run
    totals = _figures(run)
    if results.jvm:
        console.print(
            f"JDK {jdk_identity(results.jvm, arguments=False)}", markup=False, soft_wrap=True
        )
    if run.options.outside:
        walked = run.options.outside
        console.print(f"{walked.walker} {walked}", markup=False, soft_wrap=True)
    console.print(_target_table(run))
    share = totals.unmutated_java_success_share
    per_wall = totals.walks / run.wall if run.wall else 0
    lines = [
        f"{totals.walks:,} walks in {run.wall:.0f} s ({per_wall:,.0f}/s with starts, "
        f"{totals.walks_per_second:,.0f}/s per process), "
        f"{totals.success_share or 0:.1%} succeeded"
        + (f", {share:.2%} of the unmutated Java ones" if share is not None else ""),
    ]
    if totals.edges is not None:
        lines.append(f"{totals.edges:,} edges of libjvm covered")
    if totals.profiler is not None:
        lines += profiler_figures.lines(totals.profiler)
    lines += [_afl_line(instance.figures()) for instance in run.afl]
    if totals.unavailable:
        shown = "; ".join(f"{name}: {why}" for name, why in sorted(totals.unavailable.items()))
        lines.append(f"unavailable scenarios: {shown}")
    if totals.not_judged:
        shown = "; ".join(f"{name}: {why}" for name, why in sorted(totals.not_judged.items()))
        lines.append(f"oracles that have not judged what they should: {shown}")
    if totals.deaths:
        lines.append(f"processes that died: {totals.deaths}")
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


def _afl_line(figures: AflFigures) -> str:
    hangs = f", {figures.hangs:,} inputs that did not end" if figures.hangs else ""
    rate = figures.executions_per_second
    speed = f"{figures.executions:,} executions" if rate is None else f"{rate:,.0f} executions/s"
    return (
        f"AFL++ on {figures.target}: {speed}, stability "
        f"{figures.stability_percent:.2f}%, {figures.corpus:,} inputs in its queue{hangs}"
    )


def _target_table(run: Run) -> Table:
    numbers = ("walks", "walks/s", "succeeded", "unmutated Java", "findings", "processes")
    table = results_table(("target", *numbers), ("target",), box=None, pad_edge=False)
    for target in run.options.targets:
        figures = _figures(run, target)
        share = figures.unmutated_java_success_share
        table.add_row(
            target,
            f"{figures.walks:,}",
            f"{figures.walks_per_second:,.0f}",
            f"{figures.success_share or 0:.1%}",
            "-" if share is None else f"{share:.2%}",
            f"{figures.findings:,}",
            str(figures.processes),
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
        known = f" ({figures.known} of known causes)" if figures.known else ""
        parts.append(f"{figures.buckets} {state}{hint}{known}")
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
