"""How far a compilation of libjvm is, and how long it still takes."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from framestorm_cli.base import steps

PLAIN_EVERY = 30.0  # seconds between lines when there is no terminal
# HotSpot's headers take as long as so many bytes of a file's own text: a fit to the times of 415
# objects, which foretold the whole time within 7 % from the tenth object on.
HEADERS = 100_000
_ENOUGH = 0.05  # of the work, to tell the rest from
_GENERATED = 20  # files that the build itself writes (adlc, JVMTI, JFR), and their bytes
_GENERATED_BYTES = 6_000_000


@dataclass(frozen=True)
class Work:
    """So many files, and their weight: bytes, headers included as HEADERS for each."""

    files: int
    weight: int


class Objects:
    """What is compiled and what is to be, in files and by weight.

    `folder` holds the objects, `sources` what they may be compiled from, `generated` the sources that
    the build writes itself; `expected` is how many objects there were the last time, if known.
    """

    def __init__(
        self, folder: Path, sources: Iterable[Path], generated: Path, expected: int | None
    ) -> None:
        self._folder = folder
        self._generated = generated
        self._sizes = {path.stem: path.stat().st_size for path in sources}
        files = len(self._sizes) + _GENERATED
        weight = sum(self._sizes.values()) + _GENERATED_BYTES + HEADERS * files
        # Not every source is compiled in every configuration.
        self.expected = Work(expected or files, weight * (expected or files) // files)

    def __call__(self) -> Work:
        """What there is now."""
        if not self._folder.is_dir():
            return Work(0, 0)
        made = [path.stem for path in self._folder.glob("*.o")]
        if any(stem not in self._sizes for stem in made):
            for path in self._generated.rglob("*.cpp"):
                self._sizes.setdefault(path.stem, path.stat().st_size)
        return Work(len(made), sum(HEADERS + self._sizes.get(stem, 0) for stem in made))


class Compiling:
    """How many objects there are of those expected: a bar on a terminal, lines elsewhere.

    Use as a context manager and call it now and then. What was there at the start does not count
    for the estimate, nor does the time before the first new object. When all were there, some of them
    are made again; make does not say how many, so only `again`, how many were by now, is shown.
    """

    def __init__(
        self,
        what: str,
        objects: Callable[[], Work],
        expected: Work,
        again: Callable[[], int] = lambda: 0,
    ) -> None:
        self._what = what
        self._objects = objects
        self._again = again
        self._expected = expected
        self._at_start = objects()
        self._first: tuple[float, Work] | None = None  # when the first new object was seen
        self._last_line = time.monotonic()
        self._last_count = 0.0
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> "Compiling":
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._bar.__enter__()
            self._task = self._bar.add_task(
                self._what, total=self._expected.files, completed=self._at_start.files, left=""
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)

    def __call__(self) -> None:
        now = time.monotonic()
        every = 1.0 if self._bar is not None else PLAIN_EVERY
        if now - self._last_count < every and self._last_count:
            return
        self._last_count = now
        done = self._objects()
        left = self.left(done, now)
        total = max(done.files, self._expected.files)
        if self._bar is not None:
            self._bar.update(self._task, completed=done.files, total=total, left=left)
        elif now - self._last_line >= PLAIN_EVERY:
            self._last_line = now
            if self._all_were_there():
                steps.say(f"{self._what}: {left}")
            else:
                share = done.files / max(1, total)
                steps.say(f"{self._what}: {done.files} of {total} files ({share:.0%}), {left}")

    def _all_were_there(self) -> bool:
        return self._at_start.files >= self._expected.files

    def left(self, done: Work, now: float) -> str:
        """An estimate in words."""
        if self._all_were_there():
            return f"{self._again()} files compiled again"
        if done.files >= self._expected.files:
            return "linking"
        if self._first is None and done.files > self._at_start.files:
            self._first = (now, done)
        whole = self._expected.weight - self._at_start.weight
        if self._first is None or done.weight - self._at_start.weight < _ENOUGH * whole:
            return "estimating"
        began, first = self._first
        made = done.weight - first.weight
        if made <= 0:
            return "estimating"
        seconds = (now - began) / made * max(0, self._expected.weight - done.weight)
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else "about a minute left"
