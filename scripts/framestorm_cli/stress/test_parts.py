"""The parts of a stress run that need no process."""

import io
import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.native import jvm_modes, walkers
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.stress import (
    agent,
    flames,
    live,
    matrix,
    planning,
    rates,
    repro,
    units,
    walking,
    workloads,
)
from framestorm_cli.stress.agent import Java
from framestorm_cli.stress.cells import MODES, SELF_MODE, Axes, Cell
from framestorm_cli.stress.jfr import EXECUTION, Recording
from framestorm_cli.stress.plan import Plan, default_limit
from framestorm_cli.stress.proportion import Proportion
from framestorm_cli.stress.runner import StressRun


@pytest.mark.parametrize(
    ("text", "value"),
    [("100us", 100_000), ("1ms", 10**6), ("500ns", 500), ("1.5us", 1500), ("1µs", 1000)],
)
def test_intervals(text: str, value: int) -> None:
    assert units.interval_ns(text) == value
    assert units.interval_ns(units.interval_text(value)) == value


@pytest.mark.parametrize("text", ["", "100", "us", "-1us", "1 day", "0us"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(FramestormError):
        units.interval_ns(text)


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("2m", 120), ("1h30m", 5400), ("250ms", 0.25), ("1.5s", 1.5)]
)
def test_durations(text: str, value: float) -> None:
    assert units.seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "0", "m", "2x", "2m junk", "-3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(FramestormError):
        units.seconds(text)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        # R: prop.test(x, n, correct = FALSE)$conf.int
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
        (1, 4, 0.0455873, 0.6993582),
        (592, 808_000, 0.0006760, 0.0007941),
    ],
)
def test_wilson(hits: int, trials: int, low: float, high: float) -> None:
    found = Proportion.of(hits, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_wilson_covers_as_often_as_it_says() -> None:
    """Of many experiments with a known rate, about 95 % of the intervals hold it."""
    numbers = random.Random(1)
    rate, trials, held = 0.02, 400, 0
    for _ in range(500):
        hits = sum(numbers.random() < rate for _ in range(trials))
        found = Proportion.of(hits, trials)
        held += found.low <= rate <= found.high
    assert 0.91 <= held / 500 <= 0.99


def test_a_proportion_in_words() -> None:
    assert str(Proportion.of(0, 0)) == "-"
    assert str(Proportion.of(592, 808_000)) == "592 of 808,000 (0.068 % to 0.079 %)"
    assert str(Proportion.of(0, 10_000_000)).startswith("0 of 10,000,000 (0 % to 0.000038 %")


AXES = Axes(("a", "b"), ("asgct",), ("same-thread", "unstopped"), (1000,), repetitions=2)


def test_cells_come_in_an_order_that_the_seed_decides_rounds_one_after_the_other() -> None:
    first = AXES.cells(1)
    assert first == AXES.cells(1)
    assert sorted(map(str, first)) == sorted(map(str, AXES.cells(2)))
    assert len({tuple(AXES.cells(seed)) for seed in range(8)}) > 1
    assert [cell.repetition for cell in first] == [1] * 4 + [2] * 4


MATRIX = """
workloads = ["a*", "renaissance:dotty"]
walkers = ["asgct"]
intervals = ["100us", "10us"]
jits = ["default", "odd"]
seconds = "1m"
limit = 300
repetitions = 3
seed = 5
jvm_args = ["-Xmx1g"]
[jit]
odd = ["-XX:-Inline", "-Xbatch"]
"""


def test_a_matrix(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(MATRIX)
    found = matrix.read(file)
    axes = matrix.axes_of(found, AXES)
    assert axes.workloads == ("a*", "renaissance:dotty")
    assert axes.modes == AXES.modes  # left out: the command line's
    assert axes.intervals == (100_000, 10_000)
    assert axes.jit_flags["odd"] == ("-XX:-Inline", "-Xbatch")
    assert axes.jit_flags["c1"] == jvm_modes.JITS["c1"]
    assert (found.seconds, found.limit, found.repetitions, found.seed) == (60.0, 300.0, 3, 5)
    assert found.jvm_args == ("-Xmx1g",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("workloads = 3", "workloads is a list of strings"),
        ("workloads = []", "workloads is a list of strings"),
        ("speed = 3", "there is no key 'speed'"),
        ("seconds = 1\niterations = 2", "exclude each other"),
        ("repetitions = 0", "repetitions is 1 or more"),
        ("limit = 'soon'", "'soon' is no duration"),
        ("jit = 3", "[jit] is a table"),
        ("seed = true", "seed is a whole number"),
        ("= 3", "is no TOML"),
    ],
)
def test_a_matrix_that_is_wrong_is_named_with_its_file(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "m.toml"
    file.write_text(text)
    with pytest.raises(FramestormError) as error:
        matrix.read(file)
    assert str(file) in error.value.message
    assert says in error.value.message


def test_walkers_that_walk_from_outside_only_are_left_out_of_same_thread_cells(
    fakes: FakePrograms,
) -> None:
    known = walkers.table(fakes.tools.program(NATIVE))
    both = Cell("a", "asgct+asgst-env", "same-thread", 1)
    fitting = planning._fitting(both, known)
    assert fitting is not None
    assert fitting.walker == "asgct"
    assert planning._fitting(Cell("a", "asgst-env", "same-thread", 1), known) is None
    jfr = [Cell("a", EXECUTION, mode, ns) for mode in MODES for ns in (10**5, 10**6)]
    assert {planning._fitting(one, known) for one in jfr} == {
        Cell("a", EXECUTION, SELF_MODE, 10**6)
    }
    outside = Cell("a", "asgst-env", "separate-thread", 1)
    assert planning._fitting(outside, known) == outside


def test_a_walker_in_a_so_is_stressed_in_the_modes_that_it_declares(fakes: FakePrograms) -> None:
    known = walkers.table(fakes.tools.program(NATIVE))
    own = replace(known.walkers["plugin"], separate_thread=False)
    declared = replace(known, walkers={**known.walkers, "plugin": own})
    fitting = {mode: planning._fitting(Cell("a", "plugin", mode, 1), declared) for mode in MODES}
    assert [mode for mode, cell in fitting.items() if cell is not None] == ["same-thread"]


def test_class_paths_of_own_programs_are_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes").mkdir()
    found = workloads.own("class:-cp classes:nowhere 'my.Main' 'two words'")
    assert found.program == ("-cp", f"{tmp_path}/classes:nowhere", "my.Main", "two words")


def test_flames_keep_what_can_be_seen() -> None:
    lines = ["main;a;b 60\n", "main;a 20\n", "main;c 19\n", "main;tiny 1\n", "torn;line 5"]
    boxes = flames.boxes(flames.parse(lines))
    assert [(box.depth, box.name, box.start, box.count) for box in boxes if box.depth < 2] == [
        (0, "all", 0, 100), (1, "main", 0, 100),
    ]  # fmt: skip
    by_name = {box.name: box for box in boxes}
    assert (by_name["a"].start, by_name["a"].count) == (0, 80)
    assert (by_name["c"].start, by_name["c"].count) == (80, 19)
    many = [([f"f{n}", f"g{n}"], 1) for n in range(20_000)]
    assert len(flames.boxes(many)) <= flames.MOST_NODES
    deep = flames.boxes([([f"f{n}" for n in range(3000)], 1)])
    assert len(deep) == flames.MOST_DEPTH + 1


def test_words_with_spaces_are_quoted_in_a_script() -> None:
    assert repro._shell_word("-Dx=a $out") == "'-Dx=a $out'"
    assert repro._shell_word("-agentpath:/x=walker=asgct,out=/run/agent,seed=1") == (
        '-agentpath:/x=walker=asgct,out="$out"/agent,seed=1'
    )


def test_what_is_preloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    java = Java(tmp_path / "java", tmp_path / "agent.so", tmp_path / "asan.so")
    cell = Cell("a", "asgct", "same-thread", 1)
    assert agent.environment(java, cell) == {
        "LD_PRELOAD": f"{tmp_path}/agent.so:{tmp_path}/asan.so"
    }
    assert agent.environment(java, Cell("a", EXECUTION, SELF_MODE, 1)) == {}
    with pytest.raises(FramestormError, match="no path with a blank or a colon"):
        agent.environment(Java(tmp_path, tmp_path / "two words.so"), cell)


def test_a_repro_of_jfr_writes_nothing_into_the_run(tmp_path: Path) -> None:
    for word in Recording(EXECUTION, tmp_path / "agent", 10**6).start()[:2]:
        text = repro._shell_word(word)
        said = subprocess.run(
            ["sh", "-c", f"out=/elsewhere; printf %s {text}"], capture_output=True, text=True, check=True
        ).stdout  # fmt: skip
        for option in ("filename", "repository"):
            assert said.count(f'{option}="/elsewhere/agent/') == word.count(f"{option}=")
        # Its settings are read.
        assert said.count(str(tmp_path)) == word.count("settings=")
        assert said.replace("/elsewhere", str(tmp_path)) == word


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = _plan(threads="random:3", jvm_args=("-Xint",))
    plan.write(tmp_path)
    assert Plan.read(tmp_path) == plan


def _plan(**more: Any) -> Plan:
    base: dict[str, Any] = {
        "cells": tuple(AXES.cells(1)), "seconds": 2.0, "iterations": None, "limit": 60.0, "seed": 1,
        "threads": "running", "parallel": 1, "jdk_home": "/jdk", "jdk_version": "25",
        "libjvm_build_id": "abc",
    }  # fmt: skip
    return Plan(**{**base, **more})


def test_progress_is_a_line_where_there_is_no_terminal(tmp_path: Path) -> None:
    text = io.StringIO()
    progress = live.StressProgress()
    progress._console = Console(file=text, width=200)
    with progress:
        progress(StressRun(_plan(), tmp_path))
    (line,) = text.getvalue().splitlines()
    assert "0 of 8 cells  0 walks  0 findings" in line
    assert "\x1b" not in line


def test_the_walk_that_a_process_died_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert walking.context(tmp_path) == {}
    (tmp_path / "walking.bin").write_bytes(bytes(512))
    assert walking.context(tmp_path) == {}
    walk = {
        "number": 77, "tid": 4242, "walker": "asgct", "mode": "separate-thread", "depth": 128,
        "rewalks": 2, "thread_state": "_thread_in_Java", "java_thread": "0x1", "real_pc": "0x1234",
        "real_sp": "0x50", "real_fp": "0xf0", "stack_base": "0x9000", "stack_end": "0x1000",
        "last_java_sp": "0x2", "last_java_pc": "0x3", "last_java_fp": "0x4",
    }  # fmt: skip
    program = tmp_path / "bin" / "framestorm-step"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{json.dumps([walk, walk])}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("FRAMESTORM_BIN", str(program.parent))
    (tmp_path / "walking.bin").write_bytes(b"walks")
    found = walking.context(tmp_path)
    assert found["walk"] == (
        "asgct separate-thread depth 128, sample 77, walked 2 times before, thread 4242"
    )
    assert (found["real_pc"], found["real_sp"], found["real_fp"]) == ("0x1234", "0x50", "0xf0")
    assert (found["thread_state"], found["other_walks"]) == ("_thread_in_Java", "1")


def test_many_walkers_are_counted() -> None:
    assert Cell("a", "x+y+z", "unstopped", 1000).settings == "3 walkers unstopped 1us"
    assert Cell("a", "x+y", "unstopped", 1000).settings == "x+y unstopped 1us"


@pytest.mark.parametrize(
    ("stats", "slowed"),
    [
        ({"rate_hz": 10_800.0, "lost": {"throttled": 480}}, False),  # 100 us: a third of its time
        ({"rate_hz": 25_000.0, "lost": {}}, True),  # 10 us
        ({"rate_hz": 5_000.0, "lost": {"throttled": 33_000}}, True),  # a deep stack
        ({"rate_hz": 5_000.0}, False),
    ],
)
def test_what_a_program_was_slowed_down_by(stats: dict[str, Any], slowed: bool) -> None:
    common = {"samples": 100_000, "delivery_ns": 27_000, "latency_ns": {"asgct": {"p50": 2_500}}}
    assert rates.slows_down({**common, **stats}) is slowed
    assert not rates.slows_down({})


def test_an_iteration_of_a_benchmark_may_take_minutes() -> None:
    assert default_limit(10, benchmarks=False) == 100
    assert default_limit(10, benchmarks=True) == 340
    assert default_limit(None, benchmarks=False) == default_limit(None, benchmarks=True) == 1800
