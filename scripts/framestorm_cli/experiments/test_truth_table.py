"""The page of `framestorm truth`."""

from framestorm_cli.experiments.truth_table import _side_by_side
from framestorm_cli.stress.proportion import Proportion


def test_walkers_stand_side_by_side() -> None:
    wrong = [
        ("25", "c2", "one", Proportion.of(1, 2_000)),
        ("25", "c2", "other", Proportion.of(0, 10)),
        ("17", "c2", "one", Proportion.of(3, 4)),
    ]
    assert _side_by_side("code", wrong).splitlines()[2:] == [
        "| 25 | c2 | 0.050 % of 2,000 | 0 % of 10 |",
        "| 17 | c2 | 75 % of 4 | - |",
    ]
