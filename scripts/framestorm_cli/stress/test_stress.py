"""`framestorm stress` on a fake java: exit codes, verdicts, buckets, files."""

import errno
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.binaries import elf
from framestorm_cli.conftest import Run
from framestorm_cli.stress import cell_process, cell_result
from framestorm_cli.stress.cell_process import CellProcess
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.cells import Cell
from framestorm_cli.stress.conftest import ONE, WORKLOADS, FakeJava, only, read_summary, wait_for
from framestorm_cli.stress.workloads import Workload


def test_without_arguments_every_workload_runs_in_both_modes(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"flames": "Main.main_[0];Alpha.run_[j] 30\nMain.main_[0] 2\n"})
    code, out, err = stress("--out", tmp_path / "out")
    assert code == 0, err
    data = read_summary(tmp_path / "out")
    assert {(c["workload"], c["mode"]) for c in data["cells"]} == {
        (name, mode) for name in WORKLOADS for mode in ("same-thread", "separate-thread")
    }
    assert {c["interval"] for c in data["cells"]} == {"100us"}
    assert {c["walker"] for c in data["cells"]} == {"asgct"}  # all that this JDK has
    assert data["plan"]["seconds"] == 29.0  # two minutes in all
    assert data["totals"]["samples"] == 4 * 20000
    assert "80,000 walks in 4 of 4 cells" in out
    assert "nothing found" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Alpha.run_[j]" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_what_the_agent_and_the_program_are_told(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    arguments = (
        *("--workload", "alpha", "--walker", "asgct", "--mode", "unstopped", "--interval", "10us"),
        *("--gc", "z", "--jit", "c1", "--threads", "random:8", "--jvm-arg", "-Xmx64m"),
    )
    code, _, err = stress(*arguments, "--duration", "5s", "--out", tmp_path / "out")
    assert code == 0, err
    (words,) = java.starts("alpha")
    cell = only(read_summary(tmp_path / "out"))
    folder = tmp_path / "out" / cell["folder"]
    assert words[0] == (
        f"-agentpath:{tmp_path}/build/stress/agent/libframestorm.so=walker=asgct,mode=unstopped,"
        f"interval=10us,threads=random:8,seed=8,out={folder}/agent"
    )
    line = " ".join(words[1:])
    assert f"-Dnatives={tmp_path}/natives.so" in line
    assert "-XX:+UseZGC -XX:TieredStopAtLevel=1 -Xmx64m" in line
    assert line.endswith("framestorm.workloads.Main alpha --seconds 4 --seed 8")


