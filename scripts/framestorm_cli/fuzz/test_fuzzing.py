"""Driving the fuzz processes: everything a process can do to its parent."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framestorm_cli.base import run_folder
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.findings.records import FindingsFile
from framestorm_cli.fuzz import fuzzing, liveness, target_process
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.schedule import Slice
from framestorm_cli.fuzz.target_process import FuzzOptions, Process
from framestorm_cli.native import processes
from framestorm_cli.native.processes import Popen
from framestorm_cli.profilers import outside


def fuzz(fakes: FakePrograms, out: Path, **options: Any) -> Run:
    base: dict[str, Any] = {
        "targets": ("fuzz_stack",), "seconds": 10.0, "runs": None, "seed": 100, "jobs": 1, "out": out,
    }  # fmt: skip
    out.mkdir()
    return Fuzzer(fakes.tools, FuzzOptions(**{**base, **options})).fuzz()


def value_after(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_a_process_that_ends_as_it_should_is_not_started_again(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    run = fuzz(fakes, tmp_path / "out")
    assert len(run.processes) == 1
    assert run.totals()["walks"] == 1000
    assert liveness.problems(run) == []


@pytest.mark.parametrize("end", ["die", "not-reusable"])
def test_a_process_that_ends_early_is_started_for_the_rest(
    fakes: FakePrograms, tmp_path: Path, end: str
) -> None:
    fakes.plan("fuzz_stack", {"end": end, "after": 0.5}, {})
    run = fuzz(fakes, tmp_path / "out")
    first, second = fakes.starts("fuzz_stack")
    assert (value_after(first, "--seconds"), value_after(second, "--seconds")) == ("10", "5")
    assert value_after(first, "--seed") != value_after(second, "--seed")
    assert [p.death.how if p.death else None for p in run.processes] == [
        "SIGKILL" if end == "die" else None,
        None,
    ]
    assert run.totals()["walks"] == 1500


def test_runs_left_are_passed_on(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"end": "not-reusable", "after": 0.25}, {})
    fuzz(fakes, tmp_path / "out", seconds=None, runs=1000)
    first, second = fakes.starts("fuzz_stack")
    assert (value_after(first, "--runs"), value_after(second, "--runs")) == ("1000", "750")
    assert "--seconds" not in first


def test_all_options_reach_the_process(fakes: FakePrograms, tmp_path: Path) -> None:
    fuzz(
        fakes,
        tmp_path / "out",
        scenarios=("c1", "osr"),
        modes=("same-thread",),
        walker="plugin",
        outside=outside.plugin("/x.so"),
        jvm_args=("-Xmx64m", "-Xint"),
        corpus=(tmp_path,),
        strict=True,
    )
    (arguments,) = fakes.starts("fuzz_stack")
    line = " ".join(arguments)
    for part in (
        f"--jdk {fakes.tools.jdk.home} --classes {fakes.tools.classes}",
        "--jvm-arg -Xmx64m --jvm-arg -Xint",
        "--scenario c1 --scenario osr",
        "--mode same-thread",
        "--walker plugin --walker-plugin /x.so",
        f"--corpus {tmp_path}",
        "--strict",
    ):
        assert part in line


def test_a_set_up_error_is_not_repeated_and_fails_the_run(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {"end": "setup"})
    run = fuzz(fakes, tmp_path / "out", targets=("fuzz_stack", "fuzz_call"), jobs=2)
    assert len(fakes.starts("fuzz_stack")) == 1
    assert "libjvm.so cannot be loaded: fake" in run.unable["fuzz_stack"]
    assert any("fuzz_stack could not run" in problem for problem in liveness.problems(run))


def test_a_process_that_cannot_go_on_is_started_again(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"end": "broken", "after": 0.5}, {})
    run = fuzz(fakes, tmp_path / "out")
    # libFuzzer's own lines are not what went wrong.
    assert [p.setup_error for p in run.processes] == ["fuzz_fake: a thread did not halt", ""]
    assert liveness.problems(run) == []


def test_a_target_that_can_never_go_on_fails_the_run(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"end": "broken", "after": 0.1})
    run = fuzz(fakes, tmp_path / "out")
    assert len(run.processes) == fuzzing.FAILED_STARTS
    assert run.unable["fuzz_stack"] == "fuzz_fake: a thread did not halt"


def test_a_target_that_dies_before_its_first_walk_is_given_up(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {"walks": 0, "end": "die"})
    run = fuzz(fakes, tmp_path / "out")
    assert len(fakes.starts("fuzz_stack")) == fuzzing.FAILED_STARTS
    assert "in a row" in run.unable["fuzz_stack"]


def test_mutants_that_end_each_process_do_not_end_the_run(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    deaths = [{"walks": 0, "end": "die"}] * (fuzzing.FAILED_STARTS + 2)
    fakes.plan("fuzz_stack", *deaths, {})
    run = fuzz(fakes, tmp_path / "out", mutants=tmp_path / "counts")
    assert [process.death is not None for process in run.processes] == [True] * len(deaths) + [
        False
    ]
    assert run.unable == {}


def test_inputs_that_end_their_successor_before_its_first_walk_are_set_aside(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan(
        "fuzz_stack",
        {"corpus": ["found"], "end": "not-reusable", "after": 0.2},
        {"walks": 0, "end": "die"},
        {},
    )
    out = tmp_path / "out"
    run = fuzz(fakes, out)
    given = [str(out / "corpus" / "fuzz_stack") in start for start in fakes.starts("fuzz_stack")]
    assert given == [False, True, False]
    assert run.unable == {}
    assert [file.read_text() for file in (out / "corpus" / "fuzz_stack-set-aside-1").iterdir()] == [
        "found"
    ]


@pytest.mark.parametrize(("resumed", "spent"), [(False, 30.0), (True, 40.0)])
def test_a_stuck_process_used_up_its_time(tmp_path: Path, resumed: bool, spent: float) -> None:
    process = Process(
        "fuzz_stack", tmp_path, 1, Slice("fuzz_stack", 100.0, resumed=resumed), cast(Popen, None),
        started=1000.0, file=FindingsFile(tmp_path), stats={"t": 2.5}, first_walk=1010.0,
        ended=True, ended_at=1040.0,
    )  # fmt: skip
    assert process.spent == spent


def test_an_input_that_ends_its_process_is_not_given_to_the_next(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan(
        "fuzz_stack",
        {"corpus": ["good", "bad"], "end": "not-reusable", "after": 0.2},
        {"corpus": ["new"], "last": "bad", "end": "not-reusable", "after": 0.2},
        {"corpus": ["bad"], "last": "a mutant", "end": "not-reusable", "after": 0.2},
        {},
    )
    out = tmp_path / "out"
    fuzz(fakes, out)

    def texts(name: str) -> set[str]:
        return {file.read_text() for file in (out / "corpus" / name).iterdir()}

    assert texts("fuzz_stack") == {"good", "new"}
    assert texts("fuzz_stack-set-aside-singly") == {"bad"}


def test_a_target_without_walks_fails_the_run(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"walks": 0})
    (problem,) = liveness.problems(fuzz(fakes, tmp_path / "out"))
    assert "fuzz_stack made no walks" in problem


def test_walks_that_do_not_succeed_fail_the_run(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"walks": 1000, "success": 0.9})
    (problem,) = liveness.problems(fuzz(fakes, tmp_path / "out"))
    assert "only 90.0%" in problem
    fakes.plan("fuzz_call", {"walks": 1000, "success": 0.96})
    assert liveness.problems(fuzz(fakes, tmp_path / "again", targets=("fuzz_call",))) == []


def test_a_process_that_does_not_end_is_ended_and_is_a_finding(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_process, "END_LIMIT", -0.5)
    fakes.plan("fuzz_stack", {"end": "hang"})
    run = fuzz(fakes, tmp_path / "out", seconds=1.0)
    (process,) = run.processes
    assert process.death is not None
    assert process.death.how == "did not end"


def test_a_process_without_progress_is_ended_long_before_its_time(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_process, "STALL_LIMIT", 0.3)
    fakes.plan("fuzz_stack", {"end": "hang", "after": 0.5}, {})
    first, second = fuzz(fakes, tmp_path / "out", seconds=600.0).processes
    assert first.death is not None
    assert "state S" in (first.folder / "stuck.txt").read_text()
    assert second.slice.seconds == 300.0


def test_waiting_for_a_core_is_no_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = 100.0, 0.0
    monkeypatch.setattr(target_process, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(processes, "starved", lambda pid, since=None: waited)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as popen:
        file = FindingsFile(tmp_path)
        process = Process("fuzz_stack", tmp_path, 1, Slice("fuzz_stack", None), popen, now, file)

        now += target_process.START_LIMIT + 1
        assert process.overdue()
        waited = 2.0
        assert not process.overdue()

        process.first_walk = process.last_walk = now
        now += target_process.STALL_LIMIT - 1
        assert not process.overdue()
        now += target_process.STALL_LIMIT
        waited = target_process.STALL_LIMIT
        assert not process.overdue()
        waited = 0.0
        assert process.overdue()


def test_strict_stops_everything_at_the_first_finding(fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"end": "strict", "findings": [fakes.fault("a", "frame::sender")]})
    fakes.plan("fuzz_call", {"end": "hang"})
    run = fuzz(fakes, tmp_path / "out", targets=("fuzz_stack", "fuzz_call"), jobs=2, strict=True)
    assert run.stopped.startswith("strict: fuzz_stack")
    assert all(process.popen.poll() is not None for process in run.processes)
    assert [process.death for process in run.processes if process.target == "fuzz_call"] == [None]


def test_a_full_disk_ends_the_run_in_order(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, "LOWEST_FREE", 1 << 60)
    fakes.plan("fuzz_stack", {"end": "hang"})
    assert fuzz(fakes, tmp_path / "out").stopped.startswith("disk full")


def test_room_is_checked_before(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="MiB are needed"):
        run_folder.check_room(tmp_path, 1 << 60)
    (tmp_path / "file").write_text("")
    with pytest.raises(FramestormError, match="cannot write"):
        run_folder.check_room(tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("code", "dead"), [(0, False), (2, False), (3, False), (77, False), (1, True), (-11, True)]
)
def test_which_exits_are_deaths(tmp_path: Path, code: int, dead: bool) -> None:
    assert (processes.death_of(code, tmp_path) is not None) == dead


def test_an_interrupted_run_ends_its_processes_and_keeps_what_they_found(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    def interrupt(run: Run) -> None:
        if run.totals() and run.active:
            raise KeyboardInterrupt

    fakes.plan("fuzz_stack", {"end": "hang", "findings": [fakes.fault("a", "frame::sender")]})
    (tmp_path / "out").mkdir()
    options = FuzzOptions(("fuzz_stack",), 600.0, None, 1, 1, tmp_path / "out")
    run = Fuzzer(fakes.tools, options).fuzz(interrupt)
    assert run.stopped == "interrupted"
    (process,) = run.processes
    assert process.popen.poll() is not None
    assert [finding.key for finding in process.file.findings] == ["a"]
    assert liveness.problems(run) == []
