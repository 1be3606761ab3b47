"""`idle-cost`: the program runs and says what it measured, and ratios are of one round."""

from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.bench import idle_cost
from framestorm_cli.bench.idle_cost import WITH, WITHOUT
from framestorm_cli.detect import libraries
from framestorm_cli.hotspot import additions
from framestorm_cli.jdks import jdk as jdks

THINGS = ["thread", "class-load", "class-unload", "safepoint", "handshake"]


def test_both_are_measured_in_each_round(tmp_path: Path) -> None:
    home = next(one.home for one in jdks.usable() if one.javac is not None)
    measured = idle_cost.measure({WITH: home, WITHOUT: home}, tmp_path, 2, ("-Xint", "1"))
    assert len(measured) == 2
    assert all(list(of) == THINGS for one in measured for of in one.values())
    assert all(ns >= 0 for one in measured for of in one.values() for ns in of.values())


def test_a_round_that_was_slow_for_both_does_not_count() -> None:
    slow = {WITH: {"thread": 60.0}, WITHOUT: {"thread": 50.0}}
    fast = {WITH: {"thread": 12.0}, WITHOUT: {"thread": 10.0}}
    figures = idle_cost.figures_of([fast, slow, fast])
    assert figures["thread"]["ratio"] == pytest.approx(1.2)
    assert figures["thread"]["low"] == figures["thread"]["high"] == figures["thread"]["ratio"]


def test_what_took_no_time_that_was_counted_has_no_ratio() -> None:
    with pytest.raises(FramestormError, match=r"class-unload took less.*larger --scale"):
        idle_cost.figures_of([{WITH: {"class-unload": 5.0}, WITHOUT: {"class-unload": 0.0}}])


def test_what_is_built_without_additions_has_their_flags_alone() -> None:
    """Else every file would be compiled otherwise, and the flags would be what is measured."""
    added = additions.load()
    without = libraries.flags_alone(added)
    assert {edit.file for edit in without.edits} == {"make/hotspot/lib/CompileJvm.gmk"}
    assert without.files.keys() < added.files.keys()
    assert all(name.startswith("make/") for name in without.files)
