"""Commands end to end on fake native programs: exit codes, messages, files."""

import json
from pathlib import Path

import click
import jsonschema
import junitparser
import msgspec
import pytest

from framestorm_cli import main
from framestorm_cli.base import run_folder
from framestorm_cli.base.run_folder import check_room
from framestorm_cli.conftest import TESTDATA, FakePrograms, Run
from framestorm_cli.findings import records
from framestorm_cli.fuzz import summary

FUZZ = ("fuzz", "--target", "fuzz_stack", "--seconds", "2", "--jobs", "1", "--seed", "1")


def fuzz(framestorm: Run, fakes: FakePrograms, out: Path, *more: str) -> tuple[int, str, str]:
    return framestorm(*FUZZ, "--jdk", fakes.tools.jdk.home, "--out", out, *more)


def read_summary(out: Path) -> records.Json:
    data = json.loads((out / "summary.json").read_text())
    msgspec.convert(data, summary.Summary)
    assert isinstance(data, dict)
    return data


def commands(group: click.Group, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        found.append((*prefix, name))
        if isinstance(command, click.Group):
            found += commands(command, (*prefix, name))
    return found


@pytest.mark.parametrize("command", commands(main.framestorm), ids=" ".join)
def test_every_command_has_help_with_an_example(framestorm: Run, command: tuple[str, ...]) -> None:
    code, out, _ = framestorm(*command, "--help")
    assert code == 0
    assert f"Example: scripts/framestorm {' '.join(command)}" in out


def test_nothing_found_is_0(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    code, out, _ = fuzz(framestorm, fakes, tmp_path / "out")
    assert code == 0
    assert "nothing found" in out
    data = read_summary(tmp_path / "out")
    assert data["exit"] == 0
    assert data["buckets"] == []


def test_other_programs_read_a_run(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"findings": [fakes.fault("a", "frame::sender")]})
    out = tmp_path / "out"
    assert fuzz(framestorm, fakes, out, "--verify", "0")[0] == 1
    (suite,) = list(junitparser.JUnitXml.fromfile(str(out / "junit.xml")))
    (case,) = list(suite)
    assert case.name == "fuzz_stack"
    assert case.is_failure
    assert "fault in frame::sender" in str(case.result[0].message)
    document = json.loads((out / "report.sarif").read_text())
    schema = json.loads((TESTDATA / "sarif_used.schema.json").read_text())
    jsonschema.validate(document, schema)
    (result,) = document["runs"][0]["results"]
    assert result["ruleId"] == "framestorm/fault"
    where = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (out / where).exists()


def test_findings_are_1_with_bucket_artifact_report_and_command(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    near = [
        fakes.fault("a", "frame::sender", "fill"),
        fakes.fault("b", "frame::sender", "os::copy", "fill"),
    ]
    other = fakes.fault("c", "frame::sender_for_compiled_frame")
    fakes.plan("fuzz_stack", {"findings": [*near, other]})
    fakes.plan("replay", {"findings": [near[0]]})
    out = tmp_path / "out"
    code, printed, _ = fuzz(framestorm, fakes, out, "--verify", "2")
    assert code == 1
    first, second = read_summary(out)["buckets"]
    assert first["signature"] == {
        "kind": "fault",
        "clause": "",
        "frames": ["frame::sender", "fill"],
    }
    assert first["count"] == 14
    assert first["verification"]["status"] == "reproduced"
    assert second["verification"]["status"] == "not reproduced"
    assert "sp 64 below the real one" in first["explanation"]
    assert first["replay"] in printed
    assert (out / first["artifact"]).read_bytes().startswith(b"FAKE")
    assert "scenario c2-inlined" in (out / first["text"]).read_text()
    report = (out / first["report"]).read_text()
    assert "frame::sender(RegisterMap*) const+0x2" in report
    assert first["replay"] in report
    sidecar = json.loads((out / (first["artifact"] + ".json")).read_text())
    assert sidecar["signature"] == first["signature"]


def test_the_replay_command_of_a_summary_works(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    finding = fakes.fault("a", "frame::sender")
    fakes.plan("fuzz_stack", {"findings": [finding]})
    fakes.plan("replay", {"findings": [finding]})
    fuzz(framestorm, fakes, tmp_path / "out", "--jvm-arg=-Xmx64m")
    (bucket,) = read_summary(tmp_path / "out")["buckets"]
    arguments = bucket["replay"].split()
    assert arguments[0] == "scripts/framestorm"
    code, out, _ = framestorm(*arguments[1:], "--tries", "2")
    assert code == 0
    assert "reproduced in 2 of 2 fresh JVMs" in out
    assert "-Xmx64m" in fakes.starts("replay")[-1]


def test_a_dead_process_is_a_finding_with_its_input(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {"end": "die", "after": 0.9})
    code, _, _ = fuzz(framestorm, fakes, tmp_path / "out", "--verify", "0")
    assert code == 1
    (bucket,) = read_summary(tmp_path / "out")["buckets"]
    assert bucket["signature"]["kind"] == "process_death"
    assert bucket["signature"]["frames"] == ["os::fetch_frame_from_context"]
    assert (tmp_path / "out" / bucket["artifact"]).read_bytes() == b"FAKEdeath"


def test_low_success_is_2_with_findings_kept(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {"success": 0.1, "findings": [fakes.fault("a", "frame::sender")]})
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out", "--verify", "0")
    assert code == 2
    assert "unmutated walks of Java scenarios succeeded" in err
    assert "most often they gave c1 -5 (9" in err
    data = read_summary(tmp_path / "out")
    assert len(data["buckets"]) == 1


def test_no_target_can_run(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("fuzz_stack", {"end": "setup"})
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out")
    assert code == 2
    assert "libjvm.so cannot be loaded: fake" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scenario", "c1-inlined"), "Did you mean c2-inlined?"),
        (("--target", "stack"), "Did you mean fuzz_stack?"),
        (("--walker", "plugin"), "go together"),
        (("--mode", "both"), "there is no mode both"),
        (("--corpus", "/nowhere"), "is not a folder"),
        (("--jdk", "/nowhere"), "does not exist"),
    ],
)
def test_usage_errors_are_2(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out", *arguments)
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()


def test_an_empty_corpus_is_2(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out", "--corpus", str(tmp_path / "corpus"))
    assert code == 2
    assert "is empty" in err


def test_an_out_folder_with_something_in_it_is_left_alone(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out")
    assert code == 2
    assert "not an empty folder" in err
    assert (tmp_path / "out" / "precious").read_text() == "x"


def test_no_room_is_2(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "check_room", lambda folder: check_room(folder, 1 << 60))
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out")
    assert code == 2
    assert "MiB of free disk" in err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_at_the_end_loses_nothing(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    fakes.plan("fuzz_stack", {"findings": [fakes.fault("a", "frame::sender")]})
    monkeypatch.setattr("framestorm_cli.replay.replaying.write_sidecar", full)
    code, _, err = fuzz(framestorm, fakes, tmp_path / "out", "--verify", "0")
    assert code == 2
    assert "No space left on device" in err
    monkeypatch.undo()
    code, out, _ = framestorm("triage", tmp_path / "out" / "work")
    assert code == 1
    assert "fault in frame::sender" in out


def test_doctor_names_every_check(framestorm: Run) -> None:
    code, out, _ = framestorm("doctor")
    assert code in (0, 2)
    for what in (
        "architecture",
        "cores",
        "packages",
        "JDK under test",
        "core dumps",
        "open files",
        "disk (out)",
    ):
        assert what in out


def test_a_defect_of_framestorm_is_not_taken_for_findings(
    framestorm: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("framestorm_cli.triage.run.triage_command", broken)
    code, _, err = framestorm("triage", tmp_path)
    assert code == 2
    assert "broken on purpose" in err
