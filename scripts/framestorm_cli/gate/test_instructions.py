"""Which instructions of two runs are the same, and where one side is worse."""

import msgspec

from framestorm_cli.gate.instructions import Place, Stepped, Way, compared, of, worse
from framestorm_cli.step.results import Blob, Counts, Instruction, Miss, Results, Tally

# push rbp; mov rax, IMMEDIATE; call SOMEWHERE; ret
CODE = "55 48b8{immediate} e8{target} c3"
HERE = CODE.format(immediate="1122334455667788", target="10203040")
ELSEWHERE = CODE.format(immediate="0000000000000000", target="a0b0c0d0")
COUNTS = msgspec.convert(
    {
        "steps": 1, "walked": 1, "judged": 1, "passed": 0, "excursions": 0, "from_outside": 0,
        "outside": 0, "lost": {},
    },
    Counts,
)  # fmt: skip
CALL = 11  # its offset


def run(*blobs: tuple[str, str, int, Tally], sections: dict[str, Tally] | None = None) -> Stepped:
    """Of blobs by name, code, offset of the one instruction that was stepped, and its verdicts."""
    made = [
        Blob("nmethod", name, 4, code.replace(" ", ""), [Instruction(offset, 9, "C2 body", {"w": tally}, [])])
        for name, code, offset, tally in blobs
    ]  # fmt: skip
    whole = {section: {"w": tally} for section, tally in (sections or {}).items()}
    return of(Results(1.0, ["w"], COUNTS, {}, whole, [], made))


def test_an_instruction_is_the_same_where_addresses_differ() -> None:
    base = run(("a", HERE, CALL, Tally(right=5)))
    change = run(("a", ELSEWHERE, CALL, Tally(right=4, refused=1)))
    (way,) = worse(change, base)
    assert (way.walker, way.verdict) == ("w", "refused")
    assert str(way.place) == "nmethod a (tier 4)+0xb"
    assert change.texts[way.place].startswith("call ")
    assert not worse(base, change)


def test_code_that_was_compiled_otherwise_is_not_compared() -> None:
    base = run(("a", HERE, CALL, Tally(right=5)))
    for code in (HERE.replace("55", "56"), HERE + "90", "90" + HERE[2:]):
        assert not worse(run(("a", code, CALL, Tally(wrong=1))), base), code
    assert not worse(run(("b", HERE, CALL, Tally(wrong=1))), base)
    assert not worse(run(("a", HERE, 0, Tally(wrong=1))), base)


def test_where_the_base_was_not_right_nothing_is_new() -> None:
    change = run(("a", HERE, CALL, Tally(wrong=5)))
    for tally in (Tally(right=5, refused=1), Tally(unjudged=5), Tally(short=5), Tally(failed=1)):
        assert not worse(change, run(("a", HERE, CALL, tally)))


def test_what_only_one_side_has_is_compared_by_section() -> None:
    base = run(sections={"C2 body": Tally(right=9), "C1 body": Tally(right=9, short=1)})
    worse_here = {"C2 body": Tally(right=1, short=1), "C1 body": Tally(right=1, short=5)}
    change = run(("new", HERE, CALL, Tally(short=1)), sections=worse_here)
    assert worse(change, base) == {Way("w", "short", Place("C2 body"))}


def test_what_came_once_may_be_chance() -> None:
    right = run(("a", HERE, CALL, Tally(right=5)))
    wrong = run(("a", HERE, CALL, Tally(wrong=5)))
    nothing = run()
    ways = worse(wrong, right)

    def chance(runs: list[Stepped], others: list[Stepped]) -> list[float]:
        return [round(one.chance, 2) for one in compared(ways, runs, others)]

    assert chance([wrong], [right]) == [0.5]
    assert chance([wrong] * 5, [right] * 5) == [0.0]
    assert chance([wrong, right, right, right, right], [right] * 5) == [0.5]
    assert chance([wrong, *[nothing] * 4], [right] * 5) == [0.17], "not stepped there again"
    assert chance([wrong] * 5, [*[right] * 4, wrong]) == []


def test_a_miss_is_found_by_its_instruction_and_its_section() -> None:
    miss = Miss("w", "wrong", "wrong-bci", "detail", "class", "text")
    one = Instruction(CALL, 9, "C2 body", {"w": Tally(wrong=1)}, [miss])
    blob = Blob("nmethod", "a", 4, HERE.replace(" ", ""), [one])
    stepped = of(Results(1.0, ["w"], COUNTS, {}, {}, [], [blob]))
    (place,) = stepped.texts
    assert stepped.misses == {
        Way("w", "wrong", place): miss,
        Way("w", "wrong", Place("C2 body")): miss,
    }
