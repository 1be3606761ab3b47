"""The gate's parts that need no JVM: what changed, who gets how much time, what a verdict is."""

import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.coverage.places import Place
from framestorm_cli.findings.finding import Signature
from framestorm_cli.fuzz import schedule
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.gate import changes, fuzz_step, shares, stress_step, subject
from framestorm_cli.gate.budget import Budget
from framestorm_cli.gate.changes import Changes
from framestorm_cli.gate.subject import Request
from framestorm_cli.gate.verdict import FIXED, KNOWN, NEW, Entry, Step, Verdict

FRAME = "src/hotspot/share/runtime/frame.cpp"
TEXT = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A git tree whose branch changes line 5 of a file and deletes line 12."""
    folder = tmp_path / "jdk"
    (folder / FRAME).parent.mkdir(parents=True)
    (folder / FRAME).write_text(TEXT)
    for command in (
        ["init", "-q", "-b", "master"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
        ["checkout", "-qb", "fix"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    (folder / FRAME).write_text(TEXT.replace("line 5\n", "changed\n").replace("line 12\n", ""))
    return folder.resolve()


def test_changed_lines_by_git(tree: Path) -> None:
    found = changes.of(tree, (), None, "")
    assert found.known
    assert found.lines == {FRAME: {5, 11, 12}}


def test_changed_lines_by_the_base_tree(tree: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / FRAME).parent.mkdir(parents=True)
    (base / FRAME).write_text(TEXT)
    (base / FRAME).with_name("gone.hpp").write_text("x\n")
    found = changes.of(tree, (), base, "")
    assert found.lines[FRAME] == {5, 11, 12}
    assert found.lines["src/hotspot/share/runtime/gone.hpp"] is None


def test_without_git_nothing_is_known(tmp_path: Path) -> None:
    assert not changes.of(tmp_path, (), None, "").known
    assert not changes.of(None, (), None, "").known
    with pytest.raises(FramestormError, match="--since main"):
        changes.of(tmp_path, (), None, "main")


def test_since_an_unknown_revision(tree: Path) -> None:
    with pytest.raises(FramestormError, match="--since nowhere: git knows no"):
        changes.of(tree, (), None, "nowhere")


def test_named_files(tree: Path) -> None:
    found = changes.of(tree, (str(tree / FRAME), f"./{FRAME}"), None, "")
    assert found.lines == {FRAME: None}


PLACES = [
    Place("frame::sender", f"/t/{FRAME}", 3),
    Place("frame::sender", f"/t/{FRAME}", 6),
    Place("frame::other", f"/t/{FRAME}", 30),
    Place("elsewhere", "/t/src/hotspot/share/prims/forte.cpp", 5),
]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [({5}, {0, 1}), ({30}, {2}), ({500}, {0, 1, 2}), (None, {0, 1, 2})],
)
def test_touched_edges(lines: "set[int] | None", expected: "set[int]") -> None:
    assert shares.touched_edges(PLACES, Changes({FRAME: lines})) == expected


def test_targets_that_reach_the_change_get_more() -> None:
    reach = shares.of_edges({"a": {0, 1}, "b": {1}, "c": {9}}, {0, 1})
    assert reach.weights == {"a": 3.0, "b": 2.0, "c": 1.0}
    assert shares.of_edges({"a": {0}, "b": {1}}, set()).weights == {"a": 1.0, "b": 1.0}
    lanes = schedule.lanes(("a", "b", "c"), 2, 60, reach.weights)
    seconds = {
        target: sum(s.seconds or 0 for lane in lanes for s in lane if s.target == target)
        for target in "abc"
    }
    assert seconds == {"a": 60, "b": 40, "c": 20}


def entry(kind: str) -> Entry:
    return Entry(kind, "fuzz", "b01", Signature("fault", "", ("f",)))


@pytest.mark.parametrize(
    ("kinds", "problem", "code"),
    [
        ([], "", 0),
        ([KNOWN, FIXED], "", 0),
        ([NEW], "", 1),
        ([], "too few walks", 2),
        ([NEW], "too few walks", 1),
    ],
)
def test_exit_codes(kinds: "list[str]", problem: str, code: int) -> None:
    step = Step("fuzz", problems=[problem] if problem else [])
    assert Verdict([step], [entry(kind) for kind in kinds]).exit == code


def test_a_gate_that_did_nothing_is_not_green() -> None:
    assert Verdict().exit == 2


def run_with(folder: Path, stats: "dict[str, object]") -> Run:
    run = Run(FuzzOptions(("a",), 1.0, None, 1, 1, folder))

    class Fake:
        target = "a"
        walks = int(str(stats["walks"]))

    process = Fake()
    process.stats = stats  # type: ignore[attr-defined]
    run.processes.append(process)  # type: ignore[arg-type]
    return run


def test_what_makes_a_run_unbelievable(tmp_path: Path) -> None:
    good: dict[str, object] = {
        "walks": 90_000,
        "unmutated_java": 100,
        "unmutated_java_succeeded": 100,
        "by_scenario": {"c1": {"walks": 5}},
        "unavailable": {"ffi-upcall": "needs JDK 22 or later"},
    }
    scenarios = ["c1", "ffi-upcall"]
    assert fuzz_step.problems(run_with(tmp_path, good), scenarios, 5000) == []
    few = fuzz_step.problems(run_with(tmp_path, {**good, "walks": 10}), scenarios, 5000)
    assert "10 walks only" in few[0]
    never = fuzz_step.problems(run_with(tmp_path, good), [*scenarios, "osr"], 5000)
    assert never == ["never walked: osr"]
    broken = {**good, "unavailable": {"osr": "its victim did not start"}}
    assert (
        "osr is not available" in fuzz_step.problems(run_with(tmp_path, broken), scenarios, 5000)[0]
    )
    low = {**good, "unmutated_java_succeeded": 10}
    assert "only 10.0%" in fuzz_step.problems(run_with(tmp_path, low), scenarios, 5000)[0]


def test_stress_has_to_walk_in_both_modes() -> None:
    cells = [{"mode": "same-thread", "samples": 9}, {"mode": "separate-thread", "samples": 0}]
    assert stress_step.unstressed({"cells": cells}) == ["no walk was made in separate-thread mode"]
    assert len(stress_step.unstressed({})) == 2
    assert stress_step.unstressed({"cells": cells}, ["same-thread"]) == []


def test_what_is_judged_is_one_thing(tmp_path: Path) -> None:
    for request in (Request(), Request(source=tmp_path, jdk=tmp_path)):
        with pytest.raises(FramestormError):
            subject.check(request)
    (tmp_path / "configure").touch()
    with pytest.raises(FramestormError, match="is a source tree"):
        subject.base_request(tmp_path, Request(jdk=tmp_path))
    with pytest.raises(FramestormError, match=r"is no \.so"):
        subject.base_request(tmp_path, Request(plugin=str(tmp_path / "w.so")))
    assert subject.base_request(tmp_path, Request(source=tmp_path, variant="plain")) == Request(
        source=tmp_path, variant="plain"
    )


def test_the_budget_leaves_time_for_every_step() -> None:
    for base in (False, True):
        budget = Budget(480, base)
        spent = budget.fuzz() + budget.fuzz_base() + budget.sort()
        assert budget.sort_base() <= budget.sort()
        others = budget.stress() + (budget.step() + 20) * (1 + base)
        assert 480 - 50 < spent + others <= 480 + 1
        assert (budget.fuzz_base() > 0) == base
