"""From the processes of a run to its buckets: triage, verification, artifacts and reports."""

import shutil
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
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.triage import collecting, report
from framestorm_cli.triage.buckets import Bucket

KEPT = 5  # artifacts copied per bucket; the others stay below work/


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
    for bucket in results.buckets:
        _write(bucket, run, toolchain, results.jvm)
    return results


def _write(bucket: Bucket, run: Run, toolchain: Toolchain, jvm: Json) -> None:
    """Copies a bucket's artifacts with text and sidecar, and writes its report."""
    out = run.options.out
    folder = out / "artifacts"
    folder.mkdir(exist_ok=True)
    recorded = Recorded(None, run.options.jvm_args, run.options.outside)
    rest = [finding for finding in bucket.best_first() if finding is not bucket.best]
    for number, finding in enumerate([bucket.best, *rest][:KEPT]):
        source = finding.artifact
        if source is None or not source.exists():
            continue
        name = bucket.id if number == 0 else f"{bucket.id}-{number + 1}"
        artifact = folder / f"{name}.bin"
        shutil.copyfile(source, artifact)
        text = artifact.with_suffix(".txt")
        text.write_text(finding.text, encoding="utf-8")
        replaying.write_sidecar(artifact, finding.signature, jvm, recorded)
        if number == 0:
            bucket.artifact, bucket.text = artifact, text
            bucket.replay_command = replaying.command_line(toolchain, artifact)
    reports = out / "reports"
    reports.mkdir(exist_ok=True)
    bucket.report = reports / f"{bucket.id}.md"
    bucket.report.write_text(
        report.markdown(bucket, jvm, str(run.options.outside)), encoding="utf-8"
    )
