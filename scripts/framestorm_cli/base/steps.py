"""Long steps of set-up: one at a time between processes, with a log, and with words on failure."""

import fcntl
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError

TAIL_LINES = 25
_TERMINATING = (signal.SIGTERM, signal.SIGHUP)
_SPOKEN_OF_AFTER = 0.5  # seconds: most set-up finds that all is there


def say(message: str) -> None:
    """One line about what is going on, to stderr: stdout belongs to results."""
    click.echo(f"framestorm: {message}", err=True)


@contextmanager
def locked(name: str, doing: str) -> Iterator[int]:
    """Holds `<cache>/<name>.lock`. Says so when another process makes it wait.

    Yields the lock's file descriptor: a child that inherits it holds the lock until it ends, too.
    """
    path = paths.cache() / f"{name}.lock"
    with path.open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another framestorm that is {doing}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def run_logged(
    command: Sequence[str],
    *,
    what: str,
    log_name: str,
    advice: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> None:
    """Runs a step with its output in `<cache>/logs/<log_name>.log`.

    Of a step that takes only a moment nothing is said. Of others a terminal gets a spinner with the log's
    last line, anything else one line at start and end.
    Raises FramestormError with the log's last lines and `advice` when the step fails.
    """
    log_path = paths.cache() / "logs" / f"{log_name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with log_path.open("wb") as log:
        log.write(f"$ {' '.join(command)}\n".encode())
        log.flush()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd, env=env
            )
        except FileNotFoundError as error:
            raise FramestormError(f"{what}: {command[0]} is not there. {advice}") from error
        try:
            try:
                code = process.wait(None if quiet else _SPOKEN_OF_AFTER)
                quiet = True
            except subprocess.TimeoutExpired:
                code = _watch(process, what, log_path)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code != 0:
        raise FramestormError(
            f"{what} failed (exit {code}). Last lines of {log_path}:\n{tail(log_path)}\n{advice}"
        )
    if not quiet:
        say(f"{what}: done in {time.monotonic() - begun:.0f} s")


def _watch(process: "subprocess.Popen[bytes]", what: str, log_path: Path) -> int:
    if not sys.stderr.isatty():
        say(f"{what} (log: {log_path})")
        return process.wait()
    from rich.console import Console  # noqa: PLC0415 (rich takes long to load)

    with Console(stderr=True).status(what) as status:
        while process.poll() is None:
            last = tail(log_path, 1).strip()[-80:]
            status.update(f"{what}  [dim]{last.replace('[', chr(92) + '[')}[/dim]")
            time.sleep(0.2)
    return process.returncode


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a text file; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def captured(command: Sequence[str | Path], **more: Any) -> "subprocess.CompletedProcess[str]":
    """Runs a short command to its end, and keeps what it says. Whether it failed is for who asked.

    `more`: of subprocess.run(). Raises FileNotFoundError when there is no such program."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


@contextmanager
def interrupts_put_off() -> Iterator[list[int]]:
    """Signals that would interrupt are noted instead of acted on, for what must not stop half-way:
    a process that was started and that nobody knows would go on. The caller raises them later.
    Nothing on other threads than the main one, which no signal interrupts."""
    late: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield late
        return
    with _handled(lambda number, _: late.append(number), signal.SIGINT, *_TERMINATING):
        yield late


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt meanwhile, as Ctrl-C does. One that is ignored, as nohup
    has it of SIGHUP, stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt, *_TERMINATING):
        yield


@contextmanager
def _handled(
    handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals
) -> Iterator[None]:
    """Signals have this handler meanwhile, but for those that are ignored."""
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
