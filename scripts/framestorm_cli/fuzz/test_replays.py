"""Findings are replayed while fuzzing goes on, and known causes are named."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.findings.finding import Finding, Signature
from framestorm_cli.findings.records import FindingsFile
from framestorm_cli.fuzz import replays as replays_module
from framestorm_cli.fuzz.fuzzing import Run
from framestorm_cli.fuzz.replays import Replays
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.replay import replaying
from framestorm_cli.replay.replaying import Request, Try
from framestorm_cli.triage import collecting, expectations
from framestorm_cli.triage.expectations import Cause

KNOWN = Signature("contract", "known", (), "it wrote", "asgct")


def line(clause: str, state: str = "corrupt") -> str:
    return json.dumps({
        "type": "finding", "key": clause, "kind": "contract", "clause": clause, "state": state,
        "detail_class": "it wrote", "victim": "c1", "artifact": f"{clause}.bin",
        "input": {"scenario": "c1", "walker": "asgct"},
    }) + "\n"  # fmt: skip


class Fuzzing:
    """A run whose one process goes on, and the fresh JVMs, which show all that they replay."""

    def __init__(self, fakes: FakePrograms, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.tried: list[str] = []
        monkeypatch.setattr(replays_module, "_EVERY", 0.0)
        monkeypatch.setattr(replaying, "run_try", self._run_try)
        cause = Cause("wild-write", frozenset({"asgct"}), "torn", frozenset({KNOWN}))
        monkeypatch.setattr(expectations, "causes_on", lambda _, profiler: [cause])
        self.options = FuzzOptions(("fuzz_stack",), 10.0, None, 1, 2, folder)
        self.replays = Replays(fakes.tools, self.options, 3)
        process = SimpleNamespace(
            folder=folder, file=FindingsFile(folder), target="fuzz_stack", stats={"startup": 0.5}
        )
        self.process = process
        self.run = Run(self.options, processes=cast(Any, [process]))

    def _run_try(
        self, _tools: object, _symbols: object, request: Request, folder: Path, _stop: object
    ) -> Try:
        self.tried.append(request.artifact.name)
        return Try(folder, matched=Finding("k", "contract"))

    def find(self, *lines: str) -> None:
        with (self.folder / "findings.jsonl").open("a") as file:
            file.writelines(lines)

    def watch(self) -> None:
        self.process.file.poll()
        self.replays(self.run)


@pytest.fixture
def fuzzing(fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fuzzing:
    return Fuzzing(fakes, tmp_path, monkeypatch)


def test_each_bucket_is_replayed_once_while_fuzzing_goes_on(
    fuzzing: Fuzzing, capfd: pytest.CaptureFixture[str]
) -> None:
    fuzzing.watch()
    assert fuzzing.replays.first_seconds is None
    fuzzing.find(line("new"))
    while fuzzing.replays.first_seconds is None:
        fuzzing.watch()
    fuzzing.find(line("known"), line("known"))
    while len(fuzzing.tried) < 2:
        fuzzing.watch()
    fuzzing.watch()
    assert fuzzing.tried == ["new.bin", "known.bin"]
    found = collecting.of_process(fuzzing.folder, Symbolizer())
    new, known = fuzzing.replays.conclude(found, fuzzing.run)
    assert sorted(fuzzing.tried) == ["known.bin"] + ["new.bin"] * 3
    assert str(new.verification) == "reproduced, 3 of 3 fresh JVMs"
    assert str(known.verification) == "reproduced, 1 of 1 fresh JVM"
    assert known.write_ups == ("corpus/crashes/README.md#wild-write",)
    assert (new.write_ups, new.known) == ((), "")
    said = capfd.readouterr().err
    assert said.count("the first to do so") == 1
    assert "corrupt contract new by asgct: it wrote" in said.replace("  ", " ")


def test_buckets_are_shown_by_state_and_new_ones_before_known_ones(fuzzing: Fuzzing) -> None:
    fuzzing.find(line("known"), line("new"), line("torn", "torn"), line("real", "real"))
    found = collecting.of_process(fuzzing.folder, Symbolizer())
    shown = fuzzing.replays.conclude(found, fuzzing.run)
    assert [bucket.signature.clause for bucket in shown] == ["real", "torn", "new", "known"]


def test_nothing_is_replayed_after_an_interrupt(fuzzing: Fuzzing) -> None:
    fuzzing.find(line("new"))
    fuzzing.run.stopped = "interrupted"
    found = collecting.of_process(fuzzing.folder, Symbolizer())
    (bucket,) = fuzzing.replays.conclude(found, fuzzing.run)
    assert fuzzing.tried == []
    assert str(bucket.verification) == "not verified (interrupted)"
