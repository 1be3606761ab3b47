"""`framestorm step`: stepping, triage, replay, tables and the page."""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich import box

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.live import results_console, results_table
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.finding import Finding
from framestorm_cli.findings.records import read_json
from framestorm_cli.native import jvm_modes, processes, toolchain
from framestorm_cli.native.names import known
from framestorm_cli.native.toolchain import NATIVE, STEP, Toolchain
from framestorm_cli.native.walkers import table
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.replay import bucket_files
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.replay.verifying import Verifier
from framestorm_cli.step import program, results
from framestorm_cli.step.results import VERDICTS, Results, Tally
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import collecting, expectations
from framestorm_cli.triage.buckets import Bucket, Verification

PAGE = "step.html"
_DATA = "step.json"
_JVM = "jvm.json"
_MISSED_SHOWN = 5  # pieces of code
_GRACE = 120.0  # seconds that a JVM and its last victim may take beyond --seconds


def step_command(
    *,
    scenarios: tuple[str, ...],
    workload: str | None,
    renaissance: Path | None,
    also: tuple[Path, ...],
    walkers: tuple[str, ...],
    events: tuple[str, ...],
    seconds: float,
    gc: str,
    jit: str,
    verify: int,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    walker_plugin: str | None,
    profiler: str | None,
) -> int:
    """Returns the exit code: 0 nothing found, 1 findings, 2 the run is not to be believed."""
    from framestorm_cli.step import page  # noqa: PLC0415 (jinja2 takes long to load)

    if workload and scenarios:
        raise FramestormError("--workload is instead of --scenario: give one of them")
    if also and not workload:
        raise FramestormError("--also is for the samples of a program: it goes with --workload")
    if profiler and events:
        raise FramestormError(
            "--event and --profiler do not go together: events are judged by traces"
        )
    folder = run_folder.prepare(out, "step")
    tools = toolchain.prepare(jdk)
    names = table(tools.program(NATIVE)).names
    known("scenario", scenarios, names["scenarios"])
    known("walker", walkers, names["walkers"])
    known("event", events, names["events"][1:])
    outside.check_walker(",".join(walkers), walker_plugin, profiler)
    walked = outside.given(walker_plugin, profiler, tools.jdk)
    walkers = walkers or ((walked.walker,) if walked.profiler else ())
    stepped = program.find(workload, renaissance, tools.jdk, seconds) if workload else None
    own = stepped.jvm_args if stepped else ()
    given = (*jvm_modes.GCS[gc], *jvm_modes.JITS[jit], *jvm_args)  # scenarios' own, too, in replay
    if stepped:
        steps.say(f"stepping {stepped.name}")
    further = [part for name in events for part in ("--event", name)]
    further += stepped.native_arguments if stepped else []
    symbolizer = Symbolizer()
    done = run(
        tools, folder, seconds, scenarios, walkers, (*own, *given), walked, symbolizer, further
    )  # fmt: skip
    again = "a kept sample: a program's way is never quite the same" if stepped else ""
    unverified = again if verify else "--verify 0"
    found = _buckets(done.findings, tools, symbolizer, folder, verify, given, walked, unverified)
    made, problems = done.results, done.problems
    if made:
        made.also = [_other_run(other, folder) for other in also]
        page.write(made, str(tools.jdk), folder / PAGE)
        show(made)
    _show_buckets(found)
    click.echo(f"everything: {paths.shown(folder)}")
    for problem in problems:
        FramestormError(f"not to be believed: {problem}").show()
    return 2 if problems else 1 if found else 0


def _other_run(other: Path, folder: Path) -> Results:
    """Raises FramestormError."""
    builds = {read_json(one / _JVM).get("libjvm_build_id") for one in (other, folder)}
    if len(builds) > 1:
        raise FramestormError(f"--also {other} is of another JDK")
    return results.read(other / _DATA)


@dataclass(frozen=True)
class Stepped:
    """What it came to. `results`: None when no JVM has come to the end of a scenario. `problems`: why not to
    believe it. `deaths`: of these, JVMs that died, or that could not end a scenario."""

    results: Results | None
    findings: list[Finding]
    problems: list[str]
    deaths: list[str]


