"""How a run can be ended, and what is there then: kill -9, Ctrl-C, a full disk."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from framestorm_cli.base import paths
from framestorm_cli.conftest import Run
from framestorm_cli.stress import runner
from framestorm_cli.stress.conftest import ONE, FakeJava, read_summary, wait_for

_DRIVER = """
import sys
sys.path.insert(0, {scripts!r})
from pathlib import Path
from framestorm_cli.stress import compiling, runner
from framestorm_cli.stress.workloads import BuiltIn
compiling.build = lambda _: BuiltIn(Path({jar!r}), Path("natives.so"))
runner.LOWEST_FREE = {lowest}
{more}
from framestorm_cli.main import main
main()
"""


def start_driver(
    tmp_path: Path, *arguments: str | Path, lowest: int = 1, more: str = "", ignored: str = ""
) -> "subprocess.Popen[str]":
    """The command in a process of its own, which a test may kill. `ignored`: a signal that it is started
    with ignored; the tests themselves may have been started so."""
    script = _DRIVER.format(
        scripts=str(paths.SCRIPTS), jar=str(tmp_path / "workloads.jar"), lowest=lowest, more=more
    )
    command = [sys.executable, "-c", script, "stress", "--no-truth", *map(str, arguments)]
    signals = ["--default-signal=INT,HUP", *([f"--ignore-signal={ignored}"] if ignored else [])]
    command = ["env", *signals, *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(out: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in out.glob("cells/*/cell.json")}


def test_kill_9_loses_no_finished_cell_and_resume_runs_the_others(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"takes": 0.3, "findings": [java.fault("a", "frame::sender")]})
    matrix = tmp_path / "m.toml"
    matrix.write_text('workloads = ["alpha"]\nseconds = 2\nrepetitions = 4\n')
    out = tmp_path / "out"
    process = start_driver(
        tmp_path, "--jdk", java.jdk.home, "--matrix", matrix, "--seed", "3", "--out", out
    )
    wait_for(lambda: len(finished(out)) >= 2)
    process.kill()
    process.communicate()
    before = finished(out)
    assert 2 <= len(before) < 8
    assert not (out / "summary.json").exists()
    planned = json.loads((out / "plan.json").read_text())["cells"]

    code, _, err = stress("--resume", out)
    assert code == 1, err
    after = finished(out)
    assert len(after) == 8
    assert {name: after[name] for name in before} == before
    data = read_summary(out)
    assert [
        {name: cell[name] for name in planned[0]} for cell in data["cells"]
    ] == planned  # the same cells, in the same order
    assert [cell["seed"] for cell in data["cells"]] == list(range(4, 12))
    starts = len(java.starts("alpha"))
    assert stress("--resume", out)[0] == 1  # nothing left: reports only
    assert len(java.starts("alpha")) == starts


def test_a_killed_run_leaves_no_java_behind(java: FakeJava, tmp_path: Path) -> None:
    java.plan("alpha", {"end": "ok", "takes": 600})
    process = start_driver(tmp_path, "--jdk", java.jdk.home, *ONE, "--out", tmp_path / "out")
    wait_for(lambda: list((tmp_path / "out").glob("cells/*/agent/stats.jsonl")))
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_resume_refuses_another_jdk_and_other_options(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert stress(*ONE, "--out", out)[0] == 0
    code, _, err = stress("--resume", out, "--mode", "unstopped")
    assert (code, "leave out modes" in err) == (2, True)
    release = java.jdk.home / "release"
    release.write_text(release.read_text().replace("25.0.3+9", "25.0.4+1"))
    code, _, err = stress("--resume", out)
    assert code == 2
    assert "is 25.0.4+1" in err
    (out / "plan.json").write_text("{")
    code, _, err = stress("--resume", out)
    assert (code, "has no plan.json" in err) == (2, True)


@pytest.mark.parametrize("ignored", ["", "INT"], ids=["heard", "ignored in a script"])
def test_ctrl_c_reports_what_is_there(java: FakeJava, tmp_path: Path, ignored: str) -> None:
    java.plan("alpha", {}, {"takes": 600})
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 2\nrepetitions = 3\n'
    )
    out = tmp_path / "out"
    process = start_driver(
        tmp_path, "--jdk", java.jdk.home, "--matrix", matrix, "--out", out, ignored=ignored
    )
    wait_for(
        lambda: len(list(out.glob("cells/*/agent/stats.jsonl"))) == 2 and len(finished(out)) == 1
    )
    process.send_signal(signal.SIGINT)
    printed, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "interrupted: 2 of 3 cells did not run" in err
    assert f"--resume {out}" in err
    assert "in 1 of 3 cells" in printed
    assert len(read_summary(out)["cells"]) == 1
    assert (out / "report.html").exists()


@pytest.mark.parametrize(("ignored", "code"), [("", 2), ("HUP", 0)], ids=["heard", "with nohup"])
def test_a_terminal_that_goes_away_ends_a_run(
    java: FakeJava, tmp_path: Path, ignored: str, code: int
) -> None:
    java.plan("alpha", {"takes": 3})
    out = tmp_path / "out"
    process = start_driver(tmp_path, "--jdk", java.jdk.home, *ONE, "--out", out, ignored=ignored)
    wait_for(lambda: list(out.glob("cells/*/agent/stats.jsonl")))
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err


def test_a_full_disk_is_a_clear_error_and_keeps_what_is_finished(
    java: FakeJava, tmp_path: Path
) -> None:
    """No file of this process may grow beyond a limit: a cell's record does, what is in it does not."""
    large = {
        "stats": {"lost": {f"{number:0100}": 1 for number in range(1000)}},
        "work": {f"{number:0100}": 1 for number in range(450)},
    }
    java.plan("alpha", {}, large)
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 2\nrepetitions = 3\n'
    )
    out = tmp_path / "out"
    process = start_driver(
        tmp_path, "--jdk", java.jdk.home, "--matrix", matrix, "--out", out,
        more="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))",
    )  # fmt: skip
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    assert "disk full" in err
    assert "1 finished cells are kept" in err
    assert len(finished(out)) == 1
    assert not list(out.glob("cells/*/*.new"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_file_system_is_a_clear_error(java: FakeJava, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        java.plan("alpha", {}, {"fill": 8 << 20})
        matrix = tmp_path / "m.toml"
        matrix.write_text(
            'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 2\nrepetitions = 3\n'
        )
        process = start_driver(
            tmp_path, "--jdk", java.jdk.home, "--matrix", matrix, "--out", small / "out",
            lowest=1 << 20,
            more="from framestorm_cli.base import run_folder\n"
            "run_folder.check_room = lambda folder: folder.mkdir(parents=True)",
        )  # fmt: skip
        _, err = process.communicate(timeout=120)
        assert process.returncode == 2, err
        assert "disk full" in err or "could not write the report" in err
        assert len(finished(small / "out")) == 1
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_too_little_room_stops_a_run_before_its_next_cell(
    stress: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LOWEST_FREE", 1 << 60)
    code, _, err = stress(*ONE, "--out", tmp_path / "out")
    assert code == 2
    assert "disk full" in err
    assert "make room" in err
