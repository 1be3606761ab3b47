"""What looks for planted bugs: each a way to spend a budget of one core on a JDK, with the findings by when.

Every run starts from framestorm's seeds, in its own folder, on a JDK that has at most one planted bug.
"""

import random
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm_cli.base import paths
from framestorm_cli.detect import walker_tests
from framestorm_cli.detect.looking import Looked, Task, Timed
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.fuzz import afl, results
from framestorm_cli.fuzz.following import Following
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import jvm_modes, processes
from framestorm_cli.native import walkers as walker_table
from framestorm_cli.native.toolchain import NATIVE, Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.step import run as stepping
from framestorm_cli.stress import agent, compiling, workloads
from framestorm_cli.triage import collecting

_CELL = 10.0  # seconds of a stress run for each workload: shorter, and JVMs do little but start
_STRESS_GRACE = 180.0  # seconds that a stress run may take beyond its time
_ROUND = 0.5  # seconds of stepping with an event, at least (kShortestRound, native/step.cpp)
_LOOK = 0.5  # seconds between looks at what was found
_STOPPED = "detected"


@dataclass(frozen=True)
class Contestant:
    """`variant` of the JDK that it looks on. `replays`: whether its findings have artifacts that replay.
    `hears`: whether it would have noticed a finding at all, where it has fewer oracles than framestorm.
    `jvm_args`: of the JVMs that it fuzzes or steps, and of those that replay what it found. `parts`: what it
    looks with, each of which can look alone and try mutants; None: it is one, and cannot."""

    name: str
    what: str
    variant: str
    look: Callable[[Task], Looked]
    replays: bool = True
    hears: Callable[[Finding], bool] = lambda _: True
    jvm_args: tuple[str, ...] = ()
    parts: Callable[[Toolchain, Sequence[str]], tuple[str, ...]] | None = None


def _targets(tools: Toolchain, walkers: Sequence[str]) -> tuple[str, ...]:
    table = walker_table.table(tools.program(NATIVE))
    return tuple(table.usable_targets(tools.jdk.libjvm, ",".join(walkers))[0])


def _scenarios(tools: Toolchain, walkers: Sequence[str]) -> tuple[str, ...]:
    """None for walkers that do not step."""
    table = walker_table.table(tools.program(NATIVE))
    return tuple(table.names["scenarios"]) if _sampling(table, walkers) else ()


def _fuzz(task: Task, **more: Any) -> Looked:
    """`more`: of FuzzOptions."""
    if more.get("engine") == "afl":
        afl.ensure(task.tools)
    targets = task.parts or _targets(task.tools, task.walkers)
    if not targets:
        return Looked(asked=False)
    given = {"jvm_args": task.jvm_args, "mutants": task.mutants, **more}
    options = FuzzOptions(
        targets, task.seconds, None, task.seed, 1, task.out, ",".join(task.walkers), **given
    )  # fmt: skip
    began = time.monotonic()
    found: list[Timed] = []
    following = Following(task.symbolizer)
    last = 0.0

    def watch(run: Run) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _LOOK:
            return
        last = now
        new = following.new(run)
        found.extend(Timed(now - began, one) for one in new)
        if any(map(task.wanted, new)):
            run.stopped = _STOPPED

    run = Fuzzer(task.tools, options).fuzz(watch)
    for process in run.processes:
        every = results.findings_of(process, task.tools, task.symbolizer)
        late = every[following.taken(process) :]
        ended = process.ended_at or time.monotonic()
        found.extend(Timed(ended - began, one) for one in late)
    problem = "; ".join(f"{target}: {why}" for target, why in run.unable.items())
    walks = sum(process.walks for process in run.processes)
    return Looked(found, walks, problem if not walks else "")


def _baseline(task: Task, method: str) -> Looked:
    """Without framestorm's seeds: what they reach is not the method's own."""
    start = task.out / "start"
    start.mkdir()
    (start / "plain.txt").write_text("framestorm-input 1\nscenario c1\n", encoding="utf-8")
    return _fuzz(task, unguided=True, baseline=method, corpus=(start,))


def _sampling_walkers(task: Task) -> tuple[str, ...]:
    return _sampling(walker_table.table(task.tools.program(NATIVE)), task.walkers)


def _sampling(table: walker_table.Table, walkers: Sequence[str]) -> tuple[str, ...]:
    """Those that walk threads where they are; none: who needs such a walker finds nothing."""
    return tuple(name for name in walkers if table.walkers[name].samples)


def _step(task: Task, *, with_events: bool = False) -> Looked:
    names = _sampling_walkers(task)
    if not names:
        return Looked(asked=False)
    events = walker_table.table(task.tools.program(NATIVE)).names["events"][1:]
    further = [part for name in events for part in ("--event", name)] if with_events else []
    scenarios = task.parts
    if with_events and not scenarios:
        # Each event has its round in each: of more scenarios than there is time for, the seed chooses.
        every = _scenarios(task.tools, task.walkers)
        some = min(len(every), max(1, int(task.seconds / (_ROUND * (1 + len(events))))))
        scenarios = tuple(random.Random(task.seed).sample(every, some))
    done = stepping.run(
        task.tools, task.out, task.seconds, scenarios, names, task.jvm_args, outside.NONE, task.symbolizer,
        further, task.mutants,
    )  # fmt: skip
    walked = done.results.counts.walked if done.results else 0
    found = [Timed(one.t, one) for one in done.findings]
    # A mutant may have ended each process before its scenario was over.
    looked = walked or found or task.mutants
    return Looked(found, walked, "" if looked else "; ".join(done.problems))


