"""The HotSpot sources a build starts from: a Debian source package, a tarball, or a user's tree."""

import filecmp
import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import write_if_different
from framestorm_cli.hotspot import debian
from framestorm_cli.hotspot.additions import PatchedTree

DEFAULT = "debian:openjdk-25"
_UNPACK = ("--strip-components=1", "--no-same-owner", "--anchored")
_NUMBERS = Path("make") / "conf" / "version-numbers.conf"
_NEEDED = ("configure", "make", "src/hotspot/share/prims", "src/java.base/share/classes")
# Not part of a build, and large; at the top of the tree only.
_LEFT_OUT = frozenset({"build", "test", "doc"})


@dataclass(frozen=True)
class Version:
    """Of a source tree. `build` is the number behind the plus sign, 0 when the tree does not say."""

    numbers: tuple[int, ...]  # feature, interim, update, patch
    build: int
    boot: tuple[int, ...]  # feature releases that can boot it

    @property
    def feature(self) -> int:
        return self.numbers[0]

    def __str__(self) -> str:
        numbers = list(self.numbers)
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        return ".".join(map(str, numbers)) + (f"+{self.build}" if self.build else "")


@dataclass(frozen=True)
class Source:
    """What to build. `key` names the tree that is kept for it; `content` changes with its files."""

    asked: str  # as given: debian:openjdk-25, or a path with links resolved
    key: str
    content: str
    version: Version
    tarball: Path | None
    folder: Path | None


def resolve(asked: str, downloads: Path) -> Source:
    """Reads `--source`. Downloads a Debian package when it is not there yet."""
    if asked.startswith(debian.PREFIX):
        got = debian.fetch(asked.removeprefix(debian.PREFIX), downloads)
        return _from_tarball(asked, got.path, got.sha256, downloads)
    path = Path(asked).expanduser()
    if not path.exists():
        raise FramestormError(
            f"--source {asked}: there is no such file or folder (debian:openjdk-25 is a Debian package)"
        )
    path = path.resolve()
    if path.is_dir():
        version = version_of_tree(path)
        key = hashlib.sha256(str(path).encode()).hexdigest()
        return Source(str(path), key, content_of_tree(path), version, None, path)
    return _from_tarball(str(path), path, files.sha256(path), downloads)


def _from_tarball(asked: str, path: Path, sha256: str, downloads: Path) -> Source:
    """The version is remembered by checksum: reading it out of a tarball takes seconds."""
    memory = downloads / f"{sha256[:12]}.version"
    try:
        top, text = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        top, text = read_version(path)
        downloads.mkdir(parents=True, exist_ok=True)
        write_if_different(memory, json.dumps([top, text]).encode())
    version = parse_version(text, build_of_name(top), str(path))
    return Source(asked, sha256, sha256, version, path, None)


def read_version(path: Path) -> tuple[str, str]:
    """Name of the tarball's folder, and version-numbers.conf in it. Raises FramestormError."""
    top = _top_folder(path)
    wanted = f"{top}/{_NUMBERS}"
    done = steps.captured(["tar", "-xOf", path, "--occurrence=1", wanted])
    if done.returncode != 0:
        raise FramestormError(
            f"{path} is not a tarball of OpenJDK's source: there is no {wanted} in it"
        )
    return top, done.stdout


def _top_folder(path: Path) -> str:
    try:
        with tarfile.open(path) as tar:
            first = tar.next()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise FramestormError(
            f"--source {path} is neither a folder nor a tarball: {error}"
        ) from error
    return "" if first is None else first.name.split("/")[0]


def build_of_name(name: str) -> int:
    """9 of "openjdk-25-25.0.3+9" or "jdk-25.0.3+9"; 0 when the name does not say."""
    match = re.search(r"\d\+(\d+)", name)
    return int(match[1]) if match else 0


def version_of_tree(folder: Path) -> Version:
    """Checks that a folder is an OpenJDK source tree. Raises FramestormError."""
    absent = [name for name in _NEEDED if not (folder / name).exists()]
    if absent:
        raise FramestormError(
            f"--source {folder} is not an OpenJDK source tree: there is no {', no '.join(absent)} "
            "(give the folder that has `configure` in it)"
        )
    try:
        text = (folder / _NUMBERS).read_text(encoding="utf-8")
    except OSError as error:
        raise FramestormError(f"--source {folder}: {_NUMBERS}: {error.strerror}") from error
    described = steps.captured(
        ["git", "-C", folder, "describe", "--tags", "--abbrev=0", "--match", "jdk-*"]
    )
    name = described.stdout if described.returncode == 0 else folder.name
    return parse_version(text, build_of_name(name), str(folder))


