"""Verification: which artifacts are replayed how often, and which one a bucket is reported with."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.replay import replaying, verifying
from framestorm_cli.replay.replaying import Request, Try
from framestorm_cli.replay.verifying import Verifier
from framestorm_cli.triage.buckets import Bucket, Verification


def bucket(name: str, artifacts: int) -> Bucket:
    signature = Signature("fault", "", (name,))
    found = [
        Finding(name, "fault", artifact=Path(f"{name}{n}"), text="x" * n, signature=signature)
        for n in range(artifacts)
    ]
    return Bucket(signature, found or [Finding(name, "fault", signature=signature)], id=name)


class Jvms:
    """Stands for the fresh JVMs: `rates` says which of an artifact's tries hit, by turns."""

    def __init__(self, rates: dict[str, str]) -> None:
        self.rates = rates
        self.tried: list[str] = []
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()
        self._turn: dict[str, int] = defaultdict(int)

    def run_try(
        self, _tools: object, _symbols: object, request: Request, folder: Path, stop: Any
    ) -> Try | None:
        name = str(request.artifact)
        with self._lock:
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            self.tried.append(name)
            rate = self.rates.get(name, "-")
            sign = rate[self._turn[name] % len(rate)]
            self._turn[name] += 1
        time.sleep(0.005)
        with self._lock:
            self._running -= 1
        if sign == "!":
            raise FramestormError("scenario gone")
        if sign == "^":
            raise KeyboardInterrupt
        assert request.signature is not None
        hit = Finding("k", "fault", signature=request.signature) if sign == "+" else None
        return Try(folder, matched=hit)


Verify = Callable[..., tuple[dict[str, tuple[Finding, Verification]], Jvms, Verifier]]


