"""The gate's fuzzing: all targets for their shares, then what was found is sorted."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.fuzz import liveness, results
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.live import Progress
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.gate.crossing import Crossing
from framestorm_cli.gate.subject import Subject
from framestorm_cli.gate.verdict import FIXED, NEW, UNCHANGED, Entry, Step
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.reports.known import Known
from framestorm_cli.triage import buckets as triage_buckets
from framestorm_cli.triage import expectations

# Fewer walks of a target say nothing. The slowest one makes as many in two seconds on one core.
ENOUGH_WALKS = 5_000
# Scenarios that a JVM cannot have, as against those that it ought to.
_BY_DESIGN = re.compile(r"needs JDK \d+|this collector has no ")


@dataclass(frozen=True)
class Fuzzing:
    """What both sides are fuzzed with. `corpus`: beside the seeds."""

    targets: tuple[str, ...]
    weights: Mapping[str, float]
    seed: int
    jobs: int
    corpus: tuple[Path, ...]
    jvm_args: tuple[str, ...]


def targets_of(subject: Subject) -> tuple[str, ...]:
    table = walkers.table(subject.tools.program(NATIVE))
    return tuple(table.usable_targets(subject.tools.jdk.libjvm, subject.walker)[0])


def run(subject: Subject, fuzzing: Fuzzing, seconds: float, out: Path, step: Step) -> Run:
    """Fuzzes; why that cannot be believed are the step's problems."""
    began = time.monotonic()
    options = FuzzOptions(
        targets=fuzzing.targets,
        seconds=seconds,
        runs=None,
        seed=fuzzing.seed,
        jobs=fuzzing.jobs,
        out=out,
        walker=subject.walker,
        jvm_args=fuzzing.jvm_args,
        corpus=(paths.SEEDS, *fuzzing.corpus),
        outside=subject.outside,
        weights=fuzzing.weights,
    )
    out.mkdir(parents=True, exist_ok=True)
    # A base may die of each fault that the change has fixed: what it did not find makes nothing new.
    enough = ENOUGH_WALKS if subject.what == "change" else 1
    with Progress() as progress:
        fuzzer = Fuzzer(subject.tools, options)
        fuzzer.fuzz(progress)
        done = fuzzer.make_up(enough, seconds, progress)
    if done.stopped == "interrupted":
        raise KeyboardInterrupt
    totals = done.totals()
    step.lines.append(
        f"{subject.what}: {int(totals.get('walks', 0)):,} walks in {done.wall:.0f} s, "
        f"{len(totals.get('by_scenario', {}))} scenarios"
        + (f", {edges:,} edges" if (edges := done.edges()) is not None else "")
    )
    names = walkers.table(subject.tools.program(NATIVE)).names
    found = problems(done, names["scenarios"], enough)
    step.problems += [f"{subject.what}: {line}" for line in found]
    step.seconds += time.monotonic() - began
    return done


def problems(done: Run, scenarios: Sequence[str], enough: int) -> list[str]:
    """Why a run cannot be judged by: what makes any run unbelievable, fewer walks of a target than `enough`,
    and scenarios that were never walked."""
    found = liveness.problems(done)
    if done.stopped:
        found.append(done.stopped)
    for target, walks in done.short_of(enough).items():
        found.append(f"{target} made {walks:,} walks only, {enough:,} are needed")
    totals = done.totals()
    missing = totals.get("unavailable", {})
    for name, why in missing.items():
        if not _BY_DESIGN.match(why):
            found.append(f"scenario {name} is not available: {why}")
    walked = totals.get("by_scenario", {})
    never = [s for s in scenarios if s not in missing and not walked.get(s, {}).get("walks")]
    if never and walked:
        found.append(f"never walked: {', '.join(never)}")
    return found


def sort(
    done: Run,
    here: Subject,
    there: Subject | None,
    known: Known,
    touched: Sequence[str],
    seconds: float,
    out: Path,
    step: Step,
) -> list[Entry]:
    """What a run found. `touched`: functions that the change touches."""
    began = time.monotonic()
    symbolizer = Symbolizer()
    found = triage_buckets.into_buckets(results.gather(done, here.tools, symbolizer))
    crossing = Crossing(
        here,
        there,
        known,
        symbolizer,
        out,
        done.options.jobs,
        done.options.jvm_args,
        results.jvm_of(done),
        frozenset(touched),
        expectations.causes_on(here.tools.jdk.label, profiler=here.outside.profiler),
    )
    entries = crossing.sort(found, seconds, float(done.totals().get("startup", 2.0)), step)
    step.lines.append(
        f"{here.what}: {len(found)} buckets, {sum(1 for e in entries if e.kind == NEW)} of them new"
        if here.what == "change"
        else f"{here.what}: {len(found)} buckets"
    )
    step.seconds += time.monotonic() - began
    return entries


def of_base(entries: list[Entry]) -> list[Entry]:
    """What the base's run says: what is new there as against the change is fixed by it."""
    for entry in entries:
        if entry.kind == NEW:
            entry.kind = FIXED
            entry.id = f"base-{entry.id}"
    return [entry for entry in entries if entry.kind in (FIXED, UNCHANGED)]
