"""A fuzz run for JUnit and SARIF: a target is a check, a bucket an issue."""

from collections.abc import Sequence

from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz.results import Results
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.reports.model import ERROR, FAILED, PASSED, Check, Report, issue_of


def to_report(results: Results, problems: Sequence[str], code: int, argv: Sequence[str]) -> Report:
    """`problems` and `code` are the run's, as in summary.json."""
    run = results.run
    return Report(
        command="fuzz",
        run=run.options.out.name,
        exit=code,
        started=results.started,
        seconds=run.wall,
        argv=argv,
        checks=[_check(results, target) for target in run.options.targets],
        issues=[
            issue_of(one, run.options.out, detail=f"{one.best.detail} ({one.verification})".strip())
            for one in results.buckets
        ],
        problems=problems,
        properties=_properties(results.jvm, run.options),
    )


def _properties(jvm: Json, options: FuzzOptions) -> dict[str, str]:
    found = {
        "jdk": f"{jvm.get('version', '')} {jvm.get('home', '')}".strip(),
        "libjvm_build_id": str(jvm.get("libjvm_build_id", "")),
        "seed": str(options.seed),
        options.outside.walker: str(options.outside),
    }
    return {name: value for name, value in found.items() if value}


def _check(results: Results, target: str) -> Check:
    run = results.run
    totals = run.totals(target)
    walks = int(totals.get("walks", 0))
    seconds = sum(process.fuzzed for process in run.processes if process.target == target)
    own = [
        one for one in results.buckets if any(finding.target == target for finding in one.findings)
    ]
    outcome, message, details = PASSED, "", ""
    if target in run.unable or not walks:
        outcome, message = ERROR, run.unable.get(target, "no walks")
    elif own:
        outcome = FAILED
        message = "; ".join(one.title for one in own)
        details = "\n".join(
            "\n".join([f"{one.id}: {one.explanation}", *one.about, one.replay_command])
            for one in own
        )
    return Check(
        run.options.engine, target, seconds, outcome, message, details, {"walks": str(walks)}
    )
