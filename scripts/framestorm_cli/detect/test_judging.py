"""Which finding is the planted bug, with replays that say what the test says."""

from pathlib import Path

import pytest

from framestorm_cli.binaries.symbols import Frame
from framestorm_cli.detect import judging
from framestorm_cli.detect.judging import Judgement
from framestorm_cli.detect.looking import Timed
from framestorm_cli.findings.finding import Finding, Signature

A, B = (Signature("fault", "", (f"frame::{name}",)) for name in "ab")


class Side(judging.Side):
    """The share of tries that comes back, by key."""

    def __init__(self, shows: dict[str, float]) -> None:
        object.__setattr__(self, "shows", shows)
        object.__setattr__(self, "asked", [])

    shows: dict[str, float]
    asked: list[str]

    def hits(self, finding: Finding, tries: int) -> tuple[int, int]:
        self.asked.append(finding.key)
        return round(tries * self.shows.get(finding.key, 0.0)), tries


def timed(seconds: float, key: str, signature: Signature) -> Timed:
    frames = [Frame(name, "", None, name, 0) for name in signature.frames]
    artifact = Path("/artifacts") / key
    return Timed(seconds, Finding(key=key, signature=signature, frames=frames, artifact=artifact))


def test_the_earliest_that_comes_back_with_the_bug_and_not_without_it() -> None:
    found = [timed(9, "late", A), timed(5, "early", A), timed(1, "everywhere", B)]
    here, there = Side({"early": 1.0, "late": 1.0, "everywhere": 1.0}), Side({"everywhere": 1.0})
    judged = judging.detect(found, frozenset(), here, there, 10)
    detection = judged.detection
    assert detection is not None
    assert judged.of_control == {B}
    assert (detection.timed.seconds, detection.replayed, detection.replays) == (5, 10, 10)


def test_what_never_comes_back_is_no_detection() -> None:
    assert judging.detect([timed(5, "flaky", A)], frozenset(), Side({}), Side({}), 10) == Judgement(
        None
    )


class Counted(judging.Side):
    """Fresh JVMs, one after the other: whether each shows the finding."""

    def __init__(self, *shown: bool) -> None:
        object.__setattr__(self, "left", list(shown))

    left: list[bool]

    def hits(self, finding: Finding, tries: int) -> tuple[int, int]:
        made = [self.left.pop(0) for _ in range(tries)]
        return sum(made), len(made)


YES, NO = (True,), (False,)


@pytest.mark.parametrize(
    ("here", "there", "judged"),
    [
        (YES * 9 + NO, NO * 10, 9),
        (YES * 2 + NO * 8, NO * 10, None),  # both sides may be alike
        (YES * 4 + NO * 6, NO * 6 + YES, {A}),  # three tries were too few
        (YES * 10, NO * 3, 10),
    ],
)
def test_what_comes_back_now_and_then_is_told_apart_by_counting(
    here: tuple[bool, ...], there: tuple[bool, ...], judged: int | set[Signature] | None
) -> None:
    sides = Counted(*here), Counted(*there)
    done = judging.detect([timed(5, "flaky", A)], frozenset(), *sides, 10)
    assert (done.detection.replayed if done.detection else done.of_control or None) == judged
    assert [side.left for side in sides] == [[], []]


def test_a_bug_behind_a_signature_of_the_control_is_found_by_its_place() -> None:
    found = [timed(1, "own", A), timed(2, "planted", A)]
    here, there = Side({"own": 1.0, "planted": 1.0}), Side({"own": 1.0})
    detection = judging.detect(found, {A}, here, there, 3).detection
    assert detection is not None
    assert detection.timed.finding.key == "planted"
    assert "own" not in here.asked


def test_new_signatures_are_tried_before_those_of_the_control() -> None:
    here = Side({"new": 1.0, "known": 1.0})
    judging.detect([timed(1, "known", A), timed(2, "new", B)], {A}, here, Side({}), 3)
    assert set(here.asked) == {"new"}


def test_what_replays_of_another_run_have_told_is_not_replayed() -> None:
    found = [timed(1, "everywhere", B), timed(2, "planted", A)]
    here, there = Side({"everywhere": 1.0, "planted": 1.0}), Side({"everywhere": 1.0})
    detection = judging.detect(found, frozenset(), here, there, 10, {A}).detection
    assert detection is not None
    assert (detection.timed.seconds, detection.replayed, detection.replays) == (2, 0, 0)
    assert "planted" not in here.asked + there.asked
    assert judging.detect(found, {A}, here, there, 10, {A}).detection is not None
    assert "planted" in here.asked, "the control has that signature, too"


def test_a_clause_that_the_control_never_showed_is_not_left_out() -> None:
    theirs = [timed(n, f"own{n}", Signature("fault", "", (f"frame::{n}",))) for n in range(40)]
    planted = timed(50, "planted", Signature("contract", "trace-during-collection", ()))
    detection = judging.detect(
        [*theirs, planted], {A}, Side({"planted": 1.0}), Side({}), 3
    ).detection
    assert detection is not None
    assert detection.timed == planted


def test_without_replay_only_a_signature_that_the_control_never_showed_counts() -> None:
    found = [timed(1, "known", A), timed(7, "x", B), timed(3, "y", B)]
    detection = judging.detect_by_signature(found, {A}).detection
    assert detection is not None
    assert detection.timed.seconds == 3
    assert judging.detect_by_signature(found, {A, B}).detection is None


def test_a_right_report_names_the_function() -> None:
    finding = timed(1, "x", A).finding
    assert judging.names_it(finding, ["frame::a"]) is True
    assert judging.names_it(finding, ["frame::sender"]) is False
    assert judging.names_it(finding, []) is None
