"""What processes leave behind is found, counted and ended."""

import multiprocessing
import resource
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from framestorm_cli.native import processes

# A shell whose child outlives it, and is busy until it is killed.
_LEAVES_ONE = ["sh", "-c", "(while :; do :; done) & echo $! >left"]
_SECONDS = 0.5


def _ask(folder: Path, told: Connection, *, adopts: bool) -> None:
    """Tells the process that was left behind, and the seconds that this one's children had."""
    if adopts:
        processes.adopt_orphans()
    own = psutil.Popen(["sleep", "60"])  # as a symbolizer: not from start()
    processes.start(_LEAVES_ONE, folder).wait()
    left = psutil.Process(int((folder / "left").read_text()))
    while sum(left.cpu_times()[:2]) < _SECONDS:
        time.sleep(0.01)
    processes.end_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    told.send((left.pid, used.ru_utime + used.ru_stime, own.is_running()))
    own.kill()


def _asked(folder: Path, *, adopts: bool) -> tuple[int, float, bool]:
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=_ask, args=(folder, there), kwargs={"adopts": adopts}
    )
    child.start()
    answer: tuple[int, float, bool] = here.recv()
    child.join()
    return answer


def test_an_orphan_is_ended_and_its_time_counts(tmp_path: Path) -> None:
    pid, seconds, others_live = _asked(tmp_path, adopts=True)
    assert not psutil.pid_exists(pid)
    assert seconds >= _SECONDS
    assert others_live


def test_without_that_its_time_is_nobodys(tmp_path: Path) -> None:
    pid, seconds, _ = _asked(tmp_path, adopts=False)
    psutil.Process(pid).kill()
    assert seconds < _SECONDS


def test_a_worker_dies_with_who_started_it() -> None:
    """As those of `detect` do, whose runs would go on for hours."""
    worker = (
        "from framestorm_cli.native import processes; processes.die_with_parent();"
        "print('there', flush=True); import time; time.sleep(20); print('still there')"
    )
    starter = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"there\n"
        parent.kill()
        assert parent.stdout.read() == b""  # the worker's, too