def test_the_agent_alone_is_preloaded_and_into_java_alone(
    stress: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java.plan("alpha", {"end": "fail"})
    assert stress(*ONE, "--out", tmp_path / "a")[0] == 1
    agent = f"{tmp_path}/build/stress/agent/libframestorm.so"
    assert java.preloaded("alpha") == [agent, ""]  # the other without walks
    data = read_summary(tmp_path / "a")
    report = (tmp_path / "a" / data["buckets"][0]["report"]).read_text()
    assert f"LD_PRELOAD={agent} {java.jdk.home}/bin/java -agentpath:" in report

    # What it is started with is not left out of the repro, and is not overwritten.
    script = tmp_path / "a" / data["buckets"][0]["repro"]
    monkeypatch.setenv("LD_PRELOAD", "")
    subprocess.run(["sh", str(script)], cwd=tmp_path, check=True, capture_output=True)
    assert java.preloaded("alpha") == [agent, "", agent]
    java.plan("alpha", {})
    monkeypatch.setenv("LD_PRELOAD", "/none.so")
    assert stress(*ONE, "--out", tmp_path / "b")[0] == 0
    assert java.preloaded("alpha")[-1] == f"{agent}:/none.so"


def test_the_runtime_of_a_sanitized_jdk_is_preloaded_behind_the_agent(
    stress: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "needed", lambda _: ["libclang_rt.asan-x86_64.so", "libc.so.6"])
    code, _, err = stress(*ONE, "--out", tmp_path / "a")
    assert (code, "has no libclang_rt.asan-x86_64.so" in err) == (2, True)
    runtime = java.jdk.home / "lib" / "libclang_rt.asan-x86_64.so"
    runtime.touch()
    assert stress(*ONE, "--out", tmp_path / "b")[0] == 0
    (preloaded,) = java.preloaded("alpha")
    assert preloaded == f"{tmp_path}/build/stress/agent/libframestorm.so:{runtime}"


def test_iterations_instead_of_a_time(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    code, _, _ = stress(
        "--workload", "alpha", "--iterations", "5", "--mode", "same-thread", "--out", tmp_path / "o"
    )
    assert code == 0
    (words,) = java.starts("alpha")
    assert "--iterations 5" in " ".join(words)
    assert "--seconds" not in words
    code, _, err = stress("--iterations", "5", "--duration", "1m", "--out", tmp_path / "p")
    assert code == 2
    assert "exclude each other" in err


def test_a_finding_becomes_a_bucket_with_what_it_takes_to_act(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    fault = java.fault("k1", "frame::sender", "fill", context={"thread_state": "_thread_in_Java"})
    java.plan("alpha", {"findings": [fault]})
    out = tmp_path / "out"
    code, printed, _ = stress(*ONE, "--out", out)
    assert code == 1
    data = read_summary(out)
    assert only(data)["verdict"] == "findings"
    (bucket,) = data["buckets"]
    assert bucket["signature"] == {
        "kind": "fault", "clause": "", "frames": ["frame::sender", "fill"],
    }  # fmt: skip
    assert bucket["cells"] == [1]
    report = (out / bucket["report"]).read_text()
    for said in (
        "seed 8",
        "25.0.3+9",
        "frame::sender",
        "_thread_in_Java",
        "-agentpath:",
        "sample-1.sample",
    ):
        assert said in report
    assert {Path(name).name for name in bucket["files"]} == {"sample-1.sample", "sample-1.bin"}
    beside = json.loads((out / "buckets" / bucket["id"] / "sample-1.bin.json").read_text())
    assert beside["signature"] == bucket["signature"]
    assert f"sh {paths.shown(out / bucket['repro'])}" in printed
    assert bucket["explanation"] in (out / "report.html").read_text().replace("&#39;", "'")


def test_a_trace_that_is_wrong_is_known_by_what_the_walker_did(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    findings = [
        {
            "key": scenario, "kind": "contract", "clause": "method-unresolved", "detail": "no class",
            "text": f"framestorm-input 1\nscenario {scenario}\n",
            "context": {"thread_state": "_thread_blocked"}, "victim": "_thread_blocked",
            "detail_class": "no class", "input": {"walker": "asgct", "scenario": scenario},
        }
        for scenario in ("parked", "sleeping")
    ]  # fmt: skip
    java.plan("alpha", {"findings": findings})
    out = tmp_path / "out"
    assert stress(*ONE, "--out", out)[0] == 1
    (bucket,) = read_summary(out)["buckets"]
    assert bucket["signature"]["did"] == "no class"
    assert bucket["state"] == "real"
    assert bucket["victims"] == {"_thread_blocked": 2}
    inputs = sorted((out / "buckets" / bucket["id"]).glob("*.bin.json"))
    assert [json.loads(file.read_text())["signature"] for file in inputs] == [
        bucket["signature"]
    ] * 2


def test_repro_runs_the_cell_again_by_itself(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    java.plan(
        "alpha", {"findings": [java.fault("k1", "frame::sender")]}, {"end": "ok"}, {"end": "die"}
    )
    out = tmp_path / "out"
    assert stress(*ONE, "--out", out)[0] == 1
    script = out / only({"cells": read_summary(out)["buckets"]})["repro"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        ["sh", str(script)], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "run 2: exit" in done.stdout  # the first came to nothing
    first, *again = java.starts("alpha")
    assert len(again) == 2
    kept = re.sub(r"out=[^,]*", "", first[0])
    assert re.sub(r"out=[^,]*", "", again[0][0]) == kept
    assert again[0][1:] == first[1:]
    java.plan("alpha", {})
    done = subprocess.run(
        ["sh", str(script)], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "nothing in 5 runs" in done.stdout


def test_a_crash_is_a_bucket_by_its_hs_err_file(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"end": "die"})
    out = tmp_path / "out"
    code, printed, _ = stress(*ONE, "--out", out)
    assert code == 1
    data = read_summary(out)
    assert only(data)["verdict"] == "crash"
    (bucket,) = data["buckets"]
    assert bucket["signature"]["kind"] == "process_death"
    assert bucket["signature"]["frames"]
    assert "hs_err_pid1.log" in {Path(name).name for name in bucket["files"]}
    assert data["totals"]["cell_crashes"]["hits"] == 1
    assert data["totals"]["walk_crashes"]["hits"] == 1
    assert "crash" in printed


def test_a_death_without_words_is_a_crash_too(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    java.plan("alpha", {"end": "abort"})
    assert stress(*ONE, "--out", tmp_path / "out")[0] == 1
    data = read_summary(tmp_path / "out")
    assert (only(data)["verdict"], only(data)["why"]) == ("crash", "SIGSEGV")
    assert data["totals"]["walk_crashes"]["hits"] == 0, "it was in no walk"


def test_few_cores_are_kept(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    java.plan("alpha", {"end": "abort", "core": True})
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 2\nrepetitions = 4\n'
    )
    out = tmp_path / "out"
    assert stress("--matrix", matrix, "--out", out)[0] == 1
    assert len(list(out.glob("cells/*/core"))) == cell_result.KEPT_CORES
    assert len(list(out.glob("cells/*/core-stacks.txt"))) == 4


def test_a_wrong_frame_is_a_finding(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    wrong = {
        "key": "w", "kind": "contract", "clause": "agreement",
        "detail": "asgct says A.a bci 3, gst says A.b bci 7", "stack": [],
    }  # fmt: skip
    java.plan("alpha", {"findings": [wrong]})
    assert stress(*ONE, "--out", tmp_path / "out")[0] == 1
    (bucket,) = read_summary(tmp_path / "out")["buckets"]
    assert bucket["signature"]["clause"] == "agreement"
    assert "A.b bci 7" in bucket["explanation"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"samples": 0, "running": 0.0}, "no samples"),
        ({"end": "not-done"}, "did not do what it is named after"),
        ({"end": "fail", "alone": 1}, "It fails (exit 1) without walks, too"),
        ({"end": "setup"}, "Unrecognized VM option 'UseNoSuchGC'"),
        ({"end": "silent"}, "ended without saying what it did"),
        ({"end": "killed"}, "ended by SIGKILL from outside"),
        (
            {"end": "fail", "code": 2, "says_last": "framestorm: findings.jsonl: No space left"},
            "the agent could not go on: findings.jsonl: No space left",
        ),
        ({"stats": {"lost": {"unjudged": 2_100}}}, "no oracle saw 2,100 of 20,000 walks"),
        ({"end": "abort", "alone": 139}, "It fails (exit 139) without walks, too"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_judged_is_never_green(
    stress: Run, java: FakeJava, tmp_path: Path, entry: dict[str, Any], why: str
) -> None:
    java.plan("alpha", entry)
    code, printed, err = stress(*ONE, "--out", tmp_path / "out")
    assert code == 2
    data = read_summary(tmp_path / "out")
    assert only(data)["verdict"] == "could not judge"
    assert why in only(data)["why"]
    assert why in err
    assert "NOT TO BE BELIEVED" in printed
    assert not data["buckets"]


def test_a_program_that_fails_only_with_walks_is_a_finding(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"end": "fail"})
    assert stress(*ONE, "--out", tmp_path / "out")[0] == 1
    data = read_summary(tmp_path / "out")
    assert only(data)["verdict"] == "program harmed"
    assert data["buckets"][0]["signature"]["kind"] == "program_harmed"


@pytest.mark.parametrize(
    ("samples", "interval", "mode", "code"),
    [
        (19_100, "100us", "same-thread", 0),  # 9,550/s of 10,000
        (18_900, "100us", "same-thread", 2),  # 9,450/s: less than 95 %
        (81_000, "10us", "same-thread", 0),  # 40,500/s
        (79_000, "10us", "same-thread", 2),
        (1_900, "1ms", "same-thread", 0),
        (1_800, "1ms", "same-thread", 2),
        (5_000, "100us", "separate-thread", 0),  # nothing is promised
    ],
)
def test_the_rate_promised_is_delivered_or_the_run_fails(
    stress: Run, java: FakeJava, tmp_path: Path, samples: int, interval: str, mode: str, code: int
) -> None:
    java.plan("alpha", {"samples": samples, "running": 2.0})
    got, _, err = stress(
        *("--workload", "alpha", "--mode", mode, "--interval", interval, "--duration", "3s"),
        *("--out", tmp_path / "out"),
    )
    assert got == code
    assert ("rate too low" in err) == (code == 2)
    assert bool(only(read_summary(tmp_path / "out"))["rate_too_low"]) == (code == 2)


def test_a_slow_walker_does_not_hide_its_findings(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    latency = {"asgct": {"count": 2_000, "p50": 900_000, "p99": 1e6, "p99.9": 1e6, "max": 1e6}}
    slow = {"samples": 2_000, "running": 2.0, "stats": {"latency_ns": latency}}
    only_slow = ("--workload", "alpha", "--mode", "same-thread", "--interval", "100us")
    java.plan("alpha", slow)
    assert stress(*only_slow, "--out", tmp_path / "slow")[0] == 2

    java.plan("alpha", {**slow, "findings": [java.fault("a", "frame::sender")]})
    code, printed, err = stress(*only_slow, "--out", tmp_path / "both")
    assert code == 1
    assert "findings: 1 bucket" in printed
    assert "what was found stands" in printed
    assert "rate too low" in err
    assert "the walker's own time is the reason: 900 us a walk" in err
    summary = read_summary(tmp_path / "both")
    assert (summary["exit"], len(summary["problems"])) == (1, 1)
    failure = (tmp_path / "both" / "junit.xml").read_text().split("<failure", 1)[1]
    assert "frame::sender" in failure
    assert "rate too low" in failure


def test_known_buckets_do_not_fail_a_run_and_new_ones_do(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    known = tmp_path / "known.json"
    java.plan("alpha", {"findings": [java.fault("a", "frame::sender")]})
    assert stress(*ONE, "--out", tmp_path / "a", "--write-known", known)[0] == 0
    assert stress(*ONE, "--out", tmp_path / "b")[0] == 1
    code, printed, _ = stress(*ONE, "--out", tmp_path / "c", "--known", known)
    assert code == 0
    assert "known findings: 1 bucket" in printed
    (bucket,) = read_summary(tmp_path / "c")["buckets"]
    assert bucket["known"]
    assert 'baselineState": "unchanged' in (tmp_path / "c" / "report.sarif").read_text()

    both = [java.fault("a", "frame::sender"), java.fault("b", "os::copy")]
    java.plan("alpha", {"findings": both})
    assert stress(*ONE, "--out", tmp_path / "d", "--known", known)[0] == 1
    assert stress(*ONE, "--out", tmp_path / "e", "--write-known", known)[0] == 0
    assert len(json.loads(known.read_text())["known"]) == 2
    known.write_text("{}")
    code, _, err = stress(*ONE, "--out", tmp_path / "f", "--known", known)
    assert code == 2
    assert "no list of known buckets" in err


def test_cells_whose_traces_are_cut_are_not_clean(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    cut = {"truncated": 500, "ends_compared": 40, "ends_early": 10}
    frames = {"count": 2000, "sum": 9000, "max": 40, "at_depth_limit": 0, **cut}
    java.plan("alpha", {"stats": {"frames": {"plugin": frames}}})
    code, out, err = stress(*ONE, "--out", tmp_path / "out")
    assert code == 0, out + err
    assert "short traces, 25.0% truncated, 25.0% of those compared end early" in " ".join(
        out.split()
    )
    figures = only(read_summary(tmp_path / "out"))["figures"]
    assert (figures["traces"], figures["truncated"]) == (2000, 500)
    assert (figures["ends_compared"], figures["ends_early"]) == (40, 10)


def test_where_walks_came_to_continuations_is_shown(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    counts = {"barriers": 12, "entries": 3400, "entries_missing": 0, "speculative": 0}
    java.plan("alpha", {"stats": {"continuations": counts}})
    code, out, err = stress(*ONE, "--out", tmp_path / "out")
    assert code == 0, out + err
    assert "continuations: 12 barriers, 3,400 entries" in " ".join(out.split())
    figures = only(read_summary(tmp_path / "out"))["figures"]
    assert figures["continuations"] == {"barriers": 12, "entries": 3400}


def test_a_program_without_a_clock_is_asked_to_end(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    app = tmp_path / "app.jar"
    app.touch()
    java.plan("app", {"takes": 60, "seconds": 5.0})
    arguments = ("--workload", f"jar:{app} one two", "--mode", "same-thread", "--duration", "3s")
    code, _, err = stress(*arguments, "--out", tmp_path / "out")
    assert code == 0, err
    assert only(read_summary(tmp_path / "out"))["verdict"] == "clean"
    assert java.starts("app")[0][-4:] == ["-jar", str(app), "one", "two"]


def test_few_walks_that_no_oracle_saw_are_no_reason(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"stats": {"lost": {"unjudged": 2_000}}})
    assert stress(*ONE, "--out", tmp_path / "out")[0] == 0


def test_findings_of_a_cell_that_could_not_be_judged_are_shown(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    fault = java.fault("a", "frame::sender")
    java.plan("alpha", {"findings": [fault], "stats": {"lost": {"unjudged": 5_000}}})
    assert stress(*ONE, "--out", tmp_path / "out")[0] == 2
    data = read_summary(tmp_path / "out")
    assert only(data)["verdict"] == "could not judge"
    assert [one["signature"]["kind"] for one in data["buckets"]] == ["fault"]


@pytest.mark.parametrize(
    ("asked", "alone", "verdict"),
    [(1, 1, "could not judge"), (1, 0, "program harmed"), (1, 143, "program harmed"), (0, 1, "clean")],
)  # fmt: skip
def test_how_a_program_ends_that_is_asked_to_is_compared(
    stress: Run, java: FakeJava, tmp_path: Path, asked: int, alone: int, verdict: str
) -> None:
    app = tmp_path / "app.jar"
    app.touch()
    java.plan("app", {"asked": asked, "asked_alone": alone, "seconds": 5.0})
    arguments = ("--workload", f"jar:{app}", "--mode", "same-thread", "--duration", "3s")
    stress(*arguments, "--out", tmp_path / "out")
    cell = only(read_summary(tmp_path / "out"))
    assert cell["verdict"] == verdict
    if verdict == "could not judge":
        assert "It fails (exit 1) when it is asked to end without walks, too" in cell["why"]


def test_a_cell_is_asked_to_end_while_another_is_concluded(
    stress: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tmp_path / "app.jar"
    app.touch()
    java.plan("app", {"takes": 600, "seconds": 5.0})
    ended = threading.Event()
    poll, conclude = CellProcess.poll, cell_result.conclude

    def watched(process: CellProcess) -> bool:
        runs = poll(process)
        if process.cell.workload != "alpha" and not runs:
            ended.set()
        return runs

    def slow(process: CellProcess, *more: Any) -> CellResult:
        if process.cell.workload == "alpha":
            assert ended.wait(60)
        return conclude(process, *more)

    monkeypatch.setattr(CellProcess, "poll", watched)
    monkeypatch.setattr(cell_result, "conclude", slow)
    arguments = (
        *("--workload", "alpha", "--workload", f"jar:{app}", "--mode", "same-thread"),
        *("--duration", "4s", "--parallel", "2"),
    )
    code, _, err = stress(*arguments, "--out", tmp_path / "out")
    assert code == 0, err
    assert {one["verdict"] for one in read_summary(tmp_path / "out")["cells"]} == {"clean"}


def test_what_goes_wrong_in_concluding_ends_the_run(
    stress: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> CellResult:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cell_result, "conclude", full)
    code, _, err = stress(*ONE, "--out", tmp_path / "out")
    assert code == 2
    assert "disk full: No space left on device" in err


def test_one_that_is_asked_late_has_its_time_to_end(tmp_path: Path) -> None:
    process = cell_process.start(
        Cell("x", "asgct", "same-thread", 1), 1, tmp_path, Workload("x", ()), 1,
        ["sleep", "600"], {}, seconds=1.0, limit=5.0,
    )  # fmt: skip
    try:
        process.began -= 1000
        process.agent_folder.mkdir()
        (process.agent_folder / "stats.jsonl").write_text('{"seconds": 2.0}\n')
        assert process.poll()
        assert process.asked_to_end is not None
        wait_for(lambda: not process.poll())
        assert not process.hung
        assert process.ended is not None
    finally:
        process.kill()


def test_iterations_of_what_has_none_are_refused(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    app = tmp_path / "app.jar"
    app.touch()
    arguments = ("--workload", f"jar:{app}", "--iterations", "3")
    code, _, err = stress(*arguments, "--out", tmp_path / "out")
    assert code == 2
    assert f"jar:{app} has no iterations" in err
    matrix = tmp_path / "m.toml"
    matrix.write_text('workloads = ["alpha", "class:my.Main"]\niterations = 3\n')
    code, _, err = stress("--matrix", matrix, "--out", tmp_path / "out")
    assert (code, "class:my.Main has no iterations" in err) == (2, True)
    assert not (tmp_path / "out" / "plan.json").exists()


def test_cells_that_differ_by_repetition_count_together(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"end": "die"}, {}, {}, {})
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'workloads = ["alpha"]\nmodes = ["same-thread"]\nseconds = 2\nrepetitions = 4\n'
    )
    code, printed, _ = stress("--matrix", matrix, "--out", tmp_path / "out")
    assert code == 1
    rate = read_summary(tmp_path / "out")["totals"]["cell_crashes"]
    assert (rate["hits"], rate["trials"]) == (1, 4)
    assert rate["low"] == pytest.approx(0.0456, abs=1e-3)  # Wilson, 95 %
    assert rate["high"] == pytest.approx(0.6994, abs=1e-3)
    assert "3 clean, 1 crash" in printed


def test_several_cells_run_at_once(stress: Run, java: FakeJava, tmp_path: Path) -> None:
    for name in WORKLOADS:
        java.plan(name, {"takes": 0.5})
    code, _, err = stress("--parallel", "64", "--duration", "3s", "--out", tmp_path / "out")
    assert code == 0
    assert "warning: 64 cells at once" in err
    data = read_summary(tmp_path / "out")
    spans = [(cell["seconds"]) for cell in data["cells"]]
    assert data["seconds"] < sum(spans)


def test_workloads_that_lack_something_are_left_out_of_globs_and_refused_by_name(
    stress: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.lists("alpha", missing="the module jdk.alpha")
    code, _, err = stress("--workload", "alpha", "--out", tmp_path / "a")
    assert (code, "needs the module jdk.alpha" in err) == (2, True)
    code, _, err = stress("--workload", "al*", "--out", tmp_path / "b")
    assert (code, "without alpha: needs the module jdk.alpha" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--workload", "nothing"), "there is no workload nothing. Built in: alpha, beta"),
        (("--walker", "asgst"), "has no walker asgst"),
        (("--walker", "gst"), "there is no walker 'gst' that samples"),
        (("--walker", "plugin"), "go together"),
        (("--mode", "sideways"), "there is no mode 'sideways'"),
        (("--interval", "soon"), "'soon' is no interval"),
        (("--gc", "none"), "there is no collector 'none'"),
        (("--jit", "c9"), "there is no JIT setting 'c9'"),
        (("--threads", "some"), "all, running or random:N"),
        (("--duration", "soon"), "'soon' is no duration"),
        (("--workload", "jar:missing.jar"), "missing.jar does not exist"),
        (("--walker", "asgct+jfr-execution"), "JFR walks by itself"),
        (("--workload", "renaissance:all", "--renaissance", "missing.jar"), "does not exist"),
    ],
)
def test_wrong_options_are_refused(
    stress: Run, java: FakeJava, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = stress(*arguments, "--out", tmp_path / "out")
    assert code == 2
    assert says in err
    assert not java.starts("alpha")
