"""JFR as a walker, on every installed JDK: real recordings of real workloads, and of JVMs that died."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress import compiling, jfr, workloads
from framestorm_cli.stress.jfr import CPU_TIME, EXECUTION, Recording

pytestmark = pytest.mark.long

JDKS = list({jdk.feature: jdk for jdk in jdks.usable()}.values())


@pytest.fixture(scope="module", params=JDKS, ids=lambda jdk: str(jdk.feature))
def jdk(request: pytest.FixtureRequest) -> Jdk:
    assert isinstance(request.param, Jdk)
    return request.param


def start(
    recording: Recording, jdk: Jdk, workload: str, *options: str
) -> "subprocess.Popen[bytes]":
    built = compiling.build(jdk)
    java = jdk.home / "bin" / "java"
    every = workloads.built_in(java, built)
    chosen = next(one for one in every if one.name == workload)
    arguments = ["-XX:-CreateCoredumpOnCrash", *recording.start(), *chosen.jvm_args]
    with (recording.folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [str(java), *arguments, *chosen.program, *options],
            cwd=recording.folder,
            stdout=log,
            stderr=log,
        )


def sampled(recording: Recording, jdk: Jdk, workload: str, *options: str) -> dict[str, Any]:
    began = time.monotonic()
    process = start(recording, jdk, workload, *options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (recording.folder / "log.txt").read_text()
    cpu = usage.ru_utime + usage.ru_stime
    return recording.recorded().stats(jdk, (), cpu, time.monotonic() - began)


@pytest.mark.parametrize("walker", jfr.WALKERS)
def test_samples_of_a_workload(jdk: Jdk, walker: str, tmp_path: Path) -> None:
    if reason := jfr.excluded(walker, jdk):
        assert walker == CPU_TIME
        assert jdk.feature < 25
        pytest.skip(reason)
    folder = tmp_path / "a folder, with a comma"
    stats = sampled(Recording(walker, folder, 100_000), jdk, "exceptions", "--iterations", "1500")
    assert stats["whole"]
    assert stats["walker"] == [walker]
    assert stats["samples"] >= 10
    assert stats["interval_ns"] == (1_000_000 if walker == EXECUTION else 100_000)
    assert stats["rate_asked_hz"] == pytest.approx(1e9 / stats["interval_ns"])
    assert 0 < stats["rate_share"] <= 1
    assert sum(entry["count"] for entry in stats["codes"]) == stats["samples"]
    assert {entry["code"] for entry in stats["codes"]} <= {"ok", "truncated", "failed", "empty"}
    frames = stats["frames"][walker]
    assert frames["count"] + stats["failed"] + stats["empty"] == stats["samples"]
    assert frames["sum"] > frames["count"]
    assert stats["frame_types"]
    assert stats["threads"]["seen"] >= 2


def test_a_small_depth_truncates(jdk: Jdk, tmp_path: Path) -> None:
    recording = Recording(EXECUTION, tmp_path, 1_000_000, depth=5)
    stats = sampled(recording, jdk, "exceptions", "--iterations", "800")
    assert stats["frames"][EXECUTION]["max"] <= 5
    # A trace that ends early may happen to be as deep.
    assert stats["frames"][EXECUTION]["at_depth_limit"] >= stats["truncated"] > 0


def test_a_workload_with_a_recording_of_its_own(jdk: Jdk, tmp_path: Path) -> None:
    recording = Recording(EXECUTION, tmp_path, 1_000_000)
    stats = sampled(recording, jdk, "deoptimise-storm", "--iterations", "20")
    assert stats["samples"] > 0
    assert stats["whole"]


def test_a_jvm_that_crashes_leaves_what_it_had(jdk: Jdk, tmp_path: Path) -> None:
    recording = Recording(EXECUTION, tmp_path, 1_000_000)
    process = start(recording, jdk, "exceptions", "--seconds", "60")
    _until_it_works(process)
    process.send_signal(signal.SIGSEGV)
    assert process.wait(60) != 0
    assert list(tmp_path.glob("hs_err_pid*.log"))
    stats = recording.recorded().stats(jdk, (), 3, 3)
    assert not stats["whole"]
    assert stats["ended"] is None
    assert stats["samples"] > 0


def _until_it_works(process: "subprocess.Popen[bytes]") -> None:
    """Until the JVM has used six seconds of CPU time. On idle cores its start alone uses two, and JFR
    writes what it has once a second."""
    stat = Path(f"/proc/{process.pid}/stat")
    while process.poll() is None:
        used = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        if sum(map(int, used)) >= 6 * os.sysconf("SC_CLK_TCK"):
            return
        time.sleep(0.05)
    raise AssertionError("the JVM ended")


def test_no_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="JFR left no recording"):
        Recording(EXECUTION, tmp_path, 1_000_000).recorded().stats(JDKS[0], (), 1, 1)
    (tmp_path / "recording.jfr").write_bytes(b"no recording")
    with pytest.raises(FramestormError, match="cannot be read"):
        Recording(EXECUTION, tmp_path, 1_000_000).recorded().stats(JDKS[0], (), 1, 1)


def test_an_old_recording_is_not_taken_for_this_one(tmp_path: Path) -> None:
    recording = Recording(EXECUTION, tmp_path, 1_000_000)
    (tmp_path / "recording.jfr").write_bytes(b"of another run")
    recording.start()
    with pytest.raises(FramestormError, match="JFR left no recording"):
        recording.recorded()


@pytest.mark.parametrize(
    ("walker", "asked", "taken"),
    [
        (EXECUTION, 10_000, 1_000_000),
        (EXECUTION, 1_000_000, 1_000_000),
        (EXECUTION, 1_500_000, 2_000_000),
        (CPU_TIME, 100_000, 100_000),
    ],
)
def test_intervals(walker: str, asked: int, taken: int) -> None:
    assert jfr.delivered_interval(walker, asked) == taken


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="no JFR walker jfr"):
        Recording("jfr", tmp_path, 1_000_000).start()
    with pytest.raises(FramestormError, match="depth of 1 to 2048"):
        Recording(EXECUTION, tmp_path, 1_000_000, depth=4096).start()
