"""Verification: which artifacts are replayed, and how the time is shared."""

import time
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli import results
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.fuzzing import FuzzOptions, Run
from framestorm_cli.records import Finding
from framestorm_cli.symbols import Symbolizer
from framestorm_cli.triage.buckets import Bucket, Case
from framestorm_cli.triage.report import Verification
from framestorm_cli.triage.signature import Signature


def bucket(name: str, artifacts: int) -> Bucket:
    signature = Signature("fault", "", (name,))
    cases = [
        Case(Finding(key=name, kind="fault", artifact=Path(f"/{name}/{number}.bin")), signature, [])
        for number in range(artifacts)
    ]
    without = Case(Finding(key=name, kind="fault"), signature, [])
    return Bucket(signature, cases or [without], id=name)


@pytest.fixture
def verify_all(fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the rounds with given hits per artifact; returns what is known, and what was tried."""

    def run(found: list[Bucket], hits: dict[str, int], seconds: float = 60.0) -> Any:
        tried: list[tuple[str, float]] = []
        begun = time.monotonic()

        def fake(case: Case, *arguments: Any) -> Verification:
            path = str(case.finding.artifact)
            tried.append((path, arguments[-1] - begun))
            return Verification(3, hits.get(path, 0))

        monkeypatch.setattr(results, "_verify", fake)
        options = FuzzOptions(("fuzz_stack",), 1.0, None, 1, 1, tmp_path)
        known = results._verify_all(
            found, Run(options), fakes.tools, Symbolizer(), 3, begun + seconds
        )
        return known, tried

    return run


def test_the_first_artifact_that_always_comes_back_is_enough(verify_all: Any) -> None:
    known, tried = verify_all([bucket("a", 4)], {"/a/0.bin": 1, "/a/1.bin": 3})
    assert [path for path, _ in tried] == ["/a/0.bin", "/a/1.bin"]
    case, verification = known["a"]
    assert (str(case.finding.artifact), str(verification)) == (
        "/a/1.bin",
        "reproduced, 3 of 3 fresh JVMs",
    )


def test_the_best_is_kept_when_none_always_comes_back(verify_all: Any) -> None:
    known, tried = verify_all([bucket("a", 9)], {"/a/1.bin": 2, "/a/2.bin": 1})
    assert len(tried) == results.CANDIDATES
    assert str(known["a"][0].finding.artifact) == "/a/1.bin"
    assert known["a"][1].status == "sometimes reproduced"


def test_every_bucket_is_tried_once_before_any_is_tried_twice(verify_all: Any) -> None:
    found = [bucket("a", 3), bucket("b", 1), bucket("c", 1)]
    _, tried = verify_all(found, {"/b/0.bin": 3})
    assert [path for path, _ in tried] == [
        "/a/0.bin",
        "/b/0.bin",
        "/c/0.bin",
        "/a/1.bin",
        "/a/2.bin",
    ]
    # A third of the time is the first one's at most.
    assert tried[0][1] == pytest.approx(20.0, abs=1.0)


def test_what_could_not_be_tried_says_why(verify_all: Any) -> None:
    known, tried = verify_all([bucket("a", 1), bucket("b", 0)], {}, seconds=-1.0)
    assert tried == []
    assert str(known["a"][1]) == "not verified (too little time)"
    assert str(known["b"][1]) == "not verified (no artifact was recorded)"
