"""Where the jar of Renaissance comes from: --renaissance, the environment, or its release page."""

import hashlib
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.renaissance import suite
from framestorm_cli.renaissance.suite import Suite

ENVIRONMENT = "FRAMESTORM_RENAISSANCE"
_DOWNLOAD_PAGE = "https://renaissance.dev/download"
_CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Release:
    url: str
    sha512: str

    @property
    def file(self) -> str:
        return self.url.rpartition("/")[2]


# The GPL distribution: all benchmarks. The checksum is the one that Graal's build holds its copy of the
# file to: RENAISSANCE_0.16.0 in sdk/mx.sdk/suite.py of the repository oracle/graal.
RELEASE = Release(
    "https://github.com/renaissance-benchmarks/renaissance/releases/download/v0.16.0/"
    "renaissance-gpl-0.16.0.jar",
    "82cc829636f3420622b9ce55fb0406230a2a90692f03f0e85bfe6d99f1bd58ee"
    "9ec173695bd1c597aeae149b19391231d0f7fe47ca290334b2dba7c7cd3ef64e",
)


def find(option: Path | None, release: Release = RELEASE) -> Suite:
    """The suite of --renaissance PATH, else of $FRAMESTORM_RENAISSANCE, else downloaded once and kept
    in the cache folder. Raises FramestormError, which says how to get it."""
    if option is not None:
        return suite.read(option)
    own = os.environ.get(ENVIRONMENT)
    if own:
        try:
            return suite.read(Path(own))
        except FramestormError as error:
            raise FramestormError(f"{ENVIRONMENT}: {error.message}") from error
    return suite.read(_downloaded(release))


def _downloaded(release: Release) -> Path:
    folder = paths.cache() / "renaissance"
    jar = folder / release.file
    if jar.exists():
        return jar
    with steps.locked("renaissance", "downloading Renaissance"):
        if jar.exists():
            return jar
        folder.mkdir(parents=True, exist_ok=True)
        # Only what has the right checksum gets the jar's name.
        partial = folder / f"{release.file}.{os.getpid()}"
        try:
            _download(release, partial)
            partial.rename(jar)
        finally:
            partial.unlink(missing_ok=True)
    return jar


def _download(release: Release, into: Path) -> None:
    by_hand = (
        f"get a jar of Renaissance 0.14 or later from {_DOWNLOAD_PAGE}, on another machine if need be, "
        f"and give it with --renaissance PATH or {ENVIRONMENT}=PATH"
    )
    steps.say(f"downloading {release.url}")
    try:
        with (
            urllib.request.urlopen(release.url, timeout=_CONNECT_SECONDS) as response,
            into.open("w+b") as file,
        ):
            _check_room(into.parent, int(response.headers.get("Content-Length") or 0))
            shutil.copyfileobj(response, file)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha512").hexdigest()
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FramestormError(
            f"Renaissance could not be downloaded from {release.url} ({reason}): {by_hand}"
        ) from error
    if digest != release.sha512:
        raise FramestormError(
            f"what came from {release.url} has the SHA-512 {digest}, expected was "
            f"{release.sha512}; it was thrown away. Try again, or {by_hand}"
        )


def _check_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise FramestormError(
            f"Renaissance is {size >> 20} MiB, {folder} has {free >> 20} MiB of free disk: make room "
            "there, or name another cache folder with FRAMESTORM_CACHE"
        )
