import pytest

from framestorm_cli.base.paths import TARGETS
from framestorm_cli.fuzz.schedule import SHORTEST, Slice, lanes, lanes_by_runs


@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 8, 17])
@pytest.mark.parametrize("seconds", [10.0, 60.0, 3600.0])
def test_time_is_shared_evenly_and_lanes_are_full(jobs: int, seconds: float) -> None:
    plan = lanes(TARGETS, jobs, seconds)
    per_target = dict.fromkeys(TARGETS, 0.0)
    for lane in plan:
        lengths = [piece.seconds or 0.0 for piece in lane]
        assert sum(lengths) == pytest.approx(seconds, abs=2 * SHORTEST)
        assert sum(lengths) <= seconds + 1e-6
        for piece in lane:
            per_target[piece.target] += piece.seconds or 0.0
    share = seconds * jobs / len(TARGETS)
    for target in TARGETS:
        assert per_target[target] == pytest.approx(share, abs=2 * SHORTEST)


def test_every_target_runs_even_when_there_is_too_little_time() -> None:
    planned = {piece.target for lane in lanes(TARGETS, 1, 1.0) for piece in lane}
    assert planned == set(TARGETS)


def test_one_target_on_two_lanes_runs_twice() -> None:
    assert lanes(["fuzz_stack"], 2, 10.0) == [
        [Slice("fuzz_stack", 10.0)],
        [Slice("fuzz_stack", 10.0)],
    ]


def test_runs_are_shared_without_losing_any() -> None:
    plan = lanes_by_runs(TARGETS, 2, 1003, None)
    pieces = [piece for lane in plan for piece in lane]
    assert sum(piece.runs or 0 for piece in pieces) == 1003
    assert {piece.target for piece in pieces} == set(TARGETS)
    assert all(piece.seconds is None for piece in pieces)
