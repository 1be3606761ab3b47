"""`framestorm triage DIR`."""

from pathlib import Path

import click

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.findings.records import Json, read_json
from framestorm_cli.jdks import jdk
from framestorm_cli.triage import buckets, collecting, expectations, report
from framestorm_cli.triage.buckets import Verification
from framestorm_cli.triage.expectations import Cause


def triage_command(folder: Path, out: Path | None) -> int:
    """Prints the buckets of a folder. Exit code 0: none, 1: some."""
    collected = collecting.of_folder(folder, Symbolizer())
    for message in collected.unreadable:
        steps.say(f"cannot be read: {message}")
    if collected.files == 0:
        raise FramestormError(
            f"nothing below {folder} is a framestorm run, an hs_err file or a sanitizer log"
        )
    found = buckets.into_buckets(collected.findings)
    target = None
    if out is not None:
        target = run_folder.prepare(out, "triage")
    for bucket in found:
        bucket.verification = Verification(skipped="triage does not replay")
        shown = bucket.best.artifact
        jvm = read_json(shown.parents[1] / "jvm.json") if shown is not None else {}
        expectations.name(bucket, _causes_on(jvm))
        click.echo(f"{bucket.title}  ({bucket.count:,} times)")
        for line in (bucket.explanation, *bucket.about):
            click.echo(f"     {line}")
        if bucket.best.detail:
            click.echo(f"     {bucket.best.detail}")
        for source in sorted({str(c.artifact) for c in bucket.findings if c.artifact}):
            click.echo(f"     {paths.shown(Path(source))}")
        if target is not None:
            (target / f"{bucket.id}.md").write_text(report.markdown(bucket, jvm), encoding="utf-8")
        click.echo()
    noun = "bucket" if len(found) == 1 else "buckets"
    click.echo(f"{len(collected.findings)} reports in {collected.files} files, {len(found)} {noun}")
    if target is not None:
        click.echo(f"reports: {paths.shown(target)}")
    return 1 if found else 0


def _causes_on(jvm: Json) -> list[Cause]:
    """The known causes of the JDK that a finding was made on; none when that JDK is not here."""
    try:
        return expectations.causes_on(jdk.validate(Path(str(jvm["home"]))).label)
    except (KeyError, FramestormError):
        return []
