from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.binaries import elf
from framestorm_cli.native import walkers

LIBJVM = Path("libjvm.so")


def exporting(monkeypatch: pytest.MonkeyPatch, *symbols: str) -> None:
    monkeypatch.setattr(elf, "exports", lambda _library, symbol: symbol in symbols)


def test_a_stock_jdk_has_no_walker_for_iterators(monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace")
    usable, left_out = walkers.usable_targets(LIBJVM)
    assert usable == [target for target in paths.TARGETS if target != "fuzz_iterator"]
    assert "ASGST_RunWithIterator" in left_out["fuzz_iterator"]
    assert "jdk build" in left_out["fuzz_iterator"]


def test_one_of_the_walkers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, "ASGST_RunWithIteratorFromFrame")
    assert walkers.usable_targets(LIBJVM) == (list(paths.TARGETS), {})


def test_the_walkers_that_are_wanted_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, *(walker.symbol or "" for walker in walkers.WALKERS.values()))
    assert walkers.usable_targets(LIBJVM, "asgst,asgst-frame") == (list(paths.TARGETS), {})
    usable, left_out = walkers.usable_targets(LIBJVM, "asgst,asgct2")
    assert "fuzz_iterator" not in usable
    assert "asgst,asgct2" in left_out["fuzz_iterator"]


def test_why_a_walker_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace")
    assert walkers.WALKERS["asgct"].why_missing(LIBJVM) == ""
    assert walkers.WALKERS["gst"].why_missing(LIBJVM) == ""
    assert "jdk build" in walkers.WALKERS["asgst"].why_missing(LIBJVM)
    exporting(monkeypatch)
    assert "jdk build" not in walkers.WALKERS["asgct"].why_missing(LIBJVM)


def test_names() -> None:
    assert walkers.names("") == ()
    assert walkers.names("asgct") == ("asgct",)
    assert walkers.names("asgct,asgst-env") == ("asgct", "asgst-env")
