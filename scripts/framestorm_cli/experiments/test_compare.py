"""`framestorm compare` on native programs that do what the test says."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from framestorm_cli.base import paths
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.experiments import compare_runs
from framestorm_cli.fuzz.target_process import ENGINES

GUIDED = {"reached": [[0.2, [1, 2, 3]], [0.5, [4]]], "corpus": ["one", "two"]}
UNGUIDED: dict[str, Any] = {"reached": [[0.2, [1, 2, 3]]]}


def compare(framestorm: Run, fakes: FakePrograms, out: Path, *more: str) -> tuple[int, str, str]:
    return framestorm(
        "compare", "--jdk", fakes.tools.jdk.home, "--target", "fuzz_stack", "--engine", "libfuzzer",
        "--seconds", "1", "--seed", "5", "--out", out, *more,
    )  # fmt: skip


def value_after(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_the_plan_alternates_and_gives_both_kinds_the_same_seeds() -> None:
    plan = list(compare_runs.plan(("fuzz_stack",), ENGINES, 2, 7))
    assert [(one.engine, one.guided) for one in plan] == [
        ("libfuzzer", True), ("libfuzzer", False), ("afl", True), ("afl", False),
        ("libfuzzer", False), ("libfuzzer", True), ("afl", False), ("afl", True),
    ]  # fmt: skip
    seeds = {guided: [one.seed for one in plan if one.guided == guided] for guided in (True, False)}
    assert seeds[True] == seeds[False]
    assert len(set(seeds[True])) == 2
    assert len({one.name for one in plan}) == len(plan)


def test_what_the_runs_reach_becomes_table_picture_and_json(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    early = fakes.fault("a", "frame::sender", t=0.25)
    late = fakes.fault("b", "frame::sender_for_compiled_frame", "frame::sender", t=0.75)
    fakes.plan(
        "fuzz_stack",
        {**GUIDED, "findings": [late, early]},
        {**UNGUIDED, "findings": [early]},
    )
    code, out, err = compare(framestorm, fakes, tmp_path / "out", "--repetitions", "1")
    assert code == 0, err
    guided, unguided = fakes.starts("fuzz_stack")
    assert ("--unguided" in guided, "--unguided" in unguided) == (False, True)
    assert "--record-edges" in guided
    assert "--record-edges" in unguided
    data = json.loads((tmp_path / "out" / "compare.json").read_text())
    one, other = data["runs"]
    assert (one["guided"], one["kept"], one["walks"]) == (True, 2, 1000)
    assert (other["guided"], other["kept"]) == (False, 0)
    assert one["edges"] == [[0.2, 3], [0.5, 4]]
    assert other["edges"] == [[0.2, 3]]
    assert one["buckets"] == [[0.25, 1], [0.75, 2]]
    assert other["buckets"] == [[0.25, 1]]
    assert len(data["buckets"]) == 2
    assert "| 4 (4–4) | 1 of 1 pairs |" in out  # noqa: RUF001
    with Image.open(tmp_path / "out" / "compare.png") as picture:
        assert picture.width > 400
        assert len(picture.getcolors(1 << 20) or []) > 10


def test_guided_that_is_not_ahead_is_said_and_fails(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", UNGUIDED, GUIDED)  # the first is the guided one
    code, out, _ = compare(framestorm, fakes, tmp_path / "out", "--repetitions", "1")
    assert code == 1
    assert "guided is not ahead: fuzz_stack with libFuzzer" in out


def test_a_second_process_goes_on_where_the_first_ended(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    again = fakes.fault("a", "frame::sender", t=0.5)
    fakes.plan(
        "fuzz_stack",
        {"reached": [[0.5, [1, 2]]], "end": "not-reusable", "after": 0.5},
        {"reached": [[0.1, [2, 3]]], "findings": [again]},
        {"reached": [[0.5, [1]]]},
    )
    code, _, err = compare(
        framestorm, fakes, tmp_path / "o", "--repetitions", "1", "--seconds", "4"
    )
    assert code == 0, err
    one = json.loads((tmp_path / "o" / "compare.json").read_text())["runs"][0]
    assert one["processes"] == 2
    assert one["edges"] == [[0.5, 2], [2.1, 3]]  # an edge of both processes counts once
    assert one["buckets"] == [[2.5, 1]]


def test_a_death_is_found_when_the_process_ends(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {**GUIDED, "end": "die", "after": 0.5}, GUIDED, UNGUIDED)
    code, _, err = compare(
        framestorm, fakes, tmp_path / "o", "--repetitions", "1", "--seconds", "4"
    )
    assert code == 0, err
    one = json.loads((tmp_path / "o" / "compare.json").read_text())["runs"][0]
    assert one["buckets"] == [[2.0, 1]]


def test_a_jvm_without_counters_cannot_be_compared(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {})
    code, _, err = compare(framestorm, fakes, tmp_path / "out")
    assert code == 2
    assert "no coverage counters" in err
    assert "--jdk instrumented" in err


def test_an_earlier_comparison_is_shown_again(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", GUIDED, UNGUIDED)
    _, first, _ = compare(framestorm, fakes, tmp_path / "out", "--repetitions", "1")
    table = (tmp_path / "out" / "compare.md").read_text()
    assert table in first
    old = tmp_path / "out" / "compare.json"
    code, out, err = framestorm("compare", "--again", old, "--out", tmp_path / "new")
    assert code == 0, err
    assert table in out
    assert (tmp_path / "new" / "compare.png").exists()
    assert len(fakes.starts("fuzz_stack")) == 2
    old.write_text('{"format": 1, "runs": [{}], "seconds": 1}')
    code, _, err = framestorm("compare", "--again", old)
    assert code == 2
    assert "is no compare.json" in err


def test_afl_starts_both_kinds_from_the_same_inputs(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.install_afl()
    seeds = tmp_path / "seeds" / "fuzz_stack"
    seeds.mkdir(parents=True)
    (seeds / "one.txt").write_text("framestorm-input 1\nscenario c1\n")
    monkeypatch.setattr(paths, "SEEDS", seeds.parent)
    monkeypatch.setenv("PATH", f"{fakes.folder}:/usr/bin:/bin")
    monkeypatch.setattr("framestorm_cli.base.packages.ensure", lambda _=(): None)
    fakes.plan("fuzz_stack", {**GUIDED, "end": "hang"}, {**UNGUIDED, "end": "hang"})
    code, out, err = framestorm(
        "compare", "--jdk", fakes.tools.jdk.home, "--target", "fuzz_stack", "--engine", "afl",
        "--seconds", "1", "--repetitions", "1", "--out", tmp_path / "o",
    )  # fmt: skip
    assert code == 0, err + out
    guided, unguided = fakes.starts("fuzz_stack")
    for arguments in (guided, unguided):
        own = Path(value_after(arguments, "--corpus"))
        assert [file.read_bytes() for file in own.iterdir()] == [b"FAKEencoded"]
    assert ("--unguided" in guided, "--unguided" in unguided) == (False, True)
