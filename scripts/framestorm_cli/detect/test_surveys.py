"""Mutants are tried by fuzzing and stepping, and what became of them is told."""

import struct
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.detect import (
    canary,
    equivalents,
    libraries,
    measuring,
    mutant_tables,
    subjects,
)
from framestorm_cli.detect.canary import Tried
from framestorm_cli.detect.conftest import MUTANT, ONE, planned, surveyed
from framestorm_cli.detect.measuring import Kill
from framestorm_cli.detect.mutation import DELETED, NOTHING, STATEMENT, Mutant
from framestorm_cli.findings.finding import Signature
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE


@pytest.mark.usefixtures("homes")
def test_a_fuzzer_tries_all_mutants_in_its_survey(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    own = {"clause": "bci-out-of-range", "oracle": "contract"}
    fakes.plan(
        "fuzz_call",
        {
            "findings": [
                {"key": "a", "kind": "contract", "t": 0.5, **own},
                {"key": "b", "kind": "contract", "t": 0.5, "mutant": 7, **own},
            ]
        },
    )
    kill = Kill(2.5, Signature("contract", "wrong-frames", ()), "truth")
    before = surveyed("fuzz_stack", kills={8: kill})
    (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(before) + b"\n")
    one = replace(planned(tmp_path), subject=ONE.against(), parts=("fuzz_call",))
    made = measuring.run(one)
    assert [(number, kill.oracle) for number, kill in made.kills.items()] == [(7, "contract")]
    assert len(made.signatures) == 1  # what no mutant did
    (start,) = fakes.starts("fuzz_call")
    file = Path(start[start.index("--mutants") + 1])
    data = bytearray(file.read_bytes())
    header, counts, tried = 48, 16 * 8192, 8
    assert int.from_bytes(data[40:48], "little") == 9
    first = header + counts + tried
    fate_of_eight = first + 12 * 8 + 8
    assert data[fate_of_eight] == 1  # killed by the survey before
    assert not data[fate_of_eight + 12]
    struct.pack_into("<Q", data, header + counts, 3)  # it died of one
    struct.pack_into("<2IB", data, first + 12 * 3, 5, 0, 0)
    struct.pack_into("<2IB", data, first + 12 * 4, 6, 4, 2)  # and before that of another
    struct.pack_into("<2IB", data, first + 12 * 5, 7, 7, 1)
    struct.pack_into("<2IB", data, first + 12 * 6, 8, 2, 0)
    file.write_bytes(data)
    assert canary.read_tried(file) == {
        3: Tried(5, 0, killed=True), 4: Tried(6, 4, killed=True), 5: Tried(7, 7, killed=True),
        6: Tried(8, 2, killed=False),
    }  # fmt: skip


@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize("end", ["die", "not-reusable"])
def test_a_scenario_goes_on_when_a_mutant_has_ended_the_process(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """By a death, or by what it left behind."""
    counts = dict.fromkeys(
        ("steps", "walked", "judged", "passed", "excursions", "from_outside", "outside"), 0
    )
    begun = {
        "seconds": 0.1, "walkers": [], "counts": {**counts, "lost": {}}, "scenarios": {},
        "sections": {}, "findings": [], "blobs": [], "left": ["c1"],
    }  # fmt: skip
    ended = {"end": end, "step": begun}
    fakes.plan("step", ended, ended, {"step": {**begun, "left": []}})
    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    # So much time that no start, however slow, is the last one for want of it.
    one = replace(
        planned(tmp_path), subject=ONE.against(), contestant="step", parts=("c1",), budget=600.0
    )
    assert measuring.run(one).problem == ""
    starts = fakes.starts("step")
    assert len(starts) == 3
    assert {start[start.index("--scenario") + 1] for start in starts} == {"c1"}
    assert len({start[start.index("--mutants") + 1] for start in starts}) == 1


def test_what_became_of_mutants() -> None:
    every = [replace(MUTANT, number=number) for number in range(7)]
    file, function, was, becomes = next(iter(equivalents.read()))
    every[4] = replace(every[4], file=f"src/{file}", function=function, was=was, becomes=becomes)
    kill = Kill(2.5, Signature("contract", "wrong-frames", ()), "truth")
    surveys = [
        surveyed("fuzz_call", acts={0: (1, 1), 1: (1, 1), 3: (5, 2), 5: (7, 7)}, kills={0: kill}),
        surveyed("c1", contestant="step", acts={1: (1, 1), 2: (4, 0), 3: (9, 6), 4: (3, 3), 6: (1, 1)},
                 kills={1: kill}, tried={3: 5, 4: 3, 6: 1}, differed={3: 2}),
    ]  # fmt: skip
    assert list(mutant_tables.outcomes(surveys, every).values()) == [
        mutant_tables.KILLED, mutant_tables.KILLED, mutant_tables.IDLE, mutant_tables.SURVIVED,
        mutant_tables.EQUIVALENT, mutant_tables.OUTSIDE, mutant_tables.SAME,
    ]  # fmt: skip
    text = mutant_tables.markdown(surveys, every)
    assert "not known to be equivalent: 2 of 4" in text
    assert "answered otherwise: 2 of 3" in text
    row = "| off by one | 2 | 1 | 1 | 1 | 1 | 1 | 2 of 4 (15 % to 85 %) | 2 of 3 (21 % to 94 %) |"
    assert row in text
    assert "Said to be equivalent" not in text
    surveys[0].kills[4] = kill
    assert f"equivalent and killed: {every[4].id}." in mutant_tables.markdown(surveys, every)
    assert "| step | truth |" in text
    assert (
        f"| {every[3].id} | asyncSample.cpp:3 | `f` | off by one | `a < b` becomes `a <= b` | 8 | 5 | 2 |"
        in text
    )


def test_mutants_are_looked_for_by_who_can_say_where_they_act(framestorm: Run) -> None:
    code, _, err = framestorm("detect", "--mutants", "--contestant", "stress")
    assert code == 2
    able = "libfuzzer, libfuzzer-z, step, step-events, step-events-z, walker-tests"
    assert f"{able}; not with stress" in err


def test_statements_are_deleted_as_mutants_only(framestorm: Run) -> None:
    code, _, err = framestorm("detect", "--statements")
    assert code == 2
    assert "--statements goes with --mutants" in err


def test_deleted_statements_are_in_a_libjvm_of_their_own(
    fakes: FakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "mutated", lambda _, *, statements: Path(f"{statements}"))
    table = walkers.table(fakes.tools.program(NATIVE))
    checks, deleted = (
        subjects.of_mutant(replace(MUTANT, rule=rule), table) for rule in (DELETED, STATEMENT)
    )
    assert checks.home("sanitized") == checks.against().home("sanitized") == Path("False")
    assert deleted.home("sanitized") == deleted.against().home("sanitized") == Path("True")


def test_runs_of_checks_and_of_statements_do_not_share_a_folder(
    framestorm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = msgspec.json.encode([MUTANT])
    (tmp_path / "runs.jsonl").touch()
    (tmp_path / "mutants.json").write_bytes(kept)
    monkeypatch.setattr(libraries, "mutated", lambda *_, **__: Path())
    deleted = replace(MUTANT, rule=STATEMENT, becomes=NOTHING)
    monkeypatch.setattr(libraries, "read_mutants", lambda _: [deleted])
    code, _, err = framestorm("detect", "--mutants", "--statements", "--out", str(tmp_path))
    assert code == 2
    assert "has runs of other mutants: choose another --out" in err
    assert (tmp_path / "mutants.json").read_bytes() == kept


def test_an_entry_that_names_no_mutant_is_told_beside_those_of_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = [("a.cpp", "f", "x == 7", "false"), ("a.cpp", "f", "x++", NOTHING)]
    monkeypatch.setattr(equivalents, "read", lambda: named)
    assert equivalents.strangers([MUTANT]) == named[:1]
    assert equivalents.strangers([replace(MUTANT, becomes=NOTHING)]) == named[1:]


def test_mutants_have_the_same_numbers_in_each_build(
    framestorm: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "mutated", lambda variant, **_: Path(variant))
    monkeypatch.setattr(
        libraries, "read_mutants", lambda home: [replace(MUTANT, line=len(home.name))]
    )
    asked = ("detect", "--mutants", "--contestant", "step", "--contestant", "walker-tests")
    code, _, err = framestorm(*asked)
    assert code == 2
    assert "sanitized, plain have different mutants" in err


def test_a_mutant_is_looked_for_with_the_walkers_whose_code_it_is_in(fakes: FakePrograms) -> None:
    table = walkers.table(fakes.tools.program(NATIVE))

    def of(file: str) -> set[str]:
        mutant = Mutant(7, f"src/hotspot/share/{file}", 1, "f", "check deleted", "a", "b")
        subject = subjects.of_mutant(mutant, table)
        return set(subject.walkers)

    assert of("prims/asyncStackWalker.cpp") == set(table.added())
    (own,) = of("runtime/frame.cpp")
    assert table.walkers[own].symbol == "AsyncGetCallTrace"
    assert of("prims/asyncJfr.cpp") == of("jfr/jfrStackTrace.cpp")
    assert not of("prims/asyncJfr.cpp") & (of("runtime/frame.cpp") | set(table.added()))
