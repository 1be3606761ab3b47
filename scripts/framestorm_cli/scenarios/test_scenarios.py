"""`scenarios` and `walkers` on fake native programs."""

from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.conftest import FakePrograms, Run

C1: dict[str, Any] = {
    "name": "c1",
    "available": True,
    "walks": 100,
    "succeeded": 99,
    "java": True,
    "expected_percent": 99,
}


def test_scenarios(framestorm: Run, fakes: FakePrograms) -> None:
    c1 = {
        **C1,
        "by_walker": {
            "asgct": {"walks": 100, "succeeded": 99},
            "asgct2": {"walks": 100, "succeeded": 100},
            "asgst": {"walks": 100, "succeeded": 100},
            "asgst-env": {"walks": 50, "succeeded": 50},
            "asgst-frame": {"walks": 100, "succeeded": 12},
            "jfr-trace": {"walks": 100, "succeeded": 0, "chooses": True},
        },
    }
    gc = {
        "name": "gc-thread",
        "available": True,
        "walks": 40,
        "succeeded": 0,
        "java": False,
        "expected_percent": 100,
    }
    ffi = {"name": "ffi", "available": False, "reason": "needs JDK 22 or later"}
    fakes.answer("scenarios", [c1, gc, ffi])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 0
    assert "unavailable: needs JDK 22 or later" in out
    assert "asgct 99 of 100, asgst-frame 12 of 100, jfr-trace none, others all" in out


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"succeeded": 98}, "too few by asgct: 98 of 100, 99 % expected"),
        ({"by_walker": {"asgst": {"walks": 40, "succeeded": 0}}}, "no frames by asgst"),
        ({"wrong": ["asgst: contract wrong-frames, halted at x"] * 2}, "wrong walks"),
        ({"wrong": ["asgst: reference: no frames"]}, "asgst: reference: no frames"),
    ],
)
def test_scenarios_that_do_not_walk(
    framestorm: Run, fakes: FakePrograms, changed: dict[str, Any], problem: str
) -> None:
    c1 = {**C1, "by_walker": {"asgct": {"walks": 100, "succeeded": 99}}}
    jfr = {"jfr-request": {"walks": 40, "succeeded": 40, "chooses": True}}
    wrong = ["asgct: contract wrong-frames: x", "jfr-request: contract old-bytecode: x"]
    fakes.answer("scenarios", [{**c1, "by_walker": {**c1["by_walker"], **jfr}, "wrong": wrong}])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 0, "what AsyncGetCallTrace and JFR get wrong is shown only"
    assert all(one in out for one in wrong)
    fakes.answer("scenarios", [{**c1, **changed}])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 1
    assert problem in " ".join(out.split())
    assert "do not walk as they should: c1" in out


def test_scenarios_show_first_what_makes_one_fail(framestorm: Run, fakes: FakePrograms) -> None:
    asgct = [f"asgct: contract wrong-frames: {number}" for number in range(9) for _ in range(2)]
    wrong = [*asgct, "asgst: reference: no frames"]
    fakes.answer(
        "scenarios",
        [{"name": "c1", "available": True, "walks": 9, "succeeded": 9, "wrong": wrong}],
    )
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 1
    assert "asgst: reference: no frames" in " ".join(out.split())


def test_scenarios_show_what_a_profiler_has_stored(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    stored = {"walks": 20, "succeeded": 0, "recorded": {"right": 18, "short": 2, "missing": 0}}
    c1 = {
        "name": "c1",
        "available": True,
        "walks": 20,
        "succeeded": 20,
        "java": True,
        "by_walker": {"asgct": {"walks": 20, "succeeded": 20}, "profiler": stored},
        "wrong": ["profiler: short: 3 frames, 5 expected, halted at x"] * 2,
    }
    fakes.answer("scenarios", [c1])
    asked = ("scenarios", "--jdk", fakes.tools.jdk.home, "--profiler", "jvm")
    code, out, _ = framestorm(*asked)
    assert code == 0, "what a profiler gets wrong is shown only"
    assert "all; profiler stored 18 right, 2 short" in out
    assert "profiler: short: 3 frames, 5 expected (2 times)" in out
    stored["recorded"] = {"right": 0, "missing": 20}
    fakes.answer("scenarios", [c1])
    code, out, _ = framestorm(*asked)
    assert code == 1
    assert "no frames by profiler" in " ".join(out.split())


def test_walkers(framestorm: Run, fakes: FakePrograms) -> None:
    code, out, _ = framestorm("walkers", "--jdk", fakes.tools.jdk.home)
    assert code == 0
    assert "asgct" in out
    assert "libjvm.so does not export AsyncGetStackTrace" in out
    assert "jdk build" in out
    told = " ".join(out.split())
    assert "plugin with --walker-plugin FILE" in told
    assert "profiler with --profiler NAME" in told
