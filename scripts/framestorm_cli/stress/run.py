"""`framestorm stress`: options to a plan, a run, its reports, and an exit code."""

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from framestorm_cli.base import files, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.reports import junit, known, sarif, schema
from framestorm_cli.reports.known import Known
from framestorm_cli.stress import (
    findings,
    html,
    outcome,
    planning,
    runner,
    side_by_side,
    summary,
    tools,
    units,
    workloads,
)
from framestorm_cli.stress.live import StressProgress
from framestorm_cli.stress.outcome import Outcome
from framestorm_cli.stress.plan import Plan, cores
from framestorm_cli.stress.planning import Options
from framestorm_cli.stress.runner import INTERRUPTED, Runner, StressRun
from framestorm_cli.stress.tools import Tools
from framestorm_cli.stress.workloads import Workload
from framestorm_cli.triage import expectations

# What --resume may be given with: the rest is in the run's plan.
_WITH_RESUME = ("parallel", "renaissance")


def stress_command(
    *,
    jdk: Path | None,
    resume: Path | None,
    out: Path | None,
    known_file: Path | None,
    write_known: Path | None,
    parallel: int | None,
    **rest: Any,
) -> int:
    """Returns the exit code: 0 nothing (new) found, 1 findings, 2 the run is not to be believed."""
    options = Options(parallel=parallel or 1, **rest)
    already = _known(known_file, write_known)
    if resume is not None:
        _check_resume(options, jdk, out)
        folder = resume.resolve()
        plan, found, workloads = _resumed(folder, options, parallel)
    else:
        folder = run_folder.new_folder(out, "stress")
        found = tools.prepare(jdk)
        plan, workloads = planning.make(options, found)
        run_folder.check_room(folder)
        plan.write(folder)
    if plan.truth:
        found = tools.with_truth(found)
    _announce(plan, found)
    with steps.termination_interrupts(), StressProgress() as progress:
        run = Runner(plan, folder, found, workloads).run_all(progress)
    try:
        return _conclude(run, already, write_known)
    except OSError as error:
        raise FramestormError(
            f"could not write the report to {folder}: {error.strerror or error}. The "
            f"{len(run.finished)} finished cells are kept: make room, then `scripts/framestorm stress "
            f"--resume {paths.shown(folder)}`"
        ) from error


def _known(known_file: Path | None, write_known: Path | None) -> Known:
    already = known.read(known_file) if known_file is not None else known.NOTHING
    if write_known is not None and write_known.exists():
        already = Known({**known.read(write_known).notes, **already.notes})
    return already


def _check_resume(options: Options, jdk: Path | None, out: Path | None) -> None:
    default = Options()
    given = [
        one.name
        for one in fields(Options)
        if one.name not in _WITH_RESUME and getattr(options, one.name) != getattr(default, one.name)
    ]
    given += [name for name, value in (("jdk", jdk), ("out", out)) if value is not None]
    if given:
        raise FramestormError(
            f"--resume goes on with what the run was asked for; leave out {', '.join(given)}"
        )


def _resumed(
    folder: Path, options: Options, parallel: int | None
) -> tuple[Plan, Tools, dict[str, Workload]]:
    plan = Plan.read(folder)
    found = tools.prepare(Path(plan.jdk_home))
    runner.check_resumable(plan, found.jdk.version, found.build_id)
    names = list(dict.fromkeys(cell.workload for cell in plan.cells))
    renaissance = options.renaissance or (Path(plan.renaissance) if plan.renaissance else None)
    chosen = workloads.resolve(names, found.built_in, found.jdk, renaissance)
    return (replace(plan, parallel=parallel) if parallel else plan), found, chosen


def _announce(plan: Plan, found: Tools) -> None:
    each = (
        f"{units.duration_text(plan.seconds)} each"
        if plan.seconds is not None
        else f"{plan.iterations} iterations each"
    )
    at_once = f", {plan.parallel} at once" if plan.parallel > 1 else ""
    number = len(plan.cells)
    steps.say(
        f"{number} cell{'s' if number != 1 else ''} on JDK {found.jdk.version}, {each}{at_once}, "
        f"seed {plan.seed}"
    )
    if plan.parallel > cores():
        steps.say(
            f"warning: {plan.parallel} cells at once on {cores()} cores: their programs wait for each "
            "other, and wall-clock figures are not to be compared"
        )


def _conclude(run: StressRun, already: Known, write_known: Path | None) -> int:
    """Triage, reports, and the exit code."""
    symbolizer = Symbolizer()
    causes = expectations.causes_on(jdks.validate(Path(run.plan.jdk_home)).label)
    found = findings.conclude(run.finished, run.plan, run.out, already, symbolizer, causes)
    if write_known is not None:
        known.write(write_known, already.with_buckets(one.bucket for one in found.buckets))
        steps.say(f"known buckets: {paths.shown(write_known)}")
        for one in found.buckets:
            one.known = True
    judged = outcome.judge(run, found)
    _write(judged)
    summary.show(judged)
    for problem in judged.problems:
        FramestormError(problem).show()
    if run.stopped == INTERRUPTED:
        steps.say(f"go on with: scripts/framestorm stress --resume {paths.shown(run.out)}")
    return judged.exit


def _write(judged: Outcome) -> None:
    out, argv = judged.out, sys.argv[1:]
    schema.write(out / "summary.json", summary.of(judged, argv))
    if judged.beside:
        page = side_by_side.page(judged.plan, judged.beside, " ".join(argv))
        files.write_text(out / side_by_side.PAGE, page)
    report = summary.to_report(judged, argv)
    junit.write(report, out / "junit.xml")
    sarif.write(report, out / "report.sarif")
    files.write_text(out / "report.html", html.page(judged, argv))
