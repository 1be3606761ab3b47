"""One long command of a build: its process group, its log, and how far it is."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from framestorm_cli import steps
from framestorm_cli.errors import FramestormError
from framestorm_cli.hotspot.errors import NO_SPACE, disk_full

PLAIN_EVERY = 30.0  # seconds between lines when there is no terminal
_POLL = 0.25  # seconds
_GRACE = 10.0  # seconds that make gets to end by itself
# What a person's own environment must not change about a build.
_UNSET = frozenset(
    {
        *("ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH", "LD_PRELOAD", "CCACHE_DIR"),
        *("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"),
        *("CLASSPATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
    }
)


def environment() -> dict[str, str]:
    """The environment for configure and make."""
    return {key: value for key, value in os.environ.items() if key not in _UNSET}


def run(
    command: Sequence[str],
    *,
    what: str,
    log: Path,
    advice: str,
    cwd: Path,
    env: Mapping[str, str],
    news: Callable[[], None] = lambda: None,
    lock: int | None = None,
) -> None:
    """Runs a command in a process group of its own, output to `log`; calls `news` now and then.

    Whatever ends this function early, Ctrl-C and SIGTERM too, ends the whole group. When this process
    is killed there is nobody to do so: the group goes on, and keeps the lock of that descriptor.
    Raises FramestormError with the log's last lines when the command fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
            )
        except FileNotFoundError as error:
            raise FramestormError(f"{what}: {command[0]} is not there. {advice}") from error
        try:
            with _termination_interrupts():
                while process.poll() is None:
                    news()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL)
        except BaseException:
            end_group(process)
            raise
    news()
    if process.returncode != 0:
        if NO_SPACE in steps.tail(log, 200):
            raise disk_full(log.parent)
        raise FramestormError(
            f"{what} failed (exit {process.returncode}). Last lines of {log}:\n{steps.tail(log)}\n{advice}"
        )


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process and everything it started; returns when it has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return


class Compiling:
    """How many objects there are of those expected: a bar on a terminal, lines elsewhere.

    Use as a context manager and call it now and then. What was there at the start does not count
    for the estimate. When all were there, some of them are made again; make does not say how many,
    so only `again`, how many were by now, is shown.
    """

    def __init__(
        self,
        what: str,
        objects: Callable[[], int],
        expected: int,
        again: Callable[[], int] = lambda: 0,
    ) -> None:
        self._what = what
        self._objects = objects
        self._again = again
        self._expected = expected
        self._at_start = objects()
        self._began = time.monotonic()
        self._last_line = self._began
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
                self._what, total=self._expected, completed=self._at_start, left=""
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
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=max(done, self._expected), left=left)
        elif now - self._last_line >= PLAIN_EVERY:
            self._last_line = now
            share = min(1.0, done / max(1, self._expected))
            progress = f"{done} of {max(done, self._expected)} files ({share:.0%})"
            if self._at_start >= self._expected:
                steps.say(f"{self._what}: {left}")
            else:
                steps.say(f"{self._what}: {progress}" + (f", {left}" if left else ""))

    def left(self, done: int, now: float) -> str:
        """An estimate in words; empty while there is too little to tell from."""
        if self._at_start >= self._expected:
            return f"{self._again()} files compiled again"
        made = done - self._at_start
        missing = self._expected - done
        if missing <= 0:
            return "linking" if made > 0 else ""
        if made < 10:
            return ""
        seconds = (now - self._began) / made * missing
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else "about a minute left"
