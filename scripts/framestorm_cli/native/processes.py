"""Starting native programs: command lines, life time, and how they ended."""

import contextlib
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native.toolchain import NATIVE, Toolchain

Popen = subprocess.Popen[bytes]

EXIT_DONE = 0
EXIT_NOT_REUSABLE = 3
EXIT_SETUP = 2
EXIT_STRICT = 77
DID_NOT_END = "did not end"
ASAN_END = "framestorm: AddressSanitizer ends the process"  # harness/guard/sanitizer.h

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_LIBFUZZER = re.compile(r"INFO: |#\d+\s|WARNING: Failed to find function|Done \d+ runs")


def jvm_arguments(
    toolchain: Toolchain, out: Path | None, jvm_args: Sequence[str] = ()
) -> list[str]:
    """The arguments every program that starts a JVM takes; `out` where it writes files."""
    arguments = ["--jdk", str(toolchain.jdk.home), "--classes", str(toolchain.classes)]
    if out is not None:
        arguments += ["--out", str(out.resolve())]
    for argument in jvm_args:
        arguments += ["--jvm-arg", argument]
    return arguments


def _bound(command: Sequence[str | Path]) -> list[str]:
    """The command such that it dies with framestorm: a killed one must not leave fuzz processes."""
    prefix = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    return prefix + [str(part) for part in command]


def start(
    command: Sequence[str | Path],
    out: Path,
    environment: Mapping[str, str] | None = None,
    keep_open: Sequence[int] = (),
) -> Popen:
    """Starts a program with its output in `out`/log.txt. hs_err files land in `out`, its folder.

    In a session of its own: Ctrl-C reaches framestorm only, which then ends its children in order.
    `environment` is added to this process's; `keep_open` are file descriptors it inherits.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / "log.txt").open("ab") as log:
        return subprocess.Popen(
            _bound(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=out,
            env={**os.environ, **(environment or {})},
            pass_fds=keep_open,
            start_new_session=True,
        )


def reap(process: Popen, *, wait: bool = False) -> resource.struct_rusage | None:
    """What a child used, once it has ended; None while it runs, and when it was reaped before."""
    if process.returncode is not None:
        return None
    try:
        pid, status, used = os.wait4(process.pid, 0 if wait else os.WNOHANG)
    except ChildProcessError:
        process.poll()  # reaped by somebody else
        return None
    if pid == 0:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return used


def end(process: Popen, grace: float = 3.0) -> None:
    """SIGTERM, and SIGKILL after `grace` seconds."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def die_with_parent() -> None:
    """As _bound(), for this process: it ends when its parent is killed."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """From now on this process is the parent of what its children leave behind, as afl-fuzz does a JVM."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def end_orphans() -> None:
    """Ends what start() started, and what of it was adopted; the times of all are this process's children's
    then."""
    own = os.getsid(0)
    for child in psutil.Process().children():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(child.pid) != own:
                child.kill()
                child.wait()


@dataclass(frozen=True)
class Death:
    """A process that ended otherwise than the protocol says: a finding in itself."""

    how: str  # "SIGSEGV", "exit 1", DID_NOT_END
    hs_err: Path | None
    log_tail: str
    asan_log: Path | None = None  # its last report of ASan's ended the process


def death_of(code: int | None, out: Path) -> Death | None:
    """How a process died; None when it ended in one of the agreed ways. `code` None: was killed
    because it did not end."""
    if code in (0, EXIT_SETUP, EXIT_NOT_REUSABLE, EXIT_STRICT):
        return None
    reports = sorted(out.glob("hs_err*.log"), key=lambda p: p.stat().st_mtime)
    return died(code, out, reports[-1] if reports else None)


def died(code: int | None, out: Path, hs_err: Path | None) -> Death:
    """The death of a process, with what it left in its folder."""
    # Fuzz targets keep reports apart, the others print them.
    logs = (out / "sanitizer.log", out / "log.txt")
    asan_log = next((log for log in logs if ASAN_END in steps.tail(log, 10)), None)
    return Death(how_ended(code), hs_err, own_words(out / "log.txt"), asan_log)


def how_ended(code: int | None) -> str:
    """By an exit code, negative for a signal. None: was killed because it did not end."""
    if code is None:
        return DID_NOT_END
    return signal_name(-code) if code < 0 else f"exit {code}"


def own_words(log: Path) -> str:
    """What a program said in its log, without libFuzzer's progress; empty when it said nothing."""
    lines = steps.tail(log, 60).splitlines()
    return "\n".join(line for line in lines if line.strip() and not _LIBFUZZER.match(line))[-2000:]


def waits(pid: int) -> dict[str, float]:
    """Seconds that each thread of a process has waited for a core; empty: unknown."""
    waited = {}
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            waited[file.parent.name] = int(file.read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue  # the thread has ended, or the kernel does not count
    return waited


def starved(pid: int, since: Mapping[str, float] | None = None) -> float:
    """Seconds that the thread of a process which waited longest for a core has waited, since `waits`
    said `since` if that is given; 0: unknown."""
    before = since or {}
    return max((now - before.get(thread, 0.0) for thread, now in waits(pid).items()), default=0.0)


def write_stuck_report(pid: int, path: Path) -> None:
    """Where each thread of a process is, as far as /proc says it: name, state, system call with its
    arguments, sp and pc (`running` when it is in none), and the mappings to make sense of them."""
    tasks = Path(f"/proc/{pid}/task")
    lines = []
    try:
        for task in sorted(tasks.iterdir(), key=lambda entry: int(entry.name)):
            said = {name: _read(task / name) for name in ("comm", "stat", "syscall", "wchan")}
            state = said["stat"].rpartition(")")[2].split()[:1]
            lines.append(
                f"{task.name} {said['comm']}: state {''.join(state)}, syscall {said['syscall']}, "
                f"waits in {said['wchan']}"
            )
        lines += ["", _read(Path(f"/proc/{pid}/maps"))]
    except OSError:
        pass  # it ended meanwhile
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def filter_text(program: Path, command: str, data: bytes, *options: str) -> bytes:
    """`framestorm-native decode|encode`: bytes in, bytes out. Raises FramestormError."""
    done = subprocess.run(
        [str(program), command, *options], input=data, capture_output=True, check=False
    )
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise FramestormError(message or f"{NATIVE} {command} failed (exit {done.returncode})")
    return done.stdout


def query(command: Sequence[str | Path], out: Path | None = None) -> bytes:
    """A program whose stdout is the answer. Raises FramestormError with its stderr."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        _bound(command),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=out,
        check=False,
    )
    if done.returncode != 0:
        how = how_ended(done.returncode)
        message = done.stderr.decode(errors="replace").strip()[-2000:]
        raise FramestormError(f"{Path(command[0]).name} {command[1]} failed ({how}): {message}")
    return done.stdout
