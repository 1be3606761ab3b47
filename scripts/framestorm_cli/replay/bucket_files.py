"""What a run leaves of a bucket: its artifacts, each with text and sidecar, and its report."""

import shutil
from pathlib import Path

from framestorm_cli.findings.records import Json
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Recorded
from framestorm_cli.triage import report
from framestorm_cli.triage.buckets import Bucket

KEPT = 5  # artifacts copied per bucket; the others stay where they were found


def write(bucket: Bucket, out: Path, toolchain: Toolchain, jvm: Json, recorded: Recorded) -> None:
    """Below `out`; says in the bucket where. Raises OSError."""
    folder = out / "artifacts"
    folder.mkdir(exist_ok=True)
    rest = [finding for finding in bucket.best_first() if finding is not bucket.best]
    for number, finding in enumerate([bucket.best, *rest][:KEPT]):
        source = finding.artifact
        if source is None or not source.exists():
            continue
        name = bucket.id if number == 0 else f"{bucket.id}-{number + 1}"
        artifact = folder / f"{name}{source.suffix}"
        text = artifact.with_suffix(".txt")
        text.write_text(finding.text, encoding="utf-8")
        for kind in {source.suffix, ".bin"}:  # beside a kept sample is what it comes to as an input
            shutil.copyfile(source.with_suffix(kind), artifact.with_suffix(kind))
        replaying.write_sidecar(artifact.with_suffix(".bin"), finding.signature, jvm, recorded)
        if number == 0:
            bucket.artifact, bucket.text = artifact, text
            bucket.replay_command = replaying.command_line(toolchain, artifact)
    reports = out / "reports"
    reports.mkdir(exist_ok=True)
    bucket.report = reports / f"{bucket.id}.md"
    bucket.report.write_text(report.markdown(bucket, jvm, str(recorded.outside)), encoding="utf-8")
