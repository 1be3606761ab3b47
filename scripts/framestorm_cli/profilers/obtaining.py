"""Where a known profiler's library comes from: its jar, by Maven or by hand, once, into the cache folder."""

import os
import platform
import shutil
import tempfile
import zipfile
from pathlib import Path

from framestorm_cli.base import files, packages, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.profilers.table import Known, Released

ENVIRONMENT = "FRAMESTORM_PROFILERS"
_MAVEN_PACKAGE = "maven"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def cached(known: Known) -> Path | None:
    """Where its library is, or will be; None when it has none for this machine."""
    member = known.released.libraries.get(platform.machine()) if known.released else None
    if member is None:
        return None
    return paths.cache() / "profilers" / f"{known.name}-{known.version}" / Path(member).name


def library(known: Known) -> Path:
    """The library of a profiler that has one; fetched first when the cache folder lacks it. Raises
    FramestormError, which says how to get it by hand."""
    library = cached(known)
    if library is None or known.released is None:
        raise FramestormError(
            f"{known.name} {known.version} has no library for {platform.machine()}: build one, and give "
            "it with --profiler FILE"
        )
    if library.exists():
        return library
    with steps.locked("profilers", f"fetching {known.name}"):
        if library.exists():
            return library
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            jar = fetched_jar(known.released, Path(scratch), _by_hand(known))
            member = known.released.libraries[platform.machine()]
            with zipfile.ZipFile(jar) as archive:
                # Only a whole one gets the library's name.
                Path(archive.extract(member, scratch)).rename(library)
    return library


def _by_hand(known: Known) -> str:
    assert known.released is not None
    return (
        f"Get {known.released.jar} ({known.released.coordinates}) on another machine and name the folder "
        f"that it is in with {ENVIRONMENT}=FOLDER, or give the library with --profiler FILE."
    )


def fetched_jar(released: Released, scratch: Path, by_hand: str) -> Path:
    """Its jar, from $FRAMESTORM_PROFILERS or by Maven into `scratch`, held to its checksum. Raises
    FramestormError."""
    own = os.environ.get(ENVIRONMENT)
    jar = (Path(own) if own else scratch) / released.jar
    if not own:
        _fetch(released, scratch, by_hand)
    if not jar.exists():
        raise FramestormError(
            f"{ENVIRONMENT}={own}: there is no {released.jar} in that folder. {by_hand}"
            if own
            else f"Maven did not copy {released.jar}. {by_hand}"
        )
    if (found := files.sha256(jar)) != released.sha256:
        raise FramestormError(
            f"{jar.name} has the SHA-256 {found}, expected was {released.sha256}: not used. {by_hand}"
        )
    return jar


def _fetch(released: Released, into: Path, by_hand: str) -> None:
    if shutil.which("mvn") is None:
        packages.ensure([_MAVEN_PACKAGE])
    steps.run_logged(
        [
            *("mvn", "--batch-mode", _COPY),
            f"-Dartifact={released.coordinates}",
            f"-DoutputDirectory={into}",
        ],
        what=f"fetching {released.coordinates} with Maven",
        log_name="maven",
        advice=f"Is Maven's repository reachable? {by_hand}",
    )