@pytest.fixture
def verify(fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    def run(found: list[Bucket], rates: dict[str, str], **options: Any) -> Any:
        jvms = Jvms(rates)
        monkeypatch.setattr(replaying, "run_try", jvms.run_try)
        base: dict[str, Any] = {"tries": 4, "jobs": 1, **options}
        verifier = Verifier(fakes.tools, Symbolizer(), tmp_path / "verify", **base)
        return verifier.verify(found), jvms, verifier

    return run


def artifact(known: dict[str, tuple[Finding, Verification]], name: str) -> str:
    return str(known[name][0].artifact)


def test_an_artifact_is_left_at_its_first_miss(verify: Verify) -> None:
    known, jvms, _ = verify([bucket("a", 3)], {"a0": "+-", "a1": "+"})
    assert jvms.tried == ["a0", "a0", "a1", "a1", "a1", "a1"]
    assert artifact(known, "a") == "a1"
    assert str(known["a"][1]) == "reproduced, 4 of 4 fresh JVMs"
    assert [(one.artifact, one.tries, one.reproduced) for one in known["a"][1].tried] == [
        ("a0", 2, 1),
        ("a1", 4, 4),
    ]


def test_the_rate_of_the_best_is_known_when_all_missed(verify: Verify) -> None:
    known, jvms, _ = verify([bucket("a", 2)], {"a1": "+-"}, tries=6)
    assert jvms.tried == ["a0", "a1", "a1", "a1", "a1", "a1", "a1"]
    assert artifact(known, "a") == "a1"
    assert known["a"][1].status == "sometimes reproduced"
    assert not known["a"][1].reproduces
    assert str(known["a"][1]) == (
        "sometimes reproduced, 3 of 6 fresh JVMs; 1 artifact more did no better"
    )


def test_nine_of_ten_reproduce(verify: Verify) -> None:
    known, _, _ = verify([bucket("a", 1)], {"a0": "+++++++++-"}, tries=10)
    assert known["a"][1].reproduces
    known, _, _ = verify([bucket("a", 1)], {"a0": "++++++++--"}, tries=10)
    assert not known["a"][1].reproduces


def test_what_never_comes_back_is_given_up_soon(verify: Verify) -> None:
    known, jvms, _ = verify([bucket("a", 9), bucket("b", 1)], {}, tries=10)
    assert [jvms.tried.count(f"a{number}") for number in range(9)] == [1] * 5 + [0] * 4
    assert jvms.tried.count("b0") == verifying.LEAST_TRIES
    assert str(known["a"][1]) == "not reproduced in 5 fresh JVMs with 5 artifacts"
    assert str(known["b"][1]) == "not reproduced in 3 fresh JVMs with 1 artifact"


def test_no_bucket_takes_the_others_turn(verify: Verify) -> None:
    _, jvms, _ = verify([bucket("a", 1), bucket("b", 1), bucket("c", 1)], dict.fromkeys(
        ("a0", "b0", "c0"), "+"))  # fmt: skip
    assert jvms.tried == ["a0", "b0", "c0"] * 4


def test_jvms_run_at_once(verify: Verify) -> None:
    rates = dict.fromkeys(("a0", "b0", "c0"), "+")
    _, jvms, _ = verify([bucket(name, 1) for name in "abc"], rates, jobs=2, tries=10)
    assert jvms.most_at_once == 2
    # One bucket alone uses both, too.
    _, jvms, _ = verify([bucket("a", 1)], rates, jobs=2, tries=10)
    assert jvms.most_at_once == 2
    assert jvms.tried == ["a0"] * 10


def test_when_time_is_over_every_bucket_still_has_its_least(verify: Verify) -> None:
    found = [bucket(name, 1) for name in "abc"]
    known, jvms, _ = verify(found, {"a0": "+", "b0": "+"}, tries=10, soft_limit=-1.0)
    assert len(jvms.tried) == 3 * verifying.LEAST_TRIES
    assert str(known["a"][1]) == "reproduced, 3 of 3 fresh JVMs"
    assert known["c"][1].status == "not reproduced"


def test_what_could_not_be_tried_says_why(verify: Verify) -> None:
    known, _, _ = verify([bucket("a", 1), bucket("b", 0)], {"a0": "!"})
    assert str(known["a"][1]) == "not verified (replay failed: scenario gone)"
    assert str(known["b"][1]) == "not verified (no artifact was recorded)"


def test_an_interrupt_keeps_what_is_known(verify: Verify) -> None:
    found = [bucket("a", 1), bucket("b", 1)]
    known, _, verifier = verify(found, {"a0": "+", "b0": "^"})
    assert verifier.interrupted
    assert str(known["a"][1]) == "not verified (interrupted; 1 of 1 had come back)"
    assert str(known["b"][1]) == "not verified (interrupted)"
    known, _, _ = verify([bucket("a", 1), bucket("b", 1)], {"a0": "+", "b0": "+++^"})
    assert str(known["a"][1]) == "reproduced, 4 of 4 fresh JVMs"


def test_a_known_cause_is_confirmed_once(verify: Verify) -> None:
    found = [bucket("a", 2), bucket("b", 1), bucket("c", 2)]
    rates = {"a0": "+", "b0": "+", "c1": "+"}
    known, jvms, _ = verify(found, rates, confirm=lambda one: one.id in "ac")
    assert jvms.tried.count("a0") == 1
    assert str(known["a"][1]) == "reproduced, 1 of 1 fresh JVM"
    assert jvms.tried.count("b0") == 4
    # One that does not come back is looked at as any other.
    assert artifact(known, "c") == "c1"
    assert known["c"][1].reproduces


def test_what_was_replayed_while_buckets_were_found_counts(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvms = Jvms(dict.fromkeys(("a0", "b0"), "+"))
    monkeypatch.setattr(replaying, "run_try", jvms.run_try)
    verifier = Verifier(fakes.tools, Symbolizer(), tmp_path / "v", 3, 2)
    came: list[str] = []
    while len(came) < 2:
        came += [one.id for one, _ in verifier.look([bucket("a", 1), bucket("b", 1)])]
        assert jvms.most_at_once <= 1
    assert came == ["a", "b"]
    assert verifier.look([bucket("a", 1), bucket("b", 1)]) == []
    assert sorted(jvms.tried) == ["a0", "b0"], "each is looked at once"
    assert verifier.first_hit is not None
    known = verifier.verify([bucket("a", 1), bucket("b", 1)])
    assert sorted(jvms.tried) == ["a0"] * 3 + ["b0"] * 3
    assert str(known["b"][1]) == "reproduced, 3 of 3 fresh JVMs"


def test_a_try_that_does_not_end_is_ended(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "TRY_LIMIT", 0.3)
    fakes.plan("replay", {"end": "hang"})
    signature = Signature("fault", "", ())
    hanging = Finding("k", "fault", artifact=tmp_path / "a.bin", signature=signature)
    verifier = Verifier(fakes.tools, Symbolizer(), tmp_path / "v", 1, 1, slowest_start=0.0)
    known = verifier.verify([Bucket(signature, [hanging], "b01")])
    assert str(known["b01"][1]) == "not reproduced in 1 fresh JVMs with 1 artifact"
    assert not (tmp_path / "v").exists()


def test_every_bucket_is_told_about_once(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "run_try", Jvms({"a0": "+"}).run_try)
    told: list[tuple[int, str]] = []
    verifier = Verifier(fakes.tools, Symbolizer(), tmp_path / "v", 2, 2)
    verifier.verify(
        [bucket("a", 1), bucket("b", 1)], lambda done, jvms, line: told.append((done, line))
    )
    lines = [line for _, line in told if line]
    assert sorted(lines) == [
        "a reproduced, 2 of 2 fresh JVMs",
        "b not reproduced in 2 fresh JVMs with 1 artifact",
    ]
    assert told[-1][0] == 2