def run(
    tools: Toolchain, folder: Path, seconds: float, scenarios: Sequence[str], walkers: Sequence[str],
    jvm_args: Sequence[str], walked: OutsideWalker, symbolizer: Symbolizer,
    further: Sequence[str] = (), mutants: Path | None = None,
) -> Stepped:  # fmt: skip
    """Steps in a process of its own; no scenarios, or walkers: all. A process that dies is followed by
    another one for the scenarios that are left, in a folder of its own. `further`: arguments that say which
    events, or which program instead. `mutants`: the file of counts of a libjvm that has some
    (detect/canary.py); a process that one has ended is followed by another for its scenario, too. Raises
    FramestormError."""
    steps.say(f"stepping on {tools.jdk} for {seconds:.0f} s")
    began = time.monotonic()
    jvms: list[_Ended] = []
    left, over, goes_on = tuple(scenarios), 0.0, True
    while goes_on:
        own = folder / f"jvm-{len(jvms) + 1}" if jvms else folder
        command = [*processes.jvm_arguments(tools, own, jvm_args)]
        command += ["--seconds", str(seconds - over)]
        command += [part for name in left for part in ("--scenario", name)]
        command += [part for name in walkers for part in ("--walker", name)]
        command += [*walked.arguments(own), *further]
        if mutants:
            command += ["--mutants", str(mutants)]
        ended = _run(tools, command, own, seconds - over, symbolizer, again=mutants is not None)
        for finding in ended.findings:
            finding.t += over
        jvms.append(ended)
        over = time.monotonic() - began
        left = left if ended.left is None else ended.left
        goes_on = bool(ended.left) and over < seconds
        if goes_on:
            why = f"{ended.death}; " if ended.death else ""
            steps.say(f"{why}going on with {left[0]} in another JVM")
    deaths = [one.death for one in jvms if one.death]
    parts = [one.results for one in jvms if one.results]
    made = results.merged(parts) if len(parts) > 1 else parts[0] if parts else None
    if made and len(jvms) > 1:
        results.write(made, folder / _DATA)
    problems = [*deaths, *(made.problems(tuple(scenarios)) if made else [])]
    if left:
        problems.append(f"not stepped: {', '.join(left)}")
    return Stepped(made, [found for one in jvms for found in one.findings], problems, deaths)


@dataclass(frozen=True)
class _Ended:
    """A process. `death`: how, and in which scenario; empty: it did not die. `left`: scenarios that are left
    by then; None: it had begun with none."""

    results: Results | None
    findings: list[Finding]
    death: str = ""
    left: tuple[str, ...] | None = ()


def _run(
    tools: Toolchain, command: list[str], folder: Path, seconds: float, symbolizer: Symbolizer, *,
    again: bool,
) -> _Ended:  # fmt: skip
    """Steps, and says so scenario by scenario. `again`: whether a scenario in which it died is left. Raises
    FramestormError."""
    process = processes.start([tools.program(STEP), "run", *command], folder)
    try:
        code: int | None = process.wait(seconds + _GRACE)
    except subprocess.TimeoutExpired:
        processes.write_stuck_report(process.pid, folder / "stuck.txt")
        code = None
    finally:
        processes.end(process)
    log, data = folder / "log.txt", folder / _DATA
    findings = collecting.of_process(folder, symbolizer)
    if code == processes.EXIT_DONE:
        return _Ended(results.read(data), findings)
    written = results.read(data) if data.exists() else None
    begun = tuple(written.left) if written else ()
    made = written if written and written.scenarios else None
    if code == processes.EXIT_NOT_REUSABLE:
        return _Ended(made, findings, left=begun)
    if code == processes.EXIT_SETUP and not begun:
        raise FramestormError(processes.own_words(log))
    died = processes.death_of(code, folder)
    place = f" in scenario {begun[0]}" if begun else ""
    if died is None:
        death = f"stepping ended{place}: {steps.tail(log, 1).strip()}"
    else:
        found = collecting.of_death(died, None, symbolizer)
        found.victim = begun[0] if begun else ""
        findings.append(found)
        where = f" in {found.signature.frames[0]}" if found.signature.frames else ""
        how = "" if code is None else f", exit code {code if code > 0 else 128 - code}"
        death = f"the JVM died{place}: {found.clause}{where}{how}; see {paths.shown(died.hs_err or log)}"
    return _Ended(made, findings, death, begun[0 if again else 1 :] if begun else None)


def _buckets(
    findings: list[Finding],
    tools: Toolchain,
    symbolizer: Symbolizer,
    folder: Path,
    tries: int,
    jvm_args: tuple[str, ...],
    walked: OutsideWalker,
    unverified: str,
) -> list[Bucket]:
    """With what is known of each, its replays, and its report. `unverified`: why there are no replays."""
    found = triage_buckets.into_buckets(findings)
    causes = expectations.causes_on(tools.jdk.label)
    for bucket in found:
        expectations.name(bucket, causes)
        bucket.verification = Verification(skipped=unverified)
    if found and not unverified:
        verifier = Verifier(
            tools,
            symbolizer,
            folder / "work" / "verify",
            tries,
            os.cpu_count() or 1,
            jvm_args,
            walked,
            confirm=lambda bucket: bool(bucket.write_ups),
        )
        steps.say(f"stepping to {len(found)} findings again, in fresh JVMs")
        checked = verifier.verify(found, lambda *_: None)
        for bucket in found:
            bucket.shown, bucket.verification = checked[bucket.id]
        shutil.rmtree(folder / "work", ignore_errors=True)
    jvm = read_json(folder / _JVM)
    for bucket in found:
        bucket_files.write(bucket, folder, tools, jvm, Recorded(None, jvm_args, walked))
    return found


