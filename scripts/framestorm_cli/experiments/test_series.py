"""What runs come to, from canned ones."""

from framestorm_cli.experiments import compare_table
from framestorm_cli.experiments.series import Band, Measured, at, band, distinct, paired

SERIES = [(0.5, 10), (2.0, 12)]


def run(edges: int, *, guided: bool, repetition: int = 1, engine: str = "afl") -> Measured:
    """Reaches `edges` after 6 s, ten less from the start."""
    return Measured(
        engine, "fuzz_stack", guided, repetition, 1, 12.0, 2400, 1, 7 if guided else 0,
        [(0.0, edges - 10), (6.0, edges)], [(3.0, 2)],
    )  # fmt: skip


def runs(guided: list[int], unguided: list[int]) -> list[Measured]:
    return [
        run(edges, guided=kind, repetition=number)
        for kind, values in ((True, guided), (False, unguided))
        for number, edges in enumerate(values, start=1)
    ]


def test_a_value_holds_from_its_time_on() -> None:
    assert [at(SERIES, t) for t in (0.0, 0.5, 1.9, 2.0, 99.0)] == [0, 10, 10, 12, 12]


def test_a_thing_counts_once_and_from_when_it_was_first_found() -> None:
    # Not in order: buckets come by case, not by time.
    found = [(3.0, ["b"]), (1.0, ["a"]), (2.0, ["a"]), (1.0, ["c"]), (4.0, [])]
    assert distinct(found) == [(1.0, 2), (3.0, 3)]
    assert distinct([]) == []


def test_the_band_is_of_all_runs_at_that_time() -> None:
    three = runs([100, 130, 110], [])
    assert band(three, "edges", 1.0) == Band(100, 90, 120)
    assert band(three, "edges", 6.0) == Band(110, 100, 130)
    assert band(three, "buckets", 1.0) == Band(0, 0, 0)


def test_who_is_ahead() -> None:
    (pair,) = paired(runs([100, 90, 80], [90, 70]))
    # 100 beats both, 90 ties with one and beats the other, 80 beats one.
    assert pair.ahead("edges", 12.0) == 4.5
    assert pair.pairs == 6
    (other,) = paired(runs([70, 90], [100, 90, 80]))
    assert other.ahead("edges", 12.0) == 1.5


def test_kinds_without_an_opponent_are_left_out() -> None:
    alone = [run(5, guided=True, engine="libfuzzer")]
    assert [pair.engine for pair in paired(alone + runs([1], [2]))] == ["afl"]
    assert paired(alone) == []


def test_the_table_says_medians_extremes_and_who_is_ahead() -> None:
    text = compare_table.over_time(runs([1100, 1300, 1200], [1000, 1010, 1020]), 12.0)
    head, _, guided, unguided, *_ = text.splitlines()
    assert head == "| target | engine | distinct |  | 1 s | 3 s | 6 s | 12 s | guided is ahead in |"
    late = "1,200 (1,100–1,300)"  # noqa: RUF001
    early = "1,190 (1,090–1,290)"  # noqa: RUF001
    assert guided == (
        f"| fuzz_stack | AFL++ | walker edges | guided | {early} | {early} | {late} | {late} "
        "| 9 of 9 pairs |"
    )
    assert unguided.startswith("|  |  |  | unguided | 1,000 (990–1,010) |")  # noqa: RUF001


def test_walks_are_said_beside_it() -> None:
    lines = compare_table.how_much(runs([1100], [1000])).splitlines()
    assert lines[2:] == [
        "| fuzz_stack | AFL++ | guided | 2,400 | 200 | 7 | 1 |",
        "| fuzz_stack | AFL++ | unguided | 2,400 | 200 | 0 | 1 |",
    ]
