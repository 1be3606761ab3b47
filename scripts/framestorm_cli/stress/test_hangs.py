"""Cells that do not end within their limit: what hangs, and what only takes long."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from framestorm_cli.conftest import Run
from framestorm_cli.native import processes as native
from framestorm_cli.stress import stacks
from framestorm_cli.stress.conftest import FakeJava, only, read_summary, wait_for


def limited(tmp_path: Path, seconds: int) -> Path:
    """A matrix of one cell, which hangs after so many seconds."""
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        f'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 1\nlimit = {seconds}\n'
    )
    return matrix


@pytest.mark.parametrize("end", ["hang", "deaf"])
def test_a_hang_is_ended_with_all_it_started_and_its_stacks_are_kept(
    stress: Run, java: FakeJava, tmp_path: Path, end: str
) -> None:
    java.plan("alpha", {"end": end})
    matrix = limited(tmp_path, 2)
    out = tmp_path / "out"
    code, _, _ = stress("--matrix", matrix, "--out", out)
    assert code == 1
    data = read_summary(out)
    assert only(data)["verdict"] == "hang"
    (bucket,) = data["buckets"]
    assert bucket["signature"]["clause"] == "did not end"
    folder = out / only(data)["folder"]
    assert "state S" in (folder / "stuck.txt").read_text()
    assert "thread apply all bt" in (folder / "stacks.txt").read_text()
    assert "stacks.txt" in {Path(name).name for name in bucket["files"]}
    for _ in range(50):
        if not psutil.pid_exists(java.child_of("alpha")):
            break
        time.sleep(0.1)
    assert not psutil.pid_exists(java.child_of("alpha"))


def test_a_program_that_walks_slow_down_does_not_hang(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"end": "slowed"})
    matrix = limited(tmp_path, 2)
    assert stress("--matrix", matrix, "--out", tmp_path / "out")[0] == 2
    cell = only(read_summary(tmp_path / "out"))
    assert cell["verdict"] == "could not judge"
    assert "slowed down by its walks" in cell["why"]


def test_a_program_that_does_not_end_by_itself_cannot_be_judged(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"end": "hang", "alone": "hang"})
    matrix = limited(tmp_path, 2)
    assert stress("--matrix", matrix, "--out", tmp_path / "out")[0] == 2
    cell = only(read_summary(tmp_path / "out"))
    assert cell["verdict"] == "could not judge"
    assert cell["why"].endswith("It does not end without walks, too")


@pytest.mark.parametrize(("waited", "verdict"), [(3.0, "clean"), (0.5, "hang")])
def test_waiting_for_a_core_is_no_hang(
    stress: Run,
    java: FakeJava,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    waited: float,
    verdict: str,
) -> None:
    monkeypatch.setattr(native, "starved", lambda _: waited)
    java.plan("alpha", {"takes": 3.0})
    matrix = limited(tmp_path, 1)
    stress("--matrix", matrix, "--out", tmp_path / "out")
    assert only(read_summary(tmp_path / "out"))["verdict"] == verdict


def test_a_process_that_waits_for_a_core_is_starved() -> None:
    spin = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(3)]
    try:
        wait_for(lambda: all(native.starved(one.pid) > 0.2 for one in processes))
    finally:
        for one in processes:
            one.kill()
            one.wait()
    assert native.starved(processes[0].pid) == 0


def test_a_hang_in_a_walk_is_named_after_the_walker(tmp_path: Path) -> None:
    (tmp_path / stacks.NATIVE_STACKS).write_text(
        'Thread 2 (Thread 0x7f (LWP 2) "main"):\n'
        "#0  0x00007f in frame::sender(RegisterMap*) const () from /jdk/libjvm.so\n"
        "#1  0x00007f in forte_fill_call_trace_given_top(JavaThread*, ASGCT_CallTrace*, int) ()\n"
        "#2  0x00007f in AsyncGetCallTrace () from /jdk/libjvm.so\n"
        "#3  <signal handler called>\n\n"
        'Thread 1 (Thread 0x7f (LWP 1) "java"):\n#0  0x00007f in __futex_wait () from /libc.so\n'
    )
    assert stacks.walker_stack(tmp_path)[:3] == [
        "frame::sender", "forte_fill_call_trace_given_top", "AsyncGetCallTrace",
    ]  # fmt: skip
