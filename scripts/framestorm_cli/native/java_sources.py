"""Java sources of the checkout, compiled for a JDK under test: once, kept in the cache folder."""

import hashlib
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import packages, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import whole_folder
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk


@dataclass(frozen=True)
class Part:
    """A folder of sources for JDKs from `minimum` on. Compiled after, and against, those before it, and
    against jars."""

    folder: str
    minimum: int
    flags: tuple[str, ...]
    jars: tuple[str, ...] = ()


def compiled(
    jdk: Jdk,
    *,
    name: str,
    what: str,
    root: Path,
    parts: Sequence[Part],
    finish: Callable[[Path], None] | None = None,
    finished_by: str = "",
) -> Path:
    """Compiles the parts of `root` that this JDK is new enough for and returns the class folder.

    `finish` may add to the folder before it is seen under its name; `finished_by` changes whenever what
    it adds does. Raises FramestormError.
    """
    sources = {
        part: sorted((root / part.folder).rglob("*.java"))
        for part in parts
        if jdk.feature >= part.minimum
    }
    if not any(sources.values()):
        raise FramestormError(f"no Java sources below {root}: is the checkout complete?")
    digest = hashlib.sha256(f"{jdk.version}\0{finished_by}".encode())
    for part, files in sources.items():
        digest.update(repr(part).encode())
        for source in files:
            digest.update(str(source.relative_to(root)).encode() + b"\0" + source.read_bytes())
    folder = paths.cache() / f"{name}-{jdk.version}-{digest.hexdigest()[:12]}"
    if folder.exists():
        return folder
    with steps.locked(folder.name, f"compiling {what}"):
        if folder.exists():
            return folder
        compiler = _compiler(jdk, max(part.minimum for part in sources))
        with whole_folder(folder) as scratch:
            for part, files in sources.items():
                if files:
                    class_path = ":".join([str(scratch), *part.jars])
                    _javac(compiler, [*part.flags, "-cp", class_path], files, scratch, what)
            if finish is not None:
                finish(scratch)
    return folder


def write_jar(into: Path, root: Path, files: Iterable[Path], manifest: str = "") -> None:
    """Files below `root`, behind the manifest where there is one."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as jar:
        if manifest:
            jar.writestr("META-INF/MANIFEST.MF", manifest)
        for file in sorted(files):
            jar.write(file, file.relative_to(root))


def _compiler(jdk: Jdk, needed: int) -> Path:
    """javac of the JDK under test, else of the oldest other JDK that is new enough."""
    if jdk.javac is not None:
        return jdk.javac
    others = [other for other in reversed(jdks.usable()) if other.feature >= jdk.feature]
    for other in others:
        if other.javac is not None:
            return other.javac
    packages.ensure([packages.JDK_PACKAGE])
    for other in jdks.usable():
        new_enough = other.feature >= jdk.feature or needed <= jdks.OLDEST_FEATURE
        if other.javac is not None and new_enough:
            return other.javac
    raise FramestormError(
        f"{jdk} has no javac and no other JDK {jdk.feature} or later is installed: install a full JDK "
        f"{jdk.feature} below {jdks.JVM_FOLDER}"
    )


def _javac(compiler: Path, flags: list[str], sources: list[Path], into: Path, what: str) -> None:
    into.mkdir(parents=True, exist_ok=True)
    steps.run_logged(
        [str(compiler), "-g", "-nowarn", *flags, "-d", str(into), *map(str, sources)],
        what=f"compiling {what}",
        log_name="javac",
        advice="Fix the error in the source named there.",
        quiet=not sys.stderr.isatty(),
    )
