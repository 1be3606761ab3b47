"""`framestorm gate`: its steps in their order, within its time, to an exit code.

build ──> corpus ──> coverage ──> fuzz ──> sort by replay ──> step ──> stress ──> verdict, reports
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.corpus.known import read_known
from framestorm_cli.coverage import run as coverage_command
from framestorm_cli.coverage import tables
from framestorm_cli.fuzz import run as fuzz_command
from framestorm_cli.gate import (
    changes,
    corpus_step,
    fuzz_step,
    reporting,
    shares,
    stepping_step,
    stress_step,
    subject,
)
from framestorm_cli.gate.budget import Budget
from framestorm_cli.gate.fuzz_step import Fuzzing
from framestorm_cli.gate.reporting import Outcome
from framestorm_cli.gate.shares import Reach
from framestorm_cli.gate.subject import Request, Subject
from framestorm_cli.gate.verdict import NEW, Step
from framestorm_cli.native import names
from framestorm_cli.reports import known as known_buckets
from framestorm_cli.reports.known import Known


@dataclass(frozen=True)
class Options:
    """The command line's, but for what is judged."""

    minutes: float
    jobs: int
    seed: int
    baseline: Path | None
    floor: Path | None
    changed: tuple[str, ...]
    since: str
    targets: tuple[str, ...]
    workloads: tuple[str, ...]
    corpus: tuple[Path, ...]
    jvm_args: tuple[str, ...]


class Gate:
    """One run. Raises FramestormError where a step cannot even begin; what was known by then stays."""

    def __init__(self, request: Request, base: Path | None, options: Options, out: Path) -> None:
        self._request = request
        self._base = base
        self._options = options
        self._out = out
        self.outcome = Outcome()

    def run(self) -> None:
        """Adds to the verdict step by step."""
        change, base = self._build()
        names.check_names(change.tools, self._request.walker, (), ())
        budget = Budget(self._options.minutes * 60, base is not None)
        known, self.outcome.baseline = read_known(
            self._options.baseline,
            change.tools.jdk,
            change.walker,
            profiler=change.outside.profiler,
        )
        step = self._begin("corpus")
        self.outcome.verdict.entries += corpus_step.run(change, base, self._options.jvm_args, step)
        targets = self._options.targets or fuzz_step.targets_of(change)
        self.outcome.reach = reach = self._measure(change, targets)
        self._fuzz(change, base, known, targets, reach, budget)
        self.outcome.verdict.entries += stepping_step.run(
            change,
            base,
            known,
            budget.step(),
            self._out,
            self._options.jvm_args,
            self._begin("step"),
        )
        self._stress(change, base, known, budget)

    def _begin(self, name: str) -> Step:
        steps.say(f"gate: {name}")
        step = Step(name)
        self.outcome.verdict.steps.append(step)
        return step

    def _build(self) -> tuple[Subject, Subject | None]:
        step = self._begin("build")
        began = time.monotonic()
        try:
            if self._base is not None:
                self.outcome.base = subject.prepare(
                    subject.base_request(self._base, self._request), "base"
                )
                step.lines.append(f"base: {self.outcome.base}")
            self.outcome.change = subject.prepare(self._request, "change")
            step.lines.append(f"change: {self.outcome.change}")
        except FramestormError as error:
            step.problems.append(error.message)
            raise
        finally:
            step.seconds = time.monotonic() - began
        return self.outcome.change, self.outcome.base

    def _measure(self, change: Subject, targets: tuple[str, ...]) -> Reach:
        """Shares of the targets, and the floor."""
        options = self._options
        if not change.has_coverage:
            step = self._begin("coverage")
            step.lines.append("this libjvm does not count edges: equal shares, no floor")
            return shares.equal(targets)
        step = self._begin("coverage")
        began = time.monotonic()
        base = (
            self._base if self._base is not None and (self._base / "configure").exists() else None
        )
        touched = changes.of(change.source, options.changed, base, options.since)
        path = options.floor or _floor_of(change)
        floor = tables.read_floor(path) if path is not None else {}
        try:
            reach = shares.measure(
                change.tools, targets, touched, floor, self._out / "coverage", options.jobs
            )
        except FramestormError as error:
            step.problems.append(f"the seeds could not be walked: {error.message}")
            return shares.equal(targets)
        finally:
            step.seconds = time.monotonic() - began
        step.lines.append(f"the seeds reach {reach.edges:,} edges; floor of {len(floor)} functions")
        step.lines += reporting.touched_lines(touched, reach)
        step.problems += [f"fell below its floor: {line}" for line in reach.fallen]
        return reach

    def _fuzz(
        self, change: Subject, base: Subject | None, known: Known, targets: tuple[str, ...],
        reach: Reach, budget: Budget,
    ) -> None:  # fmt: skip
        options = self._options
        step = self._begin("fuzz")
        seconds, of_base = budget.fuzz(), budget.fuzz_base()
        if seconds * options.jobs < budget.LEAST_PER_TARGET * len(targets):
            step.problems.append(
                f"{seconds:.0f} s are left for {len(targets)} targets: give more --minutes"
            )
            return
        fuzzing_options = Fuzzing(
            targets, reach.weights, options.seed, options.jobs, options.corpus, options.jvm_args
        )
        run = fuzz_step.run(change, fuzzing_options, seconds, self._out / "fuzz", step)
        for_change = budget.sort()
        if not any(process.walks for process in run.processes):
            return  # the step's problems say why; there is nothing to compare
        entries = fuzz_step.sort(
            run, change, base, known, reach.touched, for_change, self._out, step
        )
        self.outcome.verdict.entries += entries
        if base is None:
            return
        for_base = budget.sort_base()
        folder = self._out / "fuzz-base"
        other = fuzz_step.run(base, fuzzing_options, of_base, folder, step)
        seen = Known({**known.notes, **{s: "" for e in entries for s in (e.signature,)}})
        # What could not be called fixed is no danger to anybody.
        unjudged = Step("fixed")
        self.outcome.verdict.entries += fuzz_step.of_base(
            fuzz_step.sort(other, base, change, seen, (), for_base, self._out, unjudged)
        )
        step.lines += unjudged.lines
        if unjudged.problems:
            step.lines.append(f"{len(unjudged.problems)} buckets of the base could not be compared")

    def _stress(self, change: Subject, base: Subject | None, known: Known, budget: Budget) -> None:
        options = self._options
        step = self._begin("stress")
        if change.stressed is not None and self._options.baseline is None:
            known, _ = read_known(None, change.stressed, change.walker, known)
        self.outcome.verdict.entries += stress_step.run(
            change, base, known, budget.stress(), options.seed, self._out, options.jvm_args,
            options.workloads or stress_step.WORKLOADS, step,
        )  # fmt: skip


