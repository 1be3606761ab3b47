"""One long command of a build: its process group and its log."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot.errors import NO_SPACE, disk_full

_POLL = 0.25  # seconds
GRACE = 10.0  # seconds that make gets to end by itself
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
    with log.open("wb") as output, steps.termination_interrupts():
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            with steps.interrupts_put_off() as late:
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
            for number in late:
                signal.raise_signal(number)
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


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process, which leads its group, and everything it started; returns when all have ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        last = time.monotonic() + GRACE
        while time.monotonic() < last:
            process.poll()
            if not _lives(process.pid):
                return
            time.sleep(_POLL)


def _lives(group: int) -> bool:
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(one.pid) == group and one.status() != psutil.STATUS_ZOMBIE:
                return True
    return False