def _stress(task: Task, *options: str) -> Looked:
    names = _sampling_walkers(task)
    if not names:
        return Looked(asked=False)
    command: list[str | Path] = [
        paths.SCRIPTS / "framestorm", "stress", "--jdk", task.tools.jdk.home, "--out", task.out / "stress",
        "--duration", f"{task.seconds:.0f}s", "--seed", str(task.seed), "--walker", "+".join(names),
        *options,
    ]  # fmt: skip
    every = workload_names(task.tools.jdk)
    some = min(len(every), max(1, int(task.seconds / _CELL)))
    for name in random.Random(task.seed).sample(every, some):
        command += ["--workload", name]
    process = processes.start(command, task.out)
    try:
        process.wait(task.seconds + _STRESS_GRACE)
    except subprocess.TimeoutExpired:
        return Looked(problem=f"stress did not end, see {task.out / 'log.txt'}")
    finally:
        processes.end(process, grace=10)
    summary = records.read_json(task.out / "stress" / "summary.json")
    if not summary:
        return Looked(problem=f"stress ended with {process.returncode}, see {task.out / 'log.txt'}")
    cells = summary["cells"]
    each = task.seconds / max(1, len(cells))
    when: dict[Signature, float] = {}
    for number, cell in enumerate(cells):
        for finding in collecting.of_process(
            task.out / "stress" / cell["folder"] / agent.OUT, task.symbolizer
        ):
            when.setdefault(finding.signature, each * number + finding.t)
    looked = Looked(walks=sum(int(cell["samples"]) for cell in cells))
    for bucket in summary["buckets"]:
        signature = Signature.from_json(bucket["signature"])
        seconds = when.get(signature, task.seconds)
        looked.found.append(Timed(seconds, Finding(kind=signature.kind, signature=signature)))
    return looked


def workload_names(jdk: Jdk) -> list[str]:
    """Of the built-in ones. Raises FramestormError."""
    return [one.name for one in workloads.built_in(jdk.home / "bin" / "java", compiling.build(jdk))]


def _baseline_sampling(task: Task) -> Looked:
    return _stress(task, "--mode", "same-thread", "--interval", "100us", "--no-truth")


def _dies(finding: Finding) -> bool:
    """What is noticed by who only looks whether the process lives."""
    return finding.signature.kind in ("fault", "process_death", "vm_error", "hang")


# What replays looks on one build: the method is what differs, and a bug takes one libjvm.
CONTESTANTS = {
    one.name: one
    for one in (
        Contestant("libfuzzer", "`fuzz`, guided by coverage", "sanitized", _fuzz, parts=_targets),
        Contestant("libfuzzer-unguided", "`fuzz` without coverage's feedback", "sanitized",
                   lambda task: _fuzz(task, unguided=True)),
        Contestant("libfuzzer-z", "`fuzz`, guided, with ZGC", "sanitized", _fuzz,
                   jvm_args=jvm_modes.GCS["z"], parts=_targets),
        Contestant("libfuzzer-plain", "`fuzz` on the build without sanitizers", "plain", _fuzz),
        Contestant("afl", "`fuzz --engine afl`", "sanitized", lambda task: _fuzz(task, engine="afl")),
        Contestant("step", "`step`, all scenarios", "sanitized", _step, parts=_scenarios),
        Contestant("step-events", "`step` with all events, scenarios chosen by the seed", "sanitized",
                   lambda task: _step(task, with_events=True), parts=_scenarios),
        Contestant("step-events-z", "the same with ZGC", "sanitized",
                   lambda task: _step(task, with_events=True), jvm_args=jvm_modes.GCS["z"], parts=_scenarios),
        Contestant("walker-tests", "the added walkers' own tests, which look at nothing else", "plain",
                   walker_tests.look, replays=False, parts=walker_tests.programs),
        Contestant("stress", "`stress`, workloads chosen by the seed", "plain", _stress, replays=False),
        Contestant("stress-no-truth", "the same without ground truth", "plain",
                   lambda task: _stress(task, "--no-truth"), replays=False),
        Contestant("offsets", "random offsets of sp and fp, as JEP 435's tests make them; deaths only",
                   "sanitized", lambda task: _baseline(task, "offsets"), hears=_dies),
        Contestant("faulty-reads", "reads that fault, as java-profiler injects them; deaths only",
                   "sanitized", lambda task: _baseline(task, "faulty-reads"), hears=_dies),
        Contestant("sampling", "sampling the same every 0.1 ms, deaths only", "plain", _baseline_sampling,
                   replays=False, hears=_dies),
    )
}  # fmt: skip