def _floor_of(change: Subject) -> Path | None:
    """A debug build has other edges, and functions where a release build has none: a floor of its own."""
    variant = change.tools.jdk.label.partition("-")[2]
    own = coverage_command.FLOOR.with_name(f"coverage-floor-{variant}.json")
    if own.exists():
        return own
    return coverage_command.FLOOR if change.tools.jdk.has_asan else None


def gate_command(
    *, jdk_source: Path | None, jdk: Path | None, walker_plugin: str | None, profiler: str | None,
    walker: str, variant: str,
    boot_jdk: Path | None, base: Path | None, minutes: float, jobs: int | None, seed: int | None,
    out: Path | None, targets: tuple[str, ...], corpus: tuple[Path, ...], baseline: Path | None,
    write_baseline: Path | None, floor: Path | None, changed: tuple[str, ...], since: str,
    workloads: tuple[str, ...], jvm_args: tuple[str, ...],
) -> int:  # fmt: skip
    """Exit code 0: nothing new, 1: something new, 2: could not judge."""
    request = Request(jdk_source, jdk, walker_plugin, profiler, variant, boot_jdk, walker)
    subject.check(request)
    if base is not None:
        subject.base_request(base, request)
    names.known("target", targets, list(paths.TARGETS))
    fuzz_command.check_corpus(corpus)
    folder = run_folder.prepare(out, "gate")
    options = Options(
        minutes, jobs or os.cpu_count() or 1, seed if seed is not None else int(time.time()), baseline,
        floor, changed, since, targets, workloads, tuple(entry.resolve() for entry in corpus), jvm_args,
    )  # fmt: skip
    began = time.monotonic()
    gate = Gate(request, base, options, folder)
    interrupted = False
    try:
        with steps.termination_interrupts():
            gate.run()
    except FramestormError as error:
        step = gate.outcome.verdict.steps[-1] if gate.outcome.verdict.steps else Step("start")
        if not gate.outcome.verdict.steps:
            gate.outcome.verdict.steps.append(step)
        if error.message not in step.problems:
            step.problems.append(error.message)
    except KeyboardInterrupt:
        interrupted = True
        gate.outcome.verdict.steps.append(Step("end", problems=["interrupted before its end"]))
    if write_baseline is not None:
        # What is there now is known from here on.
        found = [e.signature for e in gate.outcome.verdict.entries if e.step != "corpus"]
        known_buckets.add(write_baseline, found)
        steps.say(f"known buckets: {paths.shown(write_baseline)}")
    reporting.write(gate.outcome, folder, time.monotonic() - began, sys.argv[1:])
    for problem in gate.outcome.verdict.problems:
        FramestormError(problem).show()
    return 2 if interrupted and not gate.outcome.verdict.of(NEW) else gate.outcome.verdict.exit
