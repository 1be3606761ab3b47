"""Where the threads of a hung process are, and what a core says; by gdb, jcmd and /proc."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from framestorm_cli.base import files
from framestorm_cli.binaries.normalise import normalise
from framestorm_cli.native import processes
from framestorm_cli.triage.signature import ENTRY_POINT

NATIVE_STACKS = "stacks.txt"
JAVA_STACKS = "java-stacks.txt"
PROC_STACKS = "stuck.txt"
CORE_STACKS = "core-stacks.txt"
_JCMD_LIMIT = 15.0
_CORE_LIMIT = 90.0
_SIGQUIT_SECONDS = 1.5
_THREAD = re.compile(r"^Thread \d+ ", re.MULTILINE)
_GDB_FRAME = re.compile(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(.+?) \(.*$", re.MULTILINE)
# Offered to gdb: nothing of the machine's own start-up files, no paging, no symbol servers.
_GDB = ("gdb", "--nx", "--batch", "-ex", "set pagination off", "-ex", "set debuginfod enabled off")


def take(pid: int, java: Path, folder: Path, limit: float) -> None:
    """Writes what can be had of a live process into `folder`, in at most `limit` seconds or so."""
    began = time.monotonic()
    processes.write_stuck_report(pid, folder / PROC_STACKS)
    attach: list[str] = []
    if shutil.which("gdb"):
        attach = [*_GDB, "-p", str(pid), "-ex", "thread apply all bt 64"]
    elif shutil.which("eu-stack"):
        attach = ["eu-stack", "-p", str(pid)]
    if attach:
        left = limit - _JCMD_LIMIT - (time.monotonic() - began)
        _to_file(attach, folder / NATIVE_STACKS, max(5.0, left))
    _java(pid, java, folder / JAVA_STACKS)


def _java(pid: int, java: Path, into: Path) -> None:
    """Thread.print by jcmd, which a VM that reaches no safepoint does not answer; SIGQUIT has the VM
    print them to its log should it come round."""
    jcmd = java.with_name("jcmd")
    if jcmd.exists() and _to_file([str(jcmd), str(pid), "Thread.print", "-l"], into, _JCMD_LIMIT):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGQUIT)
        time.sleep(_SIGQUIT_SECONDS)


def of_core(core: Path, java: Path, into: Path) -> bool:
    """Stacks of a core's threads; False when there is no gdb, or gdb has nothing to say."""
    if not shutil.which("gdb"):
        return False
    command = [*_GDB, "-ex", "bt 64", "-ex", "info registers", "-ex", "thread apply all bt 32"]
    return _to_file([*command, str(java), str(core)], into, _CORE_LIMIT)


def _to_file(command: Sequence[str], path: Path, limit: float) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit,
            check=False,
        )
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"") + f"\n(no end within {limit:.0f} s)\n".encode()
        code = -1
    except OSError as error:
        output, code = f"({command[0]}: {error.strerror})\n".encode(), -1
    path.write_bytes(f"$ {' '.join(command)}\n".encode() + output)
    return code == 0


def crashed_stack(path: Path) -> list[str]:
    """Names of the frames of a core's crashed thread, as of_core() wrote them; empty: unknown."""
    first = _THREAD.split(files.read_text(path))[0]
    return [normalise(name) for name in _GDB_FRAME.findall(first)]


def walker_stack(folder: Path) -> list[str]:
    """Names of the frames of the first thread that is in a walk, innermost first; empty: none is."""
    for thread in _THREAD.split(files.read_text(folder / NATIVE_STACKS))[1:]:
        names = [normalise(name) for name in _GDB_FRAME.findall(thread)]
        if any(ENTRY_POINT.fullmatch(name) for name in names):
            return names
    return []
