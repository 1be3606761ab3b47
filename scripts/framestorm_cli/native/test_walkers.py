from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.binaries import elf
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE

LIBJVM = Path("libjvm.so")

# What only walkers of the instrumented JDK read.
SEQUENCES = ["fuzz_iterator", "fuzz_queue"]


@pytest.fixture
def table(fakes: FakePrograms) -> walkers.Table:
    return walkers.table(fakes.folder / NATIVE)


def exporting(monkeypatch: pytest.MonkeyPatch, *symbols: str) -> None:
    monkeypatch.setattr(elf, "exports", lambda _library, symbol: symbol in symbols)


def test_the_targets_are_those_of_the_files(table: walkers.Table) -> None:
    assert tuple(table.targets) == paths.TARGETS


def test_a_stock_jdk_has_no_walker_for_sequences_of_calls(
    table: walkers.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace")
    usable, left_out = table.usable_targets(LIBJVM)
    assert usable == [target for target in paths.TARGETS if target not in SEQUENCES]
    assert "ASGST_RunWithIterator" in left_out["fuzz_iterator"]
    assert all("jdk build" in left_out[target] for target in SEQUENCES)


def test_one_of_the_walkers_is_enough(
    table: walkers.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporting(monkeypatch, "ASGST_RunWithIteratorFromFrame", "framestorm_run_with_sample")
    assert table.usable_targets(LIBJVM) == (list(paths.TARGETS), {})


def test_the_walkers_that_are_wanted_decide(
    table: walkers.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporting(monkeypatch, *(walker.symbol for walker in table.walkers.values()))
    sequences = table.usable_targets(LIBJVM, "asgst-frame,asgst-queue")[0]
    assert set(SEQUENCES) <= set(sequences)
    usable, left_out = table.usable_targets(LIBJVM, "asgst,asgct2")
    assert not set(SEQUENCES) & set(usable)
    assert "asgst,asgct2" in left_out["fuzz_iterator"]
    at_polls = table.usable_targets(LIBJVM, "jfr-trace")[0]
    assert at_polls == ["fuzz_call", "fuzz_frame", "fuzz_ucontext"]


@pytest.mark.parametrize("outside", ["plugin", "profiler"])
def test_outside_walkers_read_all_but_sequences_of_calls(
    table: walkers.Table, monkeypatch: pytest.MonkeyPatch, outside: str
) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace")
    left_out = table.usable_targets(LIBJVM, outside)[1]
    assert list(left_out) == SEQUENCES


def test_why_a_walker_is_missing(table: walkers.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace")
    assert table.walkers["asgct"].why_missing(LIBJVM) == ""
    assert table.walkers["gst"].why_missing(LIBJVM) == ""
    assert "jdk build" in table.walkers["asgst"].why_missing(LIBJVM)
    exporting(monkeypatch)
    assert "jdk build" not in table.walkers["asgct"].why_missing(LIBJVM)


def test_who_samples(table: walkers.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    exporting(monkeypatch, "AsyncGetCallTrace", "AsyncGetCallTrace2")
    assert table.samplers(LIBJVM) == ["asgct", "asgct2"]
    assert "asgct" not in table.added()
    assert "asgct2" in table.added()
    assert not {"jfr-request", "jfr-trace"} & set(table.added()), "HotSpot's own code"


def test_names() -> None:
    assert walkers.names("") == ()
    assert walkers.names("asgct") == ("asgct",)
    assert walkers.names("asgct,asgst-env") == ("asgct", "asgst-env")
