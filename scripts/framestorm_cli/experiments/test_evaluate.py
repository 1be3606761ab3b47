"""`framestorm evaluate` on a fake java, and its arithmetic."""

import json
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.conftest import Run
from framestorm_cli.experiments import evaluate_plot, evaluate_runs, evaluate_table
from framestorm_cli.experiments.measured import NONE, Measured, broken, roots, rows
from framestorm_cli.stress.conftest import FakeJava


def measured(condition: str, wall: float, **more: Any) -> Measured:
    base: dict[str, Any] = {
        "workload": "alpha", "role": "busy", "condition": condition,
        "interval_ns": 0 if condition == NONE else 1_000_000, "repetition": 1, "seed": 1, "wall": wall,
        "user": wall * 2, "system": 0.1, "samples": 0 if condition == NONE else 1000, "ticks": 1000,
        "traces": 0 if condition == NONE else 800, "broken": 0, "crashes": 0, "failed": "",
    }  # fmt: skip
    return Measured(**{**base, **more})


def test_a_row_is_of_runs_that_did_their_work() -> None:
    made = rows(
        [
            measured(NONE, 10.0),
            measured(NONE, 12.0),
            measured("unstopped", 13.0, crashes=3, broken=200),
            measured("unstopped", 0.1, failed="exit 1", crashes=1),
            measured("same-thread", 11.0),
            measured("same-thread", 90.0, repetition=0, judged=400, wrong=3),
        ]
    )
    assert [row.condition for row in made] == [NONE, "same-thread", "unstopped"]
    unstopped = made[2]
    wall = unstopped.spread("wall")
    assert wall is not None
    assert wall.mean == 13.0
    assert (unstopped.crashes.hits, unstopped.crashes.trials) == (4, 2000)
    assert unstopped.broken_share == pytest.approx(200 / 1600)
    text = evaluate_table.figures(made)
    assert "11.00 ± 1.41 |" in text
    assert "13.00 (+18.2%)" in text
    assert "12.50%" in text
    assert "3 of 400 (" in text
    assert "90.00" not in text, "of a run that warms up no time counts"


def test_a_trace_is_broken_that_does_not_end_at_the_bottom_of_a_thread() -> None:
    good = [(["java.lang.Thread.run_[j]", "a"], 900), (["Main$$Lambda.0x0001.main_[0]"], 99)]
    whole = roots([*good, (["odd.Frame.x_[j]", "a"], 1)], least_share=0.01)
    assert whole == {"java.lang.Thread.run", "Main$$Lambda.main"}
    own = [
        (["java.lang.Thread.run_[0]", "b"], 10),
        (["Main$$Lambda.0x0abc.main_[j]"], 5),
        (["b.c_[j]"], 5),
    ]
    assert broken(own, whole) == (20, 5)


def test_rounds_hold_every_kind_once_in_an_order_of_their_own() -> None:
    program: Any = "p"
    planned = evaluate_runs.plan([program], [1, 2], 3, seed=5)
    assert len(planned) == 4 * 9
    assert {(one.condition, one.has_truth) for one in planned[:9]} == {
        (NONE, False), ("same-thread", True), ("separate-thread", True), ("queued", True),
        ("unstopped", False),
    }  # fmt: skip
    assert not any(one.has_truth for one in planned[9:])
    kinds = [(one.condition, one.interval_ns) for one in planned]
    assert set(kinds[:9]) == set(kinds[9:18]) == set(kinds[18:27]) == set(kinds[27:])
    assert kinds[:9] != kinds[9:18] or kinds[9:18] != kinds[18:]
    assert planned == evaluate_runs.plan([program], [1, 2], 3, seed=5)


def test_the_picture(tmp_path: Path) -> None:
    made = rows([measured(NONE, 10.0), measured("same-thread", 0.0, failed="exit 1")])
    evaluate_plot.draw(made, tmp_path / "p.png", "title")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def evaluate(
    framestorm: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.setenv("FRAMESTORM_BIN", str(tmp_path / "build" / "bin"))
    monkeypatch.setattr("framestorm_cli.stress.truth.build", lambda _: tmp_path / "truth.jar")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        return framestorm(
            *("evaluate", "--jdk", java.jdk.home, "--busy", "alpha", "--parallel", "beta"),
            *("--seed", "1", *arguments),
        )

    return run


def test_an_evaluation(
    evaluate: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flames = "Main.main_[0];A.a_[j] 700\n"
    java.plan("alpha", {"flames": flames, "running": 1.0})
    out = tmp_path / "out"
    code, printed, err = evaluate("--interval", "1ms", "--repetitions", "2", "--out", out)
    assert code == 0, err
    data = json.loads((out / "evaluation.json").read_text())
    assert len(data["runs"]) == 2 * 3 * 5
    for run in data["runs"]:
        assert run["wall"] > 0
        assert run["user"] > 0
        assert (run["samples"] > 0) == (run["condition"] != NONE)
    assert [(one["role"], one["iterations"]) for one in data["programs"]] == [
        ("busy", 3), ("parallel", 3),
    ]  # fmt: skip
    page = (out / "evaluation.md").read_text()
    assert "| busy: alpha | unstopped, 1ms |" in page
    assert "| busy: alpha | unstopped, 1ms |" in printed
    for words in java.starts("alpha"):
        line = " ".join(words)
        assert "interval=1ms" in line
        assert "depth=2048" in line
        seed = next(seed for seed in (1, 2, 3) if line.endswith(f"--seed {seed} --threads 1"))
        assert "--iterations 3" in line
        stands_still = "mode=unstopped" not in line
        assert ("-javaagent:" in line) == ("truth=1" in line) == (seed == 1 and stands_still)
    assert not (out / "runs").exists()

    again = tmp_path / "again"
    measurements = tmp_path / "docs" / "measurements"
    measurements.mkdir(parents=True)
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    code, _, _ = evaluate("--again", out / "evaluation.json", "--out", again, "--docs")
    assert code == 0
    assert (again / "evaluation.md").read_text() == page
    copied = (measurements / "evaluation-alpha-beta.md").read_text()
    assert copied == page.replace("evaluation.png", "evaluation-alpha-beta.png")
    assert (measurements / "evaluation-alpha-beta.png").exists()
    command = (
        "scripts/framestorm evaluate --busy alpha --parallel beta --interval 1ms --seconds 10 "
        "--repetitions 2"
    )
    assert f"    {command} --docs\n" in copied


def test_a_condition_that_never_works_fails_the_evaluation(
    evaluate: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("beta", {"samples": 0, "running": 0.0})
    code, _, err = evaluate("--interval", "1ms", "--repetitions", "1", "--out", tmp_path / "out")
    assert code == 2
    assert "no run of beta with same-thread 1ms did its work: no samples" in err


def test_a_workload_that_does_not_run_by_itself_is_no_baseline(
    evaluate: Run, java: FakeJava, tmp_path: Path
) -> None:
    java.plan("alpha", {"alone": 1})
    code, _, err = evaluate("--out", tmp_path / "out")
    assert code == 2
    assert "alpha does not run without an agent (exit 1)" in err


def test_ctrl_c_keeps_what_is_measured(
    evaluate: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = evaluate_runs._measure
    calls = []

    def interrupted(*arguments: Any) -> Measured:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(evaluate_runs, "_measure", interrupted)
    code, _, err = evaluate("--interval", "1ms", "--out", tmp_path / "out")
    assert code == 2
    assert "interrupted: 2 of 110 runs only" in err
    assert len(json.loads((tmp_path / "out" / "evaluation.json").read_text())["runs"]) == 2
