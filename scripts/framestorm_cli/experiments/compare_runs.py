"""The runs of a comparison, one after the other, each as `framestorm fuzz` makes it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.experiments.series import Measured, Planned, distinct
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding
from framestorm_cli.fuzz import results
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.triage.buckets import Bucket, into_buckets


def plan(
    targets: Sequence[str], engines: Sequence[str], repetitions: int, seed: int
) -> Iterator[Planned]:
    """All runs: guided and unguided in turns, each kind first every other time, so that what changes on
    the machine meanwhile meets both. Both of a turn have the same seed, other turns have others."""
    for repetition in range(1, repetitions + 1):
        for target in targets:
            for engine in engines:
                for guided in (True, False) if repetition % 2 else (False, True):
                    # A run's second process has the next seed, its third the one after that.
                    yield Planned(engine, target, guided, repetition, seed + 1000 * repetition)


@dataclass
class Done:
    """A run that was made, and its findings by when they were found."""

    measured: Measured
    findings: list[tuple[float, Finding]]


def take_in(
    planned: Planned, run: Run, toolchain: Toolchain, symbolizer: Symbolizer, corpus: Path
) -> Done:
    """What a run with one lane left behind; `corpus`: the inputs that its engine kept."""
    reached: list[tuple[float, list[int]]] = []
    findings: list[tuple[float, Finding]] = []
    before = 0.0
    for process in run.processes:
        reached += [(before + t, edges) for t, edges in records.read_reached(process.folder)]
        for finding in results.findings_of(process, toolchain, symbolizer):
            died = finding.signature.kind == "process_death"
            findings.append((before + (process.fuzzed if died else finding.t), finding))
        before += process.fuzzed
    measured = Measured(
        **asdict(planned),
        seconds=round(before, 3),
        walks=sum(process.walks for process in run.processes),
        processes=len(run.processes),
        kept=sum(1 for _ in corpus.iterdir()) if corpus.is_dir() else 0,
        edges=distinct(reached),
    )
    return Done(measured, findings)


def into_common_buckets(done: Sequence[Done]) -> list[Bucket]:
    """Buckets over all runs, so that one cause is the same bucket in each; fills in the runs' series."""
    found = into_buckets(finding for one in done for _, finding in one.findings)
    home = {id(finding): bucket.id for bucket in found for finding in bucket.findings}
    for one in done:
        one.measured.buckets = distinct((t, [home[id(finding)]]) for t, finding in one.findings)
    return found
