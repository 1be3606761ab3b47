"""Runs on native programs that do what the test says; the JDKs with a bug are stand-ins."""

import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from framestorm_cli.conftest import FakePrograms
from framestorm_cli.detect import canary, catalogue, judging, libraries, subjects
from framestorm_cli.detect.measuring import Measured, Planned
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.findings.finding import Finding

BUG = next(iter(catalogue.bugs()))
_PREPARE = canary.prepare
ONE = subjects.of_bug(catalogue.chosen((BUG,))[0])
MUTANT = Mutant(
    7, "src/hotspot/share/prims/asyncSample.cpp", 3, "f", "off by one", "a < b", "a <= b"
)


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


def surveyed(part: str, **more: object) -> Measured:
    return measured(subjects.UNMUTATED, None, parts=[part], **more)


def replays_on(monkeypatch: pytest.MonkeyPatch, *homes: str) -> None:
    """Findings come back on the JDKs in folders of these names, always, and on no other."""

    def hits(side: judging.Side, _finding: Finding, tries: int) -> tuple[int, int]:
        return (tries if side.tools.jdk.home.name in homes else 0), tries

    monkeypatch.setattr(judging.Side, "hits", hits)
