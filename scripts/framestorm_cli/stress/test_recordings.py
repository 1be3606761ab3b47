"""Traces of recordings held to bytecode: what a recorded program's classes are changed to has to be seen."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress import jfr, recordings
from framestorm_cli.stress.jfr import EXECUTION

pytestmark = pytest.mark.long

_PROGRAM = Path(__file__).with_name("Program.java")
_JDKS = list({jdk.feature: jdk for jdk in jdks.usable() if jdk.javac is not None}.values())


@pytest.fixture(scope="module", params=_JDKS, ids=lambda jdk: str(jdk.feature))
def jdk(request: pytest.FixtureRequest) -> Jdk:
    assert isinstance(request.param, Jdk)
    return request.param


def compiled(jdk: Jdk, folder: Path, old: str = "", new: str = "") -> Path:
    """The program's classes, with one text of it replaced by another."""
    folder.mkdir()
    text = _PROGRAM.read_text(encoding="utf-8")
    assert old in text
    source = folder / _PROGRAM.name
    source.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    subprocess.run([str(jdk.javac), "-d", str(folder), str(source)], check=True)
    return folder


@pytest.fixture(scope="module")
def recording(jdk: Jdk, tmp_path_factory: pytest.TempPathFactory) -> jfr.Recording:
    folder = tmp_path_factory.mktemp("recorded")
    classes = compiled(jdk, folder / "classes")
    made = jfr.Recording(EXECUTION, folder / "recording", 1_000_000)
    java = jdk.home / "bin" / "java"
    command = [str(java), *made.start(), "-cp", str(classes), "Program"]
    subprocess.run(command, check=True)
    return made


def read(recording: jfr.Recording, jdk: Jdk, *class_path: Path) -> dict[str, Any]:
    return recording.recorded().stats(jdk, class_path, 3.0, 2.0)


def reasons(stats: dict[str, Any], verdict: str) -> str:
    return "\n".join(one["why"] for one in stats["examples"] if one["verdict"] == verdict)


def test_traces_of_the_program_as_it_is_are_whole(recording: jfr.Recording, jdk: Jdk) -> None:
    stats = read(recording, jdk, recording.folder.parent / "classes")
    verdicts = stats["verdicts"]
    assert verdicts["wrong"] == 0
    assert verdicts["whole"] > 0.9 * stats["samples"] > 0
    assert stats["calls_judged"] > stats["samples"]
    assert stats["findings"] == 0


def test_a_call_that_the_bytecode_has_not_is_wrong(
    recording: jfr.Recording, jdk: Jdk, tmp_path: Path
) -> None:
    other = compiled(
        jdk, tmp_path / "other", "void outer() {\n    inner();", "void outer() {\n    other();"
    )
    stats = read(recording, jdk, other)
    assert stats["findings"] == stats["verdicts"]["wrong"] > 0.9 * stats["samples"]
    assert "Program.inner" in reasons(stats, "wrong")
    assert "under Program.outer@0, which calls other()V" in reasons(stats, "wrong")
    kinds = {
        one["did"].rpartition(", ")[2] for one in stats["examples"] if one["verdict"] == "wrong"
    }
    assert kinds and kinds <= {"innermost", "further out"}


def test_a_caller_that_makes_the_call_elsewhere_is_misplaced(
    recording: jfr.Recording, jdk: Jdk, tmp_path: Path
) -> None:
    other = compiled(
        jdk,
        tmp_path / "other",
        "void outer() {\n    inner();",
        "void outer() {\n    sink++;inner();",
    )
    stats = read(recording, jdk, other)
    assert stats["findings"] == stats["verdicts"]["misplaced"] > 0.9 * stats["samples"]
    assert "calls nothing there" in reasons(stats, "misplaced")


def test_a_trace_that_ends_where_no_thread_begins_is_short(
    recording: jfr.Recording, jdk: Jdk, tmp_path: Path
) -> None:
    stats = read(recording, jdk, _no_thread(jdk, tmp_path))
    assert stats["verdicts"]["short"] > 0.2 * stats["samples"]
    assert stats["verdicts"]["whole"] > 0.2 * stats["samples"]
    assert "ends with Program$Spinner.run" in reasons(stats, "short")
    assert stats["frames"][EXECUTION]["ends_early"] == stats["verdicts"]["short"]


def _no_thread(jdk: Jdk, folder: Path) -> Path:
    """A class path on which the program's thread is none."""
    classes = folder / "other"
    classes.mkdir()
    source = classes / "Program.java"
    source.write_text(
        "class Program { static void outer() {}"
        " static class Spinner { public void run() { outer(); } } }"
    )
    subprocess.run([str(jdk.javac), "-d", str(classes), str(source)], check=True)
    (classes / "Program.class").unlink()
    return classes


def test_a_class_that_is_not_at_hand_is_not_judged(recording: jfr.Recording, jdk: Jdk) -> None:
    stats = read(recording, jdk)
    assert stats["verdicts"]["wrong"] == 0
    assert stats["calls_unknown"] > 0.5 * stats["samples"]


def test_only_a_trace_as_deep_as_the_profiler_goes_was_cut(jdk: Jdk, tmp_path: Path) -> None:
    classes = compiled(jdk, tmp_path / "classes")
    made = jfr.Recording(EXECUTION, tmp_path / "recording", 1_000_000, depth=2)
    java = jdk.home / "bin" / "java"
    subprocess.run([str(java), *made.start(), "-cp", str(classes), "Program"], check=True)

    def cut(depth: int) -> set[str]:
        traces = tmp_path / "traces.tsv"
        replace(made.recorded(), depth=depth)._read(jdk, [classes], traces)
        lines = [line.split("\t") for line in traces.read_text(encoding="utf-8").splitlines()]
        return {fields[2] for fields in lines if fields[0] == "trace" and len(fields) == 5}

    assert cut(2) == {"1"}
    assert cut(64) == {"0"}  # all say that they were truncated


def test_without_a_jdk_that_reads_bytecode_nothing_is_judged(
    recording: jfr.Recording, jdk: Jdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "_READER_JDK", 99)
    with pytest.raises(FramestormError, match="read by a JDK 99 or later"):
        read(recording, jdk)
