"""The added walkers' own tests as a contestant, for mutants and for planted bugs."""

import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from framestorm_cli.detect import measuring, walker_tests
from framestorm_cli.detect.conftest import MUTANT, ONE, planned, surveyed
from framestorm_cli.detect.looking import Task
from framestorm_cli.detect.measuring import Kill
from framestorm_cli.findings.finding import Signature
from framestorm_cli.native import toolchain

# Four mutants act in it: it fails with the third, with the fourth in one test, and with the fifth once.
A_TEST = """
import os, pathlib, struct, sys
name, mutant = sys.argv[1], int(os.environ.get("FRAMESTORM_MUTANT", "0"))
if name == "skipped":
    sys.exit(print("[  SKIPPED ]"))
if mutant < 0 and name != "broken":
    with open(os.environ["FRAMESTORM_CANARY"], "r+b") as counts:
        for number in (2, 3, 4, 5):
            counts.seek(48 + 16 * number)
            acted = struct.unpack("<2Q", counts.read(16))[1] + 9
            counts.seek(48 + 16 * number)
            counts.write(struct.pack("<2Q", acted, acted))
once = pathlib.Path(f"mutant-{mutant}")
chance = mutant == 5 and not once.exists()
once.touch()
bug = name == "bug" and "planted" in os.environ["JDK_UNDER_TEST"]
rare = mutant == 4 and name == "rare"
sys.exit(mutant == 3 or rare or chance or name == "broken" or bug)
"""


@pytest.fixture
def the_tests_are(
    homes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    script = tmp_path / "a_test.py"
    script.write_text(A_TEST, encoding="utf-8")

    def are(*names: str) -> None:
        every = [walker_tests.Test(name, [sys.executable, str(script), name]) for name in names]
        monkeypatch.setattr(walker_tests, "_tests", lambda _of, **_: list(every))

    monkeypatch.setattr(
        toolchain, "test_environment", lambda jdk: {"JDK_UNDER_TEST": str(jdk.home)}
    )
    monkeypatch.setattr(toolchain, "build", lambda _targets: None)
    return are


def test_the_walkers_tests_kill_the_mutants_that_they_fail_with(
    the_tests_are: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those that they fail with by chance, and not in a test that fails or is skipped without one."""
    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    kill = Kill(2.5, Signature("contract", "wrong-frames", ()), "truth")
    before = surveyed("fuzz_stack", kills={2: kill})
    (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(before) + b"\n")
    the_tests_are("right", "broken", "skipped")
    counted = replace(ONE.against(), environment={"FRAMESTORM_MUTANT": "-1"})
    one = replace(
        planned(tmp_path),
        subject=counted,
        contestant="walker-tests",
        parts=("a_test",),
        budget=600.0,
    )
    made = measuring.run(one)
    assert made.problem == ""
    assert made.walks == 1
    assert {number: acted for number, (_, acted) in made.acts.items()} == dict.fromkeys(
        (2, 3, 4, 5), 9
    )
    assert made.tried == dict.fromkeys((3, 4, 5), 1)
    assert made.differed == {3: 1}
    assert {number: kill.signature.clause for number, kill in made.kills.items()} == {3: "right"}
    the_tests_are("broken", "skipped")
    assert "none of 2 tests ran" in measuring.run(one).problem
    the_tests_are(*"abcd", "rare")
    assert measuring.run(one).kills[4].signature.clause == "rare"


def test_tests_that_take_long_try_mutants_last(
    the_tests_are: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant's first one is the one that is most about it."""
    seconds = {"long": 60.0, "quick": 1.0, "about 2": 1.0}
    acting = {"long": (2, 3, 4), "quick": (2, 3), "about 2": (2,)}
    now = 0.0
    tried = []

    def passes(task: Task, test: walker_tests.Test, environment: dict[str, str], _: float) -> bool:
        nonlocal now
        now += seconds[test.name]
        if number := environment.get("FRAMESTORM_MUTANT"):
            tried.append((test.name, int(number)))
        elif task.mutants:
            counts = bytearray(task.mutants.read_bytes())
            for one in acting[test.name]:
                acted = struct.unpack_from("<2Q", counts, 48 + 16 * one)[1] + 1
                struct.pack_into("<2Q", counts, 48 + 16 * one, acted, acted)
            task.mutants.write_bytes(counts)
        return True

    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    the_tests_are(*seconds)
    monkeypatch.setattr(walker_tests, "_passes", passes)
    monkeypatch.setattr(walker_tests, "time", SimpleNamespace(monotonic=lambda: now))
    one = replace(planned(tmp_path), contestant="walker-tests", parts=("a_test",), budget=600.0)
    assert measuring.run(one).problem == ""
    assert tried == [
        ("quick", 3), ("about 2", 2), ("quick", 2), ("long", 4), ("long", 3), ("long", 2),
    ]  # fmt: skip


def test_a_planted_bug_is_found_by_the_walkers_tests_that_fail_with_it_alone(
    the_tests_are: Callable[..., None], tmp_path: Path
) -> None:
    the_tests_are("right", "broken", "bug")
    one = replace(planned(tmp_path), contestant="walker-tests", budget=600.0)
    control = measuring.run(replace(one, subject=ONE.against()))
    assert [str(signature) for signature in control.signatures] == ["failed_test broken"]
    (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(control) + b"\n")
    made = measuring.run(one)
    assert str(made.signature) == "failed_test bug"
    assert made.found is not None
