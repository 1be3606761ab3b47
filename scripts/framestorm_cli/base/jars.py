"""Jars of a Maven repository: each of a pinned content, fetched by Maven or given by hand."""

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import files, packages, paths, steps
from framestorm_cli.base.errors import FramestormError

ENVIRONMENT = "FRAMESTORM_PROFILERS"  # a folder with jars, in place of Maven
_MAVEN_PACKAGE = "maven"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


@dataclass(frozen=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = field(default="", kw_only=True)

    @property
    def coordinates(self) -> str:
        plain = f"{self.group}:{self.artifact}:{self.version}"
        return f"{plain}:jar:{self.classifier}" if self.classifier else plain

    @property
    def file_name(self) -> str:
        """As Maven gives it."""
        end = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{end}.jar"


def by_hand(jar: Jar, instead: str) -> str:
    """What to do where Maven's repository cannot be reached. `instead`: what else, as in "do this"."""
    return (
        f"Get {jar.file_name} ({jar.coordinates}) on another machine and name the folder that it is in with "
        f"{ENVIRONMENT}=FOLDER, or {instead}."
    )


def kept(jar: Jar, instead: str) -> Path:
    """The jar in the cache folder; fetched first when it is not there. `instead`: see by_hand(). Raises
    FramestormError."""
    file = paths.cache() / jar.artifact / jar.file_name
    if file.exists():
        return file
    with steps.locked(jar.artifact, f"fetching {jar.coordinates}"):
        if file.exists():
            return file
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            got = fetched(jar, Path(scratch), by_hand(jar, instead))
            partial = Path(scratch) / "whole.jar"
            shutil.copyfile(got, partial)
            partial.rename(file)
    return file


def fetched(jar: Jar, scratch: Path, advice: str) -> Path:
    """From $FRAMESTORM_PROFILERS or by Maven into `scratch`, held to its checksum. Raises FramestormError,
    which ends with `advice`."""
    own = os.environ.get(ENVIRONMENT)
    file = (Path(own) if own else scratch) / jar.file_name
    if not own:
        _fetch(jar, scratch, advice)
    if not file.exists():
        raise FramestormError(
            f"{ENVIRONMENT}={own}: there is no {jar.file_name} in that folder. {advice}"
            if own
            else f"Maven did not copy {jar.file_name}. {advice}"
        )
    if (found := files.sha256(file)) != jar.sha256:
        raise FramestormError(
            f"{jar.file_name} has the SHA-256 {found}, expected was {jar.sha256}: not used. {advice}"
        )
    return file


def _fetch(jar: Jar, into: Path, advice: str) -> None:
    if shutil.which("mvn") is None:
        packages.ensure([_MAVEN_PACKAGE])
    steps.run_logged(
        [
            *("mvn", "--batch-mode", _COPY),
            f"-Dartifact={jar.coordinates}",
            f"-DoutputDirectory={into}",
        ],
        what=f"fetching {jar.coordinates} with Maven",
        log_name="maven",
        advice=f"Is Maven's repository reachable? {advice}",
    )
