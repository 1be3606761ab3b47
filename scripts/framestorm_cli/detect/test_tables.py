"""Tables tell what was missed from what could not be found."""

from framestorm_cli.base.machine import machine
from framestorm_cli.detect import catalogue, tables
from framestorm_cli.detect.conftest import measured
from framestorm_cli.detect.subjects import CONTROL


def test_tables_tell_missed_from_never_triggered() -> None:
    runs = [
        measured(
            CONTROL, None, cpu=1800.0, signatures=[{"kind": "fault", "clause": "", "frames": []}]
        ),
        measured("found", 4.0, triggered=9, names_it=True, replayed=9, replays=10),
        measured("missed", None, triggered=2),
        measured("untouched", None),
    ]
    assert tables.missed(runs) == ["missed"]
    starved = measured(next(iter(catalogue.bugs())), None, cpu=15.0)
    assert "1 of" in (said := tables.head([starved], machine()))
    assert "used 25%" in said
    by_contestant = tables.contestant_rows(runs)
    assert by_contestant[0][:4] == (
        "libfuzzer", "1 of 3 (6.1 % to 79 %)", "-", "1 of 2 (9.5 % to 91 %)",
    )  # fmt: skip
    assert by_contestant[0][-1] == "2"  # one report in half an hour
    assert tables.median_time(runs[1:]) is None


def test_what_cannot_be_planted_counts_as_not_found() -> None:
    """Of all that the catalogue lists; a fix of two bugs is found when both are."""
    listed = catalogue.listed()
    planted = set(catalogue.bugs())
    every = [measured(bug, 1.0, triggered=1) for bug in planted]
    brought_back = [bugs for bugs in listed.values() if bugs]
    assert len(brought_back) < len(listed)
    (row,) = tables.contestant_rows(every)
    assert row[1].startswith(f"{len(planted)} of {len(planted)} ")
    assert row[2].startswith(f"{len(brought_back)} of {len(listed)} ")
    one = next(bugs for bugs in brought_back if len(bugs) > 1)
    missed = next(iter(one))
    without = [measured(missed, None) if run.bug == missed else run for run in every]
    (row,) = tables.contestant_rows(without)
    fewer = sum(missed not in bugs for bugs in brought_back)
    assert row[2].startswith(f"{fewer} of {len(listed)} ")
    assert tables.contestant_rows(every[1:])[0][2] == "-"
