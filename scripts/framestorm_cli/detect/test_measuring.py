"""Which of a run's reports is the planted bug, and what of earlier runs it may use."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from framestorm_cli.conftest import FakePrograms
from framestorm_cli.detect import measuring, subjects, tables
from framestorm_cli.detect.conftest import BUG, ONE, measured, planned, replays_on, triggered
from framestorm_cli.detect.measuring import Planned
from framestorm_cli.detect.subjects import CONTROL


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
