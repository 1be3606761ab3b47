"""What is known of a JDK before the gate runs: a list of buckets, and the crashes of the corpus."""

from pathlib import Path

from framestorm_cli import crashes, paths
from framestorm_cli.jdk import Jdk
from framestorm_cli.reports import known as known_buckets
from framestorm_cli.reports.known import Known
from framestorm_cli.triage.signature import Signature

FOLDER = paths.CHECKOUT / "corpus" / "known"


def default_file(jdk: Jdk) -> Path:
    """What the gate takes for known without --baseline."""
    return FOLDER / f"{jdk.label}.json"


def read_known(baseline: Path | None, jdk: Jdk) -> tuple[Known, Path | None]:
    """The known buckets, and the file they are from; None: there is none for this JDK. Raises
    FramestormError for a file that is none."""
    path = baseline
    if path is None and default_file(jdk).exists():
        path = default_file(jdk)
    notes: dict[Signature, str] = dict(known_buckets.read(path).notes) if path is not None else {}
    for folder in crashes.folders():
        for label, (status, signature) in crashes.read_expected(folder).items():
            if status == "open" and signature and label.split("-")[0] == str(jdk.feature):
                notes.setdefault(signature, f"corpus/crashes/{folder.name}")
    return Known(notes), path