def show(made: Results) -> None:
    """The table: by section of code, how each walker did."""
    console = results_console()
    counts = made.counts
    console.print(
        f"{counts.steps:,} instructions in {made.seconds:.0f} s "
        f"({counts.steps / made.seconds:,.0f}/s), {made.distinct:,} distinct; "
        f"{counts.walked:,} walked by each walker, {counts.judged_share:.1%} of them judged, "
        f"{counts.from_outside:,} of them from another thread too; "
        f"{counts.excursions:,} calls in native code ran at full speed",
        soft_wrap=True,
    )
    if made.program:
        hit, missed = made.sampled()
        share = f"{hit / (hit + missed.total()):.1%}" if hit or missed else "none"
        console.print(
            f"{made.program.windows:,} windows of the program; {share} of its {hit + missed.total():,} "
            "samples in the code cache are at instructions that were stepped"
            + ("; the program ended before its time" if made.program.ended else ""),
            soft_wrap=True,
        )
        for code, samples in missed.most_common(_MISSED_SHOWN):
            part = samples / (hit + missed.total())
            console.print(f"  not stepped: {part:.1%} in {code}", soft_wrap=True)
        if len(missed) > _MISSED_SHOWN:
            console.print(f"  and in {len(missed) - _MISSED_SHOWN:,} others: {PAGE}, {_DATA}")
        if missed:
            hit, missed = made.sampled(by_shape=True)
            console.print(
                f"{hit / (hit + missed.total()):.1%} where an instruction of a method's code counts that was "
                "stepped elsewhere with other registers and numbers",
                soft_wrap=True,
            )
            for code, samples in missed.most_common(_MISSED_SHOWN):
                part = samples / (hit + missed.total())
                console.print(f"  not so: {part:.2%} in {code}", soft_wrap=True, markup=False)
    if made.profiler:
        stored = "?" if made.profiler.stored is None else f"{made.profiler.stored:,}"
        console.print(
            f"the profiler stored {stored} samples; its traces are not judged, only what its handler does",
            soft_wrap=True,
        )
    missing = {name: one.unavailable for name, one in made.scenarios.items() if one.unavailable}
    for name, why in missing.items():
        console.print(f"not stepped: {name}: {why}", soft_wrap=True)
    for event, one in made.injected.items():
        console.print(f"{event}: {one.injected:,} injected, {one.effective:,} took effect")
    for name, scenario in made.scenarios.items():
        for event, why in scenario.without().items():
            console.print(f"{event} took no effect: {name}: {why}", soft_wrap=True)
    titles = ("code", "instructions", "walker", *VERDICTS[:5], "errors")
    shown = results_table(titles, ("code", "walker", "errors"), box=box.SIMPLE)
    tables = sorted(made.sections.items())
    tables += [(f"during {event}", walkers) for event, walkers in sorted(made.events.items())]
    distinct = made.distinct_by_section
    for section, walkers in tables:
        rows = [section, f"{distinct[section]:,}" if distinct[section] else ""]
        for name, tally in walkers.items():
            errors = " ".join(f"{code}: {count:,}" for code, count in tally.errors.items())
            shown.add_row(*rows, name, *_cells(tally), errors)
            rows = ["", ""]
    console.print(shown)


def _cells(tally: Tally) -> list[str]:
    judged = tally.walks - tally.unjudged
    counts = [getattr(tally, verdict) for verdict in VERDICTS[:5]]
    return [f"{count / judged:.2%}" if count and judged else "" for count in counts]


def _show_buckets(found: list[Bucket]) -> None:
    for bucket in found:
        click.echo(f"{bucket.id}  {bucket.title}  ({bucket.count:,} times; {bucket.verification})")
        if bucket.known:
            click.echo(f"     {bucket.known}")
        if bucket.best.detail:
            click.echo(f"     {bucket.best.detail}")
        if bucket.replay_command:
            click.echo(f"     {bucket.replay_command}")
    click.echo(f"{len(found)} findings" if found else "nothing found")
