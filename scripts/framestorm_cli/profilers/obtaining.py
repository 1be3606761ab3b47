"""Where a known profiler's library comes from: its jar, by Maven or by hand, once, into the cache folder."""

import platform
import tempfile
import zipfile
from pathlib import Path

from framestorm_cli.base import jars, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.profilers.table import Known


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
            jar = jars.fetched(known.released, Path(scratch), _by_hand(known))
            member = known.released.libraries[platform.machine()]
            with zipfile.ZipFile(jar) as archive:
                # Only a whole one gets the library's name.
                Path(archive.extract(member, scratch)).rename(library)
    return library


def _by_hand(known: Known) -> str:
    assert known.released is not None
    return jars.by_hand(known.released, "give the library with --profiler FILE")
