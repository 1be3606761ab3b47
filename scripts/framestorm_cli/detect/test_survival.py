"""Curves and tests of runs, some of which ended before they found anything."""

from pathlib import Path

from PIL import Image

from framestorm_cli.base.machine import machine
from framestorm_cli.detect import page, survival, tables
from framestorm_cli.detect.measuring import Measured


def runs(contestant: str, *found: float | None) -> list[Measured]:
    return [
        Measured(
            "unextended-sp-below-stack", contestant, ("asgct",), number, 1, 60.0, 60.0, 55.0, 9,
            found=seconds, triggered=1,
        )
        for number, seconds in enumerate(found, start=1)
    ]  # fmt: skip


FAST = runs("libfuzzer", *(1.0 + number / 10 for number in range(10)))
SLOW = runs("sampling", 50.0, 55.0, *[None] * 8)


def test_a_contestant_that_is_faster_is_told_from_one_that_is_slower() -> None:
    (pair,) = survival.compared([*FAST, *SLOW])
    assert (pair.one, pair.other, pair.runs, pair.others) == ("libfuzzer", "sampling", 10, 10)
    assert pair.times < 0.001
    assert pair.share < 0.01


def test_equal_contestants_are_not_told_apart() -> None:
    (pair,) = survival.compared(
        [*FAST, *runs("afl", *(1.05 + number / 10 for number in range(10)))]
    )
    assert pair.times > 0.05
    assert pair.share == 1.0


def test_contestants_on_different_bugs_are_not_compared() -> None:
    other = runs("afl", 1.0)
    other[0].bug = "another"
    assert survival.compared([*FAST, *other]) == []


def test_runs_that_found_nothing_hold_the_curve_down() -> None:
    assert survival.curve(SLOW)[1][-1] < 0.25
    assert tables.median_time(SLOW) is None
    assert tables.median_time(FAST) == 1.4


def test_a_run_is_censored_at_its_end() -> None:
    """One that found in the 70th second, in the restart of a JVM, was not the last to be there."""
    late, without = runs("afl", 70.0, None)
    without.wall = 80.0
    assert survival.curve([late, without])[1] == [0.5, 0.5]


def test_the_page_shows_curve_tables_and_first_reports(tmp_path: Path) -> None:
    page.write([*FAST, *SLOW], machine(), tmp_path)
    assert Image.open(tmp_path / page.CURVE).size[0] > 400
    text = (tmp_path / page.PAGE).read_text()
    assert "unextended-sp-below-stack" in text
    assert "data:image/png;base64," in text
    assert [one.found for one in tables.first_reports([*FAST, *SLOW])] == [1.0, 50.0]
