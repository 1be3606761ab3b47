"""Each contestant looks as it says, and says so when it does not."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.base.machine import machine
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.detect import contestants, measuring, tables
from framestorm_cli.detect.conftest import BUG, ONE, measured, planned
from framestorm_cli.detect.contestants import CONTESTANTS
from framestorm_cli.detect.looking import Looked, Task, clean
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE


def test_the_list_names_bugs_and_contestants(framestorm: Run) -> None:
    code, out, err = framestorm("detect", "--list")
    assert code == 0, err
    assert BUG in out.replace("\n", "")
    assert "libfuzzer-unguided" in out


def test_a_name_that_is_none(framestorm: Run) -> None:
    code, _, err = framestorm("detect", "no-such-bug")
    assert code == 2
    assert "no planted bug no-such-bug" in err


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
