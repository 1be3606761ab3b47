"""`framestorm fuzz`: options to a run, and the run to an exit code."""

import os
import shutil
import sys
import time
from pathlib import Path

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.fuzz import afl, fuzzing, liveness, reporting, results, summary
from framestorm_cli.fuzz.fuzzing import Fuzzer
from framestorm_cli.fuzz.live import Progress
from framestorm_cli.fuzz.replays import Replays
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.native.names import check_names, known
from framestorm_cli.native.toolchain import NATIVE, Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.reports import junit, sarif, schema


def check_corpus(corpus: tuple[Path, ...]) -> None:
    for folder in corpus:
        if not folder.is_dir():
            raise FramestormError(f"corpus {folder} is not a folder")
        if not any(entry.is_file() for entry in folder.rglob("*")):
            raise FramestormError(
                f"corpus {folder} is empty: give a folder with artifacts, or leave --corpus out to "
                "start from the seeds that come with framestorm"
            )


def _usable_targets(tools: Toolchain, walker: str) -> tuple[str, ...]:
    usable, left_out = walkers.table(tools.program(NATIVE)).usable_targets(tools.jdk.libjvm, walker)
    for target, why in left_out.items():
        steps.say(f"without {target}: {why}")
    return tuple(usable)


def fuzz_command(
    *,
    targets: tuple[str, ...],
    walker: str,
    scenarios: tuple[str, ...],
    modes: tuple[str, ...],
    seconds: float | None,
    runs: int | None,
    seed: int | None,
    jobs: int | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    corpus: tuple[Path, ...],
    out: Path | None,
    walker_plugin: str | None,
    profiler: str | None,
    survey: bool,
    verify: int,
    engine: str,
) -> int:
    """Returns the exit code: 0 nothing found, 1 findings, 2 the run is not to be believed."""
    known("target", targets, list(paths.TARGETS))
    check_corpus(corpus)
    outside.check_walker(walker, walker_plugin, profiler)
    folder = run_folder.prepare(out, "fuzz")
    try:
        tools = toolchain.prepare(jdk, toolchain.FUZZING)
        if engine == "afl":
            afl.ensure(tools)
        check_names(tools, walker, scenarios, modes)
        walked = outside.given(walker_plugin, profiler, tools.jdk)
        chosen = tuple(dict.fromkeys(targets)) or _usable_targets(tools, walker)
    except BaseException:
        if not any(folder.iterdir()):
            shutil.rmtree(folder)
        raise
    options = FuzzOptions(
        targets=chosen,
        seconds=seconds if seconds is not None or runs is not None else 60.0,
        runs=runs,
        seed=seed if seed is not None else int(time.time()),
        jobs=jobs or os.cpu_count() or 1,
        out=folder,
        walker=walker or walked.walker,
        scenarios=scenarios,
        modes=modes,
        jvm_args=jvm_args,
        corpus=tuple(entry.resolve() for entry in corpus),
        outside=walked,
        strict=not survey,
        engine=engine,
    )
    limit = f"{options.runs:,} walks" if options.runs else f"{options.seconds:.0f} s"
    at_once = f", {options.jobs} processes at once" if options.jobs > 1 else ""
    by = " by AFL++" if engine == "afl" else ""
    what = f"{walked} on JDK" if walked else "JDK"
    steps.say(f"fuzzing {what} {tools.jdk.version}{by} for {limit}{at_once}, seed {options.seed}")
    fuzzer = Fuzzer(tools, options)
    replays = Replays(tools, options, verify)
    with steps.termination_interrupts():
        with Progress() as progress:

            def watch(run: fuzzing.Run) -> None:
                progress(run)
                replays(run)

            run = fuzzer.fuzz(watch)
        return _conclude(run, tools, replays)


def _conclude(run: fuzzing.Run, tools: Toolchain, replays: Replays) -> int:
    problems = liveness.problems(run)
    if run.unable and not any(process.walks for process in run.processes):
        same = set(run.unable.values())
        raise FramestormError(
            "no target could run: " + (same.pop() if len(same) == 1 else "\n".join(problems))
        )
    out = run.options.out
    try:
        found = results.conclude(run, tools, replays)
        if run.stopped.startswith("disk full"):
            problems.append(run.stopped)
        if run.stopped == "interrupted" and not found.buckets:
            problems.append("interrupted before its end: that nothing was found says nothing")
        code = 2 if problems else (1 if found.buckets else 0)
        summary.show(found, problems)
        schema.write(out / "summary.json", summary.of(found, problems, code, sys.argv[1:]))
        report = reporting.to_report(found, problems, code, sys.argv[1:])
        junit.write(report, out / "junit.xml")
        sarif.write(report, out / "report.sarif")
    except OSError as error:
        raise FramestormError(
            f"could not write the results to {out}: {error.strerror or error}. What the processes found "
            f"is below {out / 'work'}: make room, then `scripts/framestorm triage {out / 'work'} --out "
            "ELSEWHERE`"
        ) from error
    for problem in problems:
        FramestormError(problem).show()
    return code
