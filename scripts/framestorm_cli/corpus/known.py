"""What is known of a JDK before the gate runs: a list of buckets, and the crashes of the corpus."""

from collections.abc import Sequence
from pathlib import Path

import click

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Signature
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import walkers
from framestorm_cli.reports import known as known_buckets
from framestorm_cli.reports.known import Known
from framestorm_cli.triage import expectations

_ASGCT = "asgct"
FOLDER = paths.CHECKOUT / "corpus" / "known"


def default_file(jdk: Jdk) -> Path:
    """What the gate takes for known without --baseline."""
    return FOLDER / f"{jdk.label}.json"


def read_known(
    baseline: Path | None,
    jdk: Jdk,
    walker: str,
    more: Known = known_buckets.NOTHING,
    profiler: str = "",
) -> tuple[Known, Path | None]:
    """The known buckets, and the file they are from; None: there is none for this JDK. Signatures do not
    say which walker they are of: the default file, which is AsyncGetCallTrace's, and crashes of other
    walkers than those under test (`walker`, as for fuzz) or of other profilers count for nothing. Raises
    FramestormError for a file that is none."""
    tested = walkers.names(walker)
    path = baseline
    if path is None and (not tested or _ASGCT in tested) and default_file(jdk).exists():
        path = default_file(jdk)
    notes: dict[Signature, str] = dict(more.notes)
    if path is not None:
        notes |= known_buckets.read(path).notes
    for folder in expectations.folders():
        if tested and expectations.walkers_of(folder).isdisjoint(tested):
            continue
        if expectations.profiler_of(folder) != profiler:
            continue
        for label, signatures in expectations.open_signatures(folder).items():
            if label.split("-")[0] == str(jdk.feature):
                for signature in signatures:
                    notes.setdefault(signature, f"corpus/crashes/{folder.name}")
    return Known(notes), path


def learn_command(*, into: Path, summaries: tuple[Path, ...]) -> int:
    """Adds the buckets of finished runs to a list of known buckets. Raises FramestormError."""
    signatures = [one for path in summaries for one in _signatures(path)]
    number, new = known_buckets.add(into, signatures)
    click.echo(f"{number} signatures, {new} of them new: {paths.shown(into)}")
    return 0


def _signatures(path: Path) -> Sequence[Signature]:
    """Of summary.json (fuzz, stress) or gate.json, or of the run's folder."""
    files = [path / name for name in ("summary.json", "gate.json")] if path.is_dir() else [path]
    data = next((found for file in files if (found := records.read_json(file))), {})
    entries = data.get("buckets", data.get("entries"))
    if entries is None:
        raise FramestormError(f"{path} is no run's folder, summary.json or gate.json")
    return [
        Signature.from_json(one)
        for entry in entries
        for one in (entry["signature"], *entry.get("merged_signatures", ()))
    ]
