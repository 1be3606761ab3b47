"""From the processes of a run to its buckets: triage, verification, artifacts and reports."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from framestorm_cli.artifacts import codec
from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Finding
from framestorm_cli.findings.records import Json
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.replays import Replays
from framestorm_cli.fuzz.target_process import Process
from framestorm_cli.native import processes
from framestorm_cli.native.toolchain import NATIVE, Toolchain
from framestorm_cli.replay import bucket_files
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.triage import collecting
from framestorm_cli.triage.buckets import Bucket


@dataclass
class Results:
    """What a run comes to."""

    run: Run
    jvm: Json
    buckets: list[Bucket] = field(default_factory=list)
    verify_seconds: float = 0.0
    unreadable_lines: int = 0
    first_seconds: float | None = None  # from the command's start until a finding came back

    @property
    def started(self) -> str:
        """UTC, ISO 8601."""
        began = datetime.now(UTC) - timedelta(seconds=self.run.wall + self.verify_seconds)
        return began.isoformat(timespec="seconds")


def gather(run: Run, toolchain: Toolchain, symbolizer: Symbolizer) -> list[Finding]:
    """Every finding of every process, and every process that died."""
    return [
        finding
        for process in run.processes
        for finding in findings_of(process, toolchain, symbolizer)
    ]


def findings_of(process: Process, toolchain: Toolchain, symbolizer: Symbolizer) -> list[Finding]:
    """Every finding of a process, and its death if it died."""
    found = collecting.of_process(process.folder, symbolizer, process.target)
    if process.death is not None:
        found.append(_death(process, process.death, toolchain, symbolizer))
    for finding in found:
        finding.target, finding.seed = process.target, process.seed
    return found


def _death(
    process: Process, death: processes.Death, toolchain: Toolchain, symbolizer: Symbolizer
) -> Finding:
    data = records.read_current_input(process.folder)
    if data is None:
        return collecting.of_death(death, None, symbolizer)
    artifact = process.folder / "artifacts" / "death.bin"
    artifact.parent.mkdir(exist_ok=True)
    artifact.write_bytes(data)
    try:
        described = codec.describe(toolchain.program(NATIVE), artifact)
    except FramestormError as error:
        described = None
        steps.say(f"the input of a process that died has no text form: {error.message}")
    return collecting.of_death(death, artifact.resolve(), symbolizer, described)


def jvm_of(run: Run) -> Json:
    """jvm.json of the first process that came as far as a JVM."""
    return next(
        (jvm for p in run.processes if (jvm := records.read_json(p.folder / "jvm.json"))), {}
    )


def conclude(run: Run, toolchain: Toolchain, replays: Replays) -> Results:
    """Triage, verification by replay, artifacts and reports."""
    results = Results(run, jvm_of(run))
    results.unreadable_lines = sum(process.file.unreadable_lines for process in run.processes)
    findings = gather(run, toolchain, replays.symbolizer)
    began = time.monotonic()
    results.buckets = replays.conclude(findings, run)
    results.verify_seconds = time.monotonic() - began
    results.first_seconds = replays.first_seconds
    recorded = Recorded(None, run.options.jvm_args, run.options.outside)
    for bucket in results.buckets:
        bucket_files.write(bucket, run.options.out, toolchain, results.jvm, recorded)
    return results
