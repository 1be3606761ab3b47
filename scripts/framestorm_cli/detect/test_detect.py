"""`framestorm detect` on native programs that do what the test says; the JDKs with a bug are stand-ins."""

import json
import shutil
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from framestorm_cli.base import paths
from framestorm_cli.base.machine import machine
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.detect import (
    canary,
    catalogue,
    contestants,
    equivalents,
    judging,
    libraries,
    measuring,
    mutant_tables,
    subjects,
    tables,
    walker_tests,
)
from framestorm_cli.detect.canary import Tried
from framestorm_cli.detect.contestants import CONTESTANTS
from framestorm_cli.detect.looking import Looked, Task, clean
from framestorm_cli.detect.measuring import Kill, Measured, Planned
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.detect.subjects import CONTROL
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE

BUG = next(iter(catalogue.bugs()))
_PREPARE = canary.prepare
ONE = subjects.of_bug(catalogue.chosen((BUG,))[0])


@pytest.fixture
def homes(fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = fakes.tools.jdk.home
    planted = Path(shutil.copytree(control, tmp_path / "planted"))
    monkeypatch.setattr(libraries, "control", lambda _: control)
    monkeypatch.setattr(libraries, "planted", lambda _bug, _variant: planted)
    triggered(monkeypatch, 1)


def triggered(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """So often in each run: the stand-ins have no canary that counts."""

    def prepare(file: Path, *more: Any) -> None:
        _PREPARE(file, *more)
        with file.open("r+b") as counts:
            counts.seek(struct.calcsize("<Q"))
            counts.write(struct.pack("<Q", times))

    monkeypatch.setattr(canary, "prepare", prepare)


def planned(out: Path) -> Planned:
    return Planned(ONE, "libfuzzer", 1, 7, 2.0, 3, out)


def measured(bug: str, found: float | None, **more: object) -> Measured:
    runs = {
        "contestant": "libfuzzer",
        "walkers": ONE.walkers,
        "repetition": 1,
        "seed": 1,
        "budget": 60.0,
    }
    return msgspec.convert(
        {**runs, "bug": bug, "wall": 60.0, "cpu": 60.0, "walks": 10, "found": found, **more},
        Measured,
    )


def replays_on(monkeypatch: pytest.MonkeyPatch, *homes: str) -> None:
    """Findings come back on the JDKs in folders of these names, always, and on no other."""

    def hits(side: judging.Side, _finding: Finding, tries: int) -> tuple[int, int]:
        return (tries if side.tools.jdk.home.name in homes else 0), tries

    monkeypatch.setattr(judging.Side, "hits", hits)


@pytest.mark.usefixtures("homes")
def test_what_comes_back_with_the_bug_only_is_its_detection(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays_on(monkeypatch, "planted")
    fakes.plan("fuzz_call", {"findings": [fakes.fault("k", "frame::sender", t=0.5)]})
    made = measuring.run(planned(tmp_path))
    assert made.problem == ""
    assert made.found is not None
    assert made.signature is not None
    assert made.signature.frames[0] == "frame::sender"
    assert (made.replayed, made.replays) == (3, 3)
    assert (made.reached, made.triggered) == (0, 1)


@pytest.mark.usefixtures("homes")
def test_what_comes_back_without_the_bug_too_is_none(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays_on(monkeypatch, "planted", fakes.tools.jdk.home.name)
    fakes.plan("fuzz_call", {"findings": [fakes.fault("k", "frame::sender", t=0.5)]})
    made = measuring.run(planned(tmp_path))
    assert made.found is None
    assert len(made.signatures) == 1


@pytest.mark.usefixtures("homes")
def test_what_was_found_with_a_collector_is_replayed_with_it(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fault = fakes.fault("k", "frame::sender", t=0.5)
    fakes.plan("fuzz_call", {"findings": [fault]})
    fakes.plan("replay", {"findings": [fault]})
    made = measuring.run(replace(planned(tmp_path), contestant="libfuzzer-z"))
    assert made.of_control  # it came back, on both sides
    for program in ("fuzz_call", "replay"):
        starts = fakes.starts(program)
        assert starts, program
        assert all("-XX:+UseZGC" in start for start in starts), program


@pytest.mark.usefixtures("homes")
def test_a_whole_run_says_who_else_would_have_found_it(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays_on(monkeypatch, "planted")
    faults = [
        fakes.fault(f"{oracle}{n}", f"frame::{place}", oracle=oracle)
        for n, (oracle, place) in enumerate(
            (
                ("memory", "sender"),
                ("memory", "sender_for_compiled_frame"),
                ("truth", "sender_for_compiled_frame"),
            )
        )
    ]
    fakes.plan("fuzz_call", {"findings": faults[:2]})
    alone = measuring.run(replace(planned(tmp_path), whole=True))
    assert (alone.oracle, alone.without_it) == ("memory", None)
    fakes.plan("fuzz_call", {"findings": faults})
    both = measuring.run(replace(planned(tmp_path), whole=True))
    assert both.oracle == "memory"
    assert both.without_it is not None
    rows = tables.oracle_rows([alone, both])
    assert [row[:3] for row in rows] == [("memory", "2", "1 of 2 (9.5 % to 91 %)")]


def test_the_jdk_without_a_bug_comes_first_and_seeds_are_shared(tmp_path: Path) -> None:
    plan = list(measuring.plan([ONE], ["libfuzzer", "afl"], 2, 1, 60.0, 3, tmp_path))
    assert [one.subject.id for one in plan] == [CONTROL, CONTROL, BUG, BUG] * 2
    assert len({one.seed for one in plan if one.repetition == 1}) == 1
    assert len({one.key for one in plan}) == len(plan)


def test_runs_that_were_made_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = measured(CONTROL, None), measured(BUG, 3.0)
    lines = b"\n".join(msgspec.json.encode(one) for one in (first, second))
    (tmp_path / measuring.DATA).write_bytes(lines + b'\n{"bug": "torn')
    assert [one.bug for one in measuring.read(tmp_path)] == [CONTROL, BUG]
    plan = [Planned(one, "libfuzzer", 1, 1, 60.0, 3, tmp_path) for one in (ONE.against(), ONE)]
    monkeypatch.setattr(measuring, "run", None)
    assert len(measuring.make(plan, tmp_path, 1)) == 2


MUTANT = Mutant(
    7, "src/hotspot/share/prims/asyncSample.cpp", 3, "f", "off by one", "a < b", "a <= b"
)


def surveyed(part: str, **more: object) -> Measured:
    return measured(subjects.UNMUTATED, None, parts=[part], **more)


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


# Four mutants act in it: it fails with the third, with the fourth in one test, and with the fifth once.
A_TEST = """
import os, pathlib, struct, sys
name, mutant = sys.argv[1], int(os.environ.get("FRAMESTORM_MUTANT", "0"))
if name == "skipped":
    sys.exit(print("[  SKIPPED ]"))
if mutant < 0 and name != "broken":
    with open(os.environ["FRAMESTORM_CANARY"], "r+b") as counts:
        for number in (2, 3, 4, 5):
            counts.seek(48 + 16 * number)
            acted = struct.unpack("<2Q", counts.read(16))[1] + 9
            counts.seek(48 + 16 * number)
            counts.write(struct.pack("<2Q", acted, acted))
once = pathlib.Path(f"mutant-{mutant}")
chance = mutant == 5 and not once.exists()
once.touch()
bug = name == "bug" and "planted" in os.environ["JDK_UNDER_TEST"]
rare = mutant == 4 and name == "rare"
sys.exit(mutant == 3 or rare or chance or name == "broken" or bug)
"""


@pytest.fixture
def the_tests_are(
    homes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    script = tmp_path / "a_test.py"
    script.write_text(A_TEST, encoding="utf-8")

    def are(*names: str) -> None:
        every = [walker_tests.Test(name, [sys.executable, str(script), name]) for name in names]
        monkeypatch.setattr(walker_tests, "_tests", lambda _of, **_: list(every))

    monkeypatch.setattr(
        toolchain, "test_environment", lambda jdk: {"JDK_UNDER_TEST": str(jdk.home)}
    )
    monkeypatch.setattr(toolchain, "build", lambda _targets: None)
    return are


def test_the_walkers_tests_kill_the_mutants_that_they_fail_with(
    the_tests_are: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those that they fail with by chance, and not in a test that fails or is skipped without one."""
    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    kill = Kill(2.5, Signature("contract", "wrong-frames", ()), "truth")
    before = surveyed("fuzz_stack", kills={2: kill})
    (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(before) + b"\n")
    the_tests_are("right", "broken", "skipped")
    counted = replace(ONE.against(), environment={"FRAMESTORM_MUTANT": "-1"})
    one = replace(
        planned(tmp_path),
        subject=counted,
        contestant="walker-tests",
        parts=("a_test",),
        budget=600.0,
    )
    made = measuring.run(one)
    assert made.problem == ""
    assert made.walks == 1
    assert {number: acted for number, (_, acted) in made.acts.items()} == dict.fromkeys(
        (2, 3, 4, 5), 9
    )
    assert made.tried == dict.fromkeys((3, 4, 5), 1)
    assert made.differed == {3: 1}
    assert {number: kill.signature.clause for number, kill in made.kills.items()} == {3: "right"}
    the_tests_are("broken", "skipped")
    assert "none of 2 tests ran" in measuring.run(one).problem
    the_tests_are(*"abcd", "rare")
    assert measuring.run(one).kills[4].signature.clause == "rare"


def test_tests_that_take_long_try_mutants_last(
    the_tests_are: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant's first one is the one that is most about it."""
    seconds = {"long": 60.0, "quick": 1.0, "about 2": 1.0}
    acting = {"long": (2, 3, 4), "quick": (2, 3), "about 2": (2,)}
    now = 0.0
    tried = []

    def passes(task: Task, test: walker_tests.Test, environment: dict[str, str], _: float) -> bool:
        nonlocal now
        now += seconds[test.name]
        if number := environment.get("FRAMESTORM_MUTANT"):
            tried.append((test.name, int(number)))
        elif task.mutants:
            counts = bytearray(task.mutants.read_bytes())
            for one in acting[test.name]:
                acted = struct.unpack_from("<2Q", counts, 48 + 16 * one)[1] + 1
                struct.pack_into("<2Q", counts, 48 + 16 * one, acted, acted)
            task.mutants.write_bytes(counts)
        return True

    monkeypatch.setattr("framestorm_cli.detect.libraries.read_mutants", lambda _: [MUTANT] * 9)
    the_tests_are(*seconds)
    monkeypatch.setattr(walker_tests, "_passes", passes)
    monkeypatch.setattr(walker_tests, "time", SimpleNamespace(monotonic=lambda: now))
    one = replace(planned(tmp_path), contestant="walker-tests", parts=("a_test",), budget=600.0)
    assert measuring.run(one).problem == ""
    assert tried == [
        ("quick", 3), ("about 2", 2), ("quick", 2), ("long", 4), ("long", 3), ("long", 2),
    ]  # fmt: skip


def test_a_planted_bug_is_found_by_the_walkers_tests_that_fail_with_it_alone(
    the_tests_are: Callable[..., None], tmp_path: Path
) -> None:
    the_tests_are("right", "broken", "bug")
    one = replace(planned(tmp_path), contestant="walker-tests", budget=600.0)
    control = measuring.run(replace(one, subject=ONE.against()))
    assert [str(signature) for signature in control.signatures] == ["failed_test broken"]
    (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(control) + b"\n")
    made = measuring.run(one)
    assert str(made.signature) == "failed_test bug"
    assert made.found is not None


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


def test_mutants_have_the_same_numbers_in_each_build(
    framestorm: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "mutated", Path)
    monkeypatch.setattr(
        libraries, "read_mutants", lambda home: [replace(MUTANT, line=len(home.name))]
    )
    asked = ("detect", "--mutants", "--contestant", "step", "--contestant", "walker-tests")
    code, _, err = framestorm(*asked)
    assert code == 2
    assert "sanitized, plain have different mutants" in err


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


def test_a_control_is_of_as_many_walkers_as_can_be() -> None:
    several, one, other = (
        replace(ONE, walkers=walkers) for walkers in (("a", "b"), ("b",), ("c",))
    )
    assert [control.walkers for control in subjects.controls([one, several, other])] == [
        ("a", "b"), ("c",),
    ]  # fmt: skip


@pytest.mark.usefixtures("homes")
def test_what_came_back_without_the_bug_ends_no_later_run(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control that walked with more walkers tells it, and so does a run of anyone on the same JDK."""
    replays_on(monkeypatch, "planted", fakes.tools.jdk.home.name)
    fakes.plan("fuzz_call", {"findings": [fakes.fault("k", "frame::sender", t=0.5)]})
    made = measuring.run(planned(tmp_path))
    assert [one.frames[0] for one in made.of_control] == ["frame::sender"]
    known = msgspec.structs.replace(made, bug="another", contestant="libfuzzer-unguided")
    more = msgspec.structs.replace(
        known, bug=CONTROL, contestant="libfuzzer", walkers=(*ONE.walkers, "more"), of_control=[]
    )
    elsewhere = msgspec.structs.replace(known, contestant="libfuzzer-plain")
    for told, run in ((True, known), (True, more), (False, elsewhere)):
        (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(run) + b"\n")
        assert bool(measuring.of_control(planned(tmp_path))) is told


@pytest.mark.usefixtures("homes")
def test_what_is_reported_while_the_bug_was_never_triggered_is_not_the_bug(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays_on(monkeypatch, "planted")
    fakes.plan("fuzz_call", {"findings": [fakes.fault("k", "frame::sender", t=0.5)]})
    triggered(monkeypatch, 0)
    made = measuring.run(planned(tmp_path))
    assert made.found is None
    assert made.signatures
    triggered(monkeypatch, 1)
    assert measuring.run(planned(tmp_path)).found is not None


@pytest.mark.usefixtures("homes")
def test_a_later_run_does_not_replay_what_told_the_bug(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays_on(monkeypatch, "planted")
    fakes.plan("fuzz_call", {"findings": [fakes.fault("k", "frame::sender", t=0.5)]})
    first = measuring.run(planned(tmp_path))
    assert first.replays == 3
    for told, run in (
        (True, msgspec.structs.replace(first, contestant="libfuzzer-unguided")),
        (False, msgspec.structs.replace(first, contestant="libfuzzer-plain")),
        (False, msgspec.structs.replace(first, contestant="of-another-time")),
        (False, msgspec.structs.replace(first, bug="another")),
        (False, msgspec.structs.replace(first, replays=0)),
    ):
        (tmp_path / measuring.DATA).write_bytes(msgspec.json.encode(run) + b"\n")
        second = measuring.run(replace(planned(tmp_path), repetition=2))
        assert second.signature == first.signature
        assert second.replays == (0 if told else 3)


def test_the_list_names_bugs_and_contestants(framestorm: Run) -> None:
    code, out, err = framestorm("detect", "--list")
    assert code == 0, err
    assert BUG in out.replace("\n", "")
    assert "libfuzzer-unguided" in out


def test_a_name_that_is_none(framestorm: Run) -> None:
    code, _, err = framestorm("detect", "no-such-bug")
    assert code == 2
    assert "no planted bug no-such-bug" in err


def test_stress_looks_as_the_command_does(
    fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command gets as many workloads as it has time for. What its summary has is heard; without a
    summary it did not look."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    monkeypatch.setattr(paths, "SCRIPTS", scripts)
    command = scripts / "framestorm"
    signature = {"kind": "contract", "clause": "ends-early", "frames": []}
    summary = {
        "cells": [{"samples": 70, "folder": "cells/1"}],
        "buckets": [{"signature": signature}],
    }
    command.write_text(
        "#!/bin/sh\n"
        f'echo "$*" > {tmp_path}/asked\n'
        'while [ "$1" != --out ]; do shift; done\n'
        f'mkdir "$2" && echo \'{json.dumps(summary)}\' > "$2/summary.json"\nexit 1\n'
    )
    command.chmod(0o755)

    monkeypatch.setattr(contestants, "workload_names", lambda _: ["a", "b", "c", "d"])

    def look(seconds: float = 5.0) -> Looked:
        out = clean(tmp_path / "run")
        task = Task(fakes.tools, ONE.walkers, seconds, 1, out, Symbolizer(), lambda _: False)
        return CONTESTANTS["stress"].look(task)

    looked = look()
    assert (looked.problem, looked.walks) == ("", 70)
    assert [one.finding.signature.clause for one in looked.found] == ["ends-early"]
    assert (tmp_path / "asked").read_text().count("--workload") == 1
    look(30.0)
    assert (tmp_path / "asked").read_text().count("--workload") == 3
    command.write_text("#!/bin/sh\nexit 2\n")
    assert "stress ended with 2" in look().problem


@pytest.mark.usefixtures("homes")
def test_who_cannot_walk_with_a_bugs_walkers_does_not_find_it(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    """It counts. A contestant whose program refuses to start does not, and the others go on."""
    table = walkers.table(fakes.tools.program(NATIVE)).walkers
    stages = tuple(name for name, walker in table.items() if not walker.samples and walker.symbol)
    of_stages = replace(planned(tmp_path), contestant="step", subject=replace(ONE, walkers=stages))
    made = measuring.run(of_stages)
    assert (made.problem, made.found, made.walks) == ("", None, 0)
    assert f"step does not walk with {', '.join(stages)}" in measuring.outcome_of(made)
    assert "0 of 1, not asked" in tables.markdown([made], machine())
    assert "does not walk" not in measuring.outcome_of(measured(BUG, None, walks=0))
    assert not fakes.starts("step")
    fakes.plan("step", {"end": "setup"})
    assert (
        "libjvm.so cannot be loaded"
        in measuring.run(replace(planned(tmp_path), contestant="step")).problem
    )


@pytest.mark.usefixtures("homes")
def test_stepping_with_events_asks_for_every_event(fakes: FakePrograms, tmp_path: Path) -> None:
    """In as many scenarios as there is time for a round with each: step ends none of them before."""
    fakes.plan("step", {"end": "die"})
    events = len(walkers.table(fakes.tools.program(NATIVE)).names["events"]) - 1  # all but none
    scenarios = {}
    for name, seed in (("step", 1), ("step-events", 1), ("step-events", 2), ("step-events-z", 1)):
        time = 2.2 * 0.5 * (events + 1)
        measuring.run(replace(planned(tmp_path), contestant=name, seed=seed, budget=time))
        start = fakes.starts("step")[-1]
        assert start.count("--event") == (0 if name == "step" else events)
        assert ("-XX:+UseZGC" in start) == (name == "step-events-z")
        scenarios[name, seed] = [
            value for option, value in pairwise(start) if option == "--scenario"
        ]
    assert not scenarios["step", 1]  # none named: all
    assert len(scenarios["step-events", 1]) == len(scenarios["step-events", 2]) == 2
    assert scenarios["step-events", 1] != scenarios["step-events", 2]


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