def parse_version(text: str, build: int, where: str) -> Version:
    """The version out of version-numbers.conf."""
    values = dict(re.findall(r'^(DEFAULT_\w+)="?([^"#\n]*?)"?\s*(?:#.*)?$', text, re.MULTILINE))
    names = ("FEATURE", "INTERIM", "UPDATE", "PATCH")
    try:
        numbers = tuple(int(values[f"DEFAULT_VERSION_{name}"]) for name in names)
    except (KeyError, ValueError) as error:
        raise FramestormError(f"{where}: {_NUMBERS} does not say which version this is") from error
    listed = [
        int(n) for n in re.findall(r"\d+", values.get("DEFAULT_ACCEPTABLE_BOOT_VERSIONS", ""))
    ]
    return Version(numbers, build, tuple(listed) or (numbers[0] - 1, numbers[0]))


def files_of_tree(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a source tree that a build can read, as paths inside it."""
    pending = [""]
    while pending:
        inside = pending.pop()
        with os.scandir(folder / inside) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if not inside and (entry.name.startswith(".") or entry.name in _LEFT_OUT):
                    continue
                name = f"{inside}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{name}/")
                elif entry.is_file():
                    yield name, entry.stat()


def content_of_tree(folder: Path) -> str:
    """Changes when a file of the tree does: names, sizes and times, as make sees them."""
    whole = hashlib.sha256()
    for name, status in files_of_tree(folder):
        whole.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return whole.hexdigest()


def bring(source: Source, tree: PatchedTree) -> None:
    """Makes the tree's copy of the source current, without touching what is already so."""
    if source.folder is not None:
        copy_changes(source.folder, tree)
        return
    assert source.tarball is not None
    if (tree.source / "configure").exists():
        return
    steps.say(f"unpacking {source.tarball.name}")
    scratch = tree.source.with_name("unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    top = _top_folder(source.tarball)
    left_out = [f"--exclude={top}/{name}" for name in sorted(_LEFT_OUT)]
    done = steps.captured(["tar", "-xf", source.tarball, "-C", scratch, *_UNPACK, *left_out])
    if done.returncode != 0:
        shutil.rmtree(scratch, ignore_errors=True)
        raise FramestormError(f"cannot unpack {source.tarball}: {done.stderr.strip()[-500:]}")
    version_of_tree(scratch)
    scratch.rename(tree.source)


def copy_changes(folder: Path, tree: PatchedTree) -> int:
    """Copies what changed since the last time, with its time; removes what is gone. Returns how many.

    The user's folder is only read. A file that framestorm edits goes where its original is kept. One with
    another time and the same bytes (a fresh checkout has them all) is no change: make need not see it.
    What was copied is remembered, not looked up in the copy: a file that is replaced by an older one
    gets the present time there, or make would not see the change.
    """
    memory = tree.originals.with_name("copied.json")
    try:
        before: dict[str, list[int]] = json.loads(memory.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        before = {}
    after: dict[str, list[int]] = {}
    count = 0
    known = before
    try:
        for name, status in files_of_tree(folder):
            now = [status.st_size, status.st_mtime_ns]
            then = before.get(name)
            if then != now and not (then and then[0] == now[0] and _same(folder, name, tree)):
                _copy(folder, name, tree)
                count += 1
            after[name] = now
        gone = before.keys() - after.keys()
        for name in gone:
            tree.original_path(name).unlink(missing_ok=True)
            count += 1
        before = {}
    finally:
        if count or after != known:
            write_if_different(memory, json.dumps({**before, **after}).encode())
    return count


def _same(folder: Path, name: str, tree: PatchedTree) -> bool:
    copy = tree.original_path(name)
    return copy.exists() and filecmp.cmp(folder / name, copy, shallow=False)


def _copy(folder: Path, name: str, tree: PatchedTree) -> None:
    if name in tree.own():
        raise FramestormError(
            f"{name} is in the JDK source {folder}, and in harness/hotspot/additions too"
        )
    target = tree.original_path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f"{target.name}.framestorm-new")
    shutil.copy2(folder / name, scratch)
    if target.exists() and scratch.stat().st_mtime_ns <= target.stat().st_mtime_ns:
        os.utime(scratch)
    scratch.replace(target)
