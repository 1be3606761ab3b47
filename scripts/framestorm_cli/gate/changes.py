"""What a change touches: files of the source tree, and lines of them."""

import difflib
import filecmp
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError

_UPSTREAM = ("origin/HEAD", "origin/master", "origin/main", "master", "main")
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_SOURCES = Path("src") / "hotspot"


@dataclass
class Changes:
    """`lines` by file, from the tree's top on, as numbered after the change; None: any line of it.
    `known` False: nothing says what changed."""

    lines: dict[str, set[int] | None] = field(default_factory=dict)
    known: bool = True
    against: str = ""


def of(source: Path | None, named: Sequence[str], base: Path | None, since: str) -> Changes:
    """From --changed, else the base's source tree, else git: the merge base of the tree's HEAD with
    `since` or with its upstream. Raises FramestormError for a --since that git does not know."""
    if named:
        return Changes({_inside(name, source): None for name in named}, against="--changed")
    if source is None:
        return Changes(known=False)
    if base is not None:
        return _between(base, source)
    start = _merge_base(source, since)
    if start is None:
        return Changes(known=False)
    diff = _git(source, "diff", "--no-color", "--no-ext-diff", "-U0", start, "--", str(_SOURCES))
    return Changes(parse_diff(diff or ""), against=f"git {start[:12]}")


def _inside(name: str, source: Path | None) -> str:
    path = Path(name)
    if source is not None and path.is_absolute() and path.is_relative_to(source):
        path = path.relative_to(source)
    return path.as_posix().removeprefix("./")


def _git(source: Path, *arguments: str) -> str | None:
    try:
        done = steps.captured(["git", "-C", source, *arguments], errors="replace")
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def _merge_base(source: Path, since: str) -> str | None:
    top = _git(source, "rev-parse", "--show-toplevel")
    if top is None or Path(top.strip()) != source:
        if since:
            raise FramestormError(f"--since {since}: {source} is not the top of a git tree")
        return None
    for name in (since,) if since else _UPSTREAM:
        found = _git(source, "merge-base", "HEAD", name)
        if found is not None:
            return found.strip()
    if since:
        raise FramestormError(f"--since {since}: git knows no common commit of it and HEAD")
    return None


def parse_diff(text: str) -> dict[str, set[int] | None]:
    """Of `git diff -U0`. A deletion touches the lines around it."""
    found: dict[str, set[int] | None] = {}
    lines: set[int] = set()
    for line in text.splitlines():
        if line.startswith("+++ "):
            name = line[4:].removeprefix("b/")
            lines = set()
            if name != "/dev/null":
                found[name] = lines
        elif matched := _HUNK.match(line):
            first, count = int(matched[1]), int(matched[2] or 1)
            lines.update(range(first, first + count) if count else (first, first + 1))
    return found


def _between(base: Path, source: Path) -> Changes:
    changes = Changes(against=str(base))
    names = {
        path.relative_to(tree).as_posix()
        for tree in (base, source)
        for path in (tree / _SOURCES).rglob("*.?pp")
    }
    for name in sorted(names):
        before, after = base / name, source / name
        if before.exists() and after.exists() and filecmp.cmp(before, after, shallow=False):
            continue
        changes.lines[name] = _lines(before, after) if before.exists() and after.exists() else None
    return changes


def _lines(before: Path, after: Path) -> set[int]:
    old, new = (
        path.read_text(encoding="utf-8", errors="replace").splitlines() for path in (before, after)
    )
    found: set[int] = set()
    for tag, _, _, first, end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            found.update(range(first + 1, end + 1) if end > first else (first, first + 1))
    return found
