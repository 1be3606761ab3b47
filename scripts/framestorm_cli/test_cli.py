"""Commands end to end on fake native programs: exit codes, messages, files."""

import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import junitparser
import msgspec
import pytest

from framestorm_cli import main
from framestorm_cli.base import files, run_folder
from framestorm_cli.base.run_folder import check_room
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import TESTDATA, FakePrograms, Run, compile_library
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Signature
from framestorm_cli.fuzz import summary
from framestorm_cli.replay import replaying
from framestorm_cli.triage.signature import native_filter

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


def artifact(tmp_path: Path, signature: records.Json | None = None) -> Path:
    path = tmp_path / "a.bin"
    path.write_bytes(b"FAKEa")
    if signature is not None:
        path.with_name("a.bin.json").write_text(json.dumps({"signature": signature}))
    return path


SENDER: records.Json = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}


def replay(framestorm: Run, fakes: FakePrograms, path: Path, *more: str) -> tuple[int, str, str]:
    return framestorm("replay", path, "--jdk", fakes.tools.jdk.home, "--tries", "4", *more)


def test_a_sample_is_shown(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    sample = tmp_path / "1.sample"
    sample.write_text('{"framestorm-sample": 1}')
    code, out, _ = framestorm("replay", sample)
    assert code == 0
    assert "nmethod entry + 0x35" in out
    assert "there is no input (.bin) of it beside it" in out
    sample.with_suffix(".bin").write_bytes(b"FAKEa")
    code, out, _ = framestorm("replay", sample)
    assert code == 0
    assert out.rstrip().endswith(f"scripts/framestorm replay {sample.with_suffix('.bin')}")
    sample.write_text("{}")
    code, _, err = framestorm("replay", sample)
    assert (code, "is no sample" in err) == (2, True)


def test_replay_counts_only_the_recorded_signature(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    hit, other = fakes.fault("a", "frame::sender"), fakes.fault("b", "fill", "frame::sender")
    fakes.plan(
        "replay", {"findings": [hit]}, {"findings": [other]}, {"findings": []}, {"end": "die"}
    )
    code, out, err = replay(framestorm, fakes, artifact(tmp_path, SENDER))
    assert code == 0
    assert "reproduced in 1 of 4 fresh JVMs" in out
    assert "frame::sender(RegisterMap*) const+0x2" in out
    assert "something else: fault in fill < frame::sender" in err
    assert "no finding" in err
    assert "not in this JVM: 1 name(s)" in err
    assert "process_death SIGKILL" in err


def test_replay_gives_the_native_side_the_function_ranges(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    replay(framestorm, fakes, artifact(tmp_path, SENDER), "--out", str(tmp_path / "kept"))
    given = json.loads((tmp_path / "kept" / "try01" / "signature.json").read_text())
    start, end = fakes.symbols.ranges("frame::sender")[0]
    assert given == {"kind": "fault", "clause": "", "frames": [["libjvm.so", [start, end]]]}


def test_a_walker_in_a_so_has_the_functions_of_its_signature(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    own = tmp_path / "walker.so"
    compile_library('extern "C" __attribute__((noinline)) int step(int x) { return x + 1; }', own)
    bare = tmp_path / "bare.so"
    compile_library('extern "C" int hidden(int x) { return x; }', bare, "-Wl,--strip-all")
    recorded = {
        "signature": Signature("fault", "", ("step", "frame::sender")),
        "walker_plugin": f"{own}=depth=3,x",
    }
    shrunk = tmp_path / "a.bin"
    shrunk.write_bytes(b"FAKEa")
    files.write_json(tmp_path / "a.bin.json", recorded)
    fakes.plan("replay", {"findings": []})
    framestorm(
        "replay", shrunk, "--tries", 1, "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "o"
    )
    given = json.loads((tmp_path / "o" / "try01" / "signature.json").read_text())
    assert [frame[0] for frame in given["frames"]] == ["walker.so", "libjvm.so"]
    (start,) = fakes.starts("replay")
    assert start[start.index("--walker-plugin") + 1] == f"{own}=depth=3,x"
    framestorm(
        "replay", shrunk, "--tries", 1, "--jdk", fakes.tools.jdk.home, "--walker-plugin", bare
    )
    assert f"{bare}=depth=3,x" in fakes.starts("replay")[-1]
    anywhere = native_filter(Signature("fault", "", ("[bare.so]",)), Symbolizer(), [bare])
    assert anywhere is not None
    assert anywhere["frames"] == [["bare.so", [0, bare.stat().st_size]]]
    assert native_filter(Signature("fault", "", ("nowhere",)), Symbolizer(), [own, bare]) is None


def test_minimize_and_scenarios_take_a_walker_in_a_so(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    own = tmp_path / "walker.so"
    own.touch()
    common = ("--jdk", fakes.tools.jdk.home, "--walker-plugin", f"{own}=mask")
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    fakes.plan("minimize", {"findings": [fakes.fault("a", "frame::sender")]})
    code, _, _ = framestorm("minimize", artifact(tmp_path, SENDER), *common)
    assert code == 0
    assert f"{own}=mask" in fakes.starts("minimize")[0]
    small = replaying.read_recorded(tmp_path / "a.min.bin", "25")
    assert small.outside.spec == f"{own}=mask"
    fakes.answer("scenarios", [])
    code, _, _ = framestorm("scenarios", *common)
    assert code == 0
    code, _, err = framestorm("scenarios", "--walker-plugin", tmp_path / "none.so=x")
    assert (code, "none.so does not exist" in err) == (2, True)


def test_overloads_share_a_name_so_each_of_their_ranges_counts(fakes: FakePrograms) -> None:
    wanted = Signature("fault", "", ("os::copy",))
    given = native_filter(wanted, Symbolizer(), [fakes.tools.jdk.libjvm])
    assert given is not None
    (frame,) = given["frames"]
    assert frame[1:] == [list(found) for found in fakes.symbols.ranges("os::copy")]
    assert len(frame) == 3


def test_replay_of_something_else_is_1(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("replay", {"findings": [fakes.fault("b", "fill")]})
    code, out, _ = replay(framestorm, fakes, artifact(tmp_path, SENDER))
    assert code == 1
    assert "reproduced in 0 of 4" in out
    assert "not reproducible here" in out


def test_replay_without_a_recorded_signature_is_1_and_says_so(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("replay", {"findings": [fakes.fault("b", "fill")]})
    code, out, _ = replay(framestorm, fakes, artifact(tmp_path))
    assert code == 1
    assert "no signature is recorded" in out
    assert "something was found in 4 of 4" in out


def test_garbage_artifacts_are_2(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    path = tmp_path / "garbage.bin"
    path.write_bytes(b"\xff\xfe")
    for command in (("replay", path), ("minimize", path), ("decode", path)):
        jdk = () if "decode" in command else ("--jdk", fakes.tools.jdk.home)
        code, _, err = framestorm(*command, *jdk)
        assert code == 2
        assert "not an artifact of framestorm" in err
        assert ("--force" in err) == ("decode" in command)  # which alone has it
    code, out, _ = framestorm("decode", "--force", path)
    assert (code, out.splitlines()[0]) == (0, "framestorm-input 1")
    assert fakes.starts("replay") == []


def test_a_damaged_sidecar_is_2(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    path = artifact(tmp_path)
    path.with_name("a.bin.json").write_text("{torn")
    code, _, err = replay(framestorm, fakes, path)
    assert code == 2
    assert "a.bin.json" in err


def test_decode_and_encode(framestorm: Run, tmp_path: Path) -> None:
    code, out, _ = framestorm("decode", artifact(tmp_path))
    assert (code, out.splitlines()[0]) == (0, "framestorm-input 1")
    (tmp_path / "a.txt").write_text(out)
    assert framestorm("encode", tmp_path / "a.txt", tmp_path / "b.bin")[0] == 0
    assert (tmp_path / "b.bin").read_bytes() == b"FAKEencoded"
    (tmp_path / "bad.txt").write_text("nonsense\n")
    code, _, err = framestorm("encode", tmp_path / "bad.txt", tmp_path / "c.bin")
    assert code == 2
    assert "line 1:" in err
    assert not (tmp_path / "c.bin").exists()


def test_decode_and_encode_in_a_pipe(
    framestorm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with artifact(tmp_path).open() as given:
        monkeypatch.setattr("sys.stdin", given)
        code, out, _ = framestorm("decode")
    assert (code, out.splitlines()[0]) == (0, "framestorm-input 1")
    (tmp_path / "a.txt").write_text(out)
    with (tmp_path / "a.txt").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        code, out, _ = framestorm("encode")
    assert (code, out) == (0, "FAKEencoded")


def test_minimize(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    hit = fakes.fault("a", "frame::sender")
    fakes.plan("minimize", {"findings": []}, {"findings": [hit]})
    fakes.plan("replay", {"findings": [hit]})
    path = artifact(tmp_path, SENDER)
    code, out, _ = framestorm("minimize", path, "--jdk", fakes.tools.jdk.home)
    assert code == 0
    assert "reproduced in 3 of 3 fresh JVMs" in out
    assert (tmp_path / "a.min.bin").read_bytes() == b"FAKEmin"
    assert json.loads((tmp_path / "a.min.bin.json").read_text())["signature"] == SENDER


def test_minimize_of_what_does_not_come_back_is_1(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("minimize", {"findings": []})
    code, out, _ = framestorm("minimize", artifact(tmp_path, SENDER), "--jdk", fakes.tools.jdk.home)
    assert code == 1
    assert "nothing was shrunk" in out


def test_triage_of_foreign_files(framestorm: Run, tmp_path: Path) -> None:
    code, out, _ = framestorm("triage", TESTDATA, "--out", tmp_path / "reports")
    assert code == 1
    assert "fault in os::fetch_frame_from_context" in out
    assert "sanitizer heap-buffer-overflow in walker::read_slot" in out
    assert len(list((tmp_path / "reports").glob("b*.md"))) == 4


def test_triage_of_nothing_is_2(framestorm: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = framestorm("triage", tmp_path / "empty")
    assert code == 2
    assert "nothing below" in err


def test_minimize_of_what_leaves_a_process_that_cannot_walk_on(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    minimized = ("minimize", artifact(tmp_path, SENDER), "--jdk", fakes.tools.jdk.home)
    fakes.plan("minimize", {"findings": [fakes.fault("a", "frame::sender")], "end": "not-reusable"})
    code, _, err = framestorm(*minimized)
    assert (code, "cannot be shrunk within one" in " ".join(err.split())) == (2, True)
    # Something else in its way is tried again.
    fakes.plan("minimize", {"end": "not-reusable"})
    code, out, _ = framestorm(*minimized)
    assert (code, "did not come back in 3 fresh JVMs" in out) == (1, True)


def test_scenarios(framestorm: Run, fakes: FakePrograms) -> None:
    c1 = {
        "name": "c1",
        "available": True,
        "walks": 100,
        "succeeded": 99,
        "java": True,
        "expected_percent": 99,
        "by_walker": {
            "asgct": {"walks": 100, "succeeded": 99},
            "asgct2": {"walks": 100, "succeeded": 100},
            "asgst": {"walks": 100, "succeeded": 100},
            "asgst-env": {"walks": 50, "succeeded": 50},
            "asgst-frame": {"walks": 100, "succeeded": 12},
            "jfr-trace": {"walks": 100, "succeeded": 0, "chooses": True},
        },
    }
    gc = {
        "name": "gc-thread",
        "available": True,
        "walks": 40,
        "succeeded": 0,
        "java": False,
        "expected_percent": 100,
    }
    ffi = {"name": "ffi", "available": False, "reason": "needs JDK 22 or later"}
    fakes.answer("scenarios", [c1, gc, ffi])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 0
    assert "unavailable: needs JDK 22 or later" in out
    assert "asgct 99 of 100, asgst-frame 12 of 100, jfr-trace none, others all" in out


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"succeeded": 98}, "too few by asgct: 98 of 100, 99 % expected"),
        ({"by_walker": {"asgst": {"walks": 40, "succeeded": 0}}}, "no frames by asgst"),
        ({"wrong": ["asgst: contract wrong-frames, halted at x"] * 2}, "wrong walks"),
        ({"wrong": ["asgst: reference: no frames"]}, "asgst: reference: no frames"),
    ],
)
def test_scenarios_that_do_not_walk(
    framestorm: Run, fakes: FakePrograms, changed: dict[str, Any], problem: str
) -> None:
    c1: dict[str, Any] = {
        "name": "c1",
        "available": True,
        "walks": 100,
        "succeeded": 99,
        "java": True,
        "expected_percent": 99,
        "by_walker": {"asgct": {"walks": 100, "succeeded": 99}},
    }
    jfr = {"jfr-request": {"walks": 40, "succeeded": 40, "chooses": True}}
    wrong = ["asgct: contract wrong-frames: x", "jfr-request: contract old-bytecode: x"]
    fakes.answer("scenarios", [{**c1, "by_walker": {**c1["by_walker"], **jfr}, "wrong": wrong}])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 0, "what AsyncGetCallTrace and JFR get wrong is shown only"
    assert all(one in out for one in wrong)
    fakes.answer("scenarios", [{**c1, **changed}])
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 1
    assert problem in " ".join(out.split())
    assert "do not walk as they should: c1" in out


def test_scenarios_show_first_what_makes_one_fail(framestorm: Run, fakes: FakePrograms) -> None:
    asgct = [f"asgct: contract wrong-frames: {number}" for number in range(9) for _ in range(2)]
    wrong = [*asgct, "asgst: reference: no frames"]
    fakes.answer(
        "scenarios",
        [{"name": "c1", "available": True, "walks": 9, "succeeded": 9, "wrong": wrong}],
    )
    code, out, _ = framestorm("scenarios", "--jdk", fakes.tools.jdk.home)
    assert code == 1
    assert "asgst: reference: no frames" in " ".join(out.split())


def test_scenarios_show_what_a_profiler_has_stored(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    stored = {"walks": 20, "succeeded": 0, "recorded": {"right": 18, "short": 2, "missing": 0}}
    c1 = {
        "name": "c1",
        "available": True,
        "walks": 20,
        "succeeded": 20,
        "java": True,
        "by_walker": {"asgct": {"walks": 20, "succeeded": 20}, "profiler": stored},
        "wrong": ["profiler: short: 3 frames, 5 expected, halted at x"] * 2,
    }
    fakes.answer("scenarios", [c1])
    asked = ("scenarios", "--jdk", fakes.tools.jdk.home, "--profiler", "jvm")
    code, out, _ = framestorm(*asked)
    assert code == 0, "what a profiler gets wrong is shown only"
    assert "all; profiler stored 18 right, 2 short" in out
    assert "profiler: short: 3 frames, 5 expected (2 times)" in out
    stored["recorded"] = {"right": 0, "missing": 20}
    fakes.answer("scenarios", [c1])
    code, out, _ = framestorm(*asked)
    assert code == 1
    assert "no frames by profiler" in " ".join(out.split())


def test_walkers(framestorm: Run, fakes: FakePrograms) -> None:
    code, out, _ = framestorm("walkers", "--jdk", fakes.tools.jdk.home)
    assert code == 0
    assert "asgct" in out
    assert "libjvm.so does not export AsyncGetStackTrace" in out
    assert "jdk build" in out
    told = " ".join(out.split())
    assert "plugin with --walker-plugin FILE" in told
    assert "profiler with --profiler NAME" in told


BENCH = {
    "jvm": "25.0.3+9",
    "edges": 34205,
    "modes": {
        "same-thread": {
            "walks": 12345, "walks_per_second": 301000.0, "bare_per_second": 602000.0, "ratio": 0.5,
        },
        "separate-thread": {
            "walks": 67890, "walks_per_second": 290000.0, "bare_per_second": 880000.0, "ratio": 0.33,
        },
    },
    "depths": [
        {"walker": "asgct", "depth": 1000, "frames": 500, "bare_ns": 50000.0, "executor_ns": 75000.0},
        {"walker": "asgst", "depth": 1000, "frames": 500, "bare_ns": 60000.0, "executor_ns": 80000.0},
    ],
}  # fmt: skip


def test_bench(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.answer("bench", BENCH)
    code, out, _ = framestorm("bench", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "bench")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["same-thread", "301,000", "602,000", "0.50", "12,345"] in rows
    assert ["separate-thread", "290,000", "880,000", "0.33", "67,890"] in rows
    assert ["asgct", "1,000", "500", "50.0", "1.00", "100", "75.0"] in rows
    assert ["asgst", "1,000", "500", "60.0", "1.20", "120", "80.0"] in rows
    data = json.loads((tmp_path / "bench" / "bench.json").read_text())
    (measured,) = data["measured"]
    assert measured["figures"] == BENCH
    assert measured["jdk"]["label"] == "25"
    assert "guided by 34,205 edge counters" in out
    assert data["machine"]["cores"] > 0
    assert data["date"] in out


def test_bench_of_several_jdks(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.answer("bench", {**BENCH, "edges": 0})
    home = fakes.tools.jdk.home
    folder = tmp_path / "bench"
    code, out, _ = framestorm("bench", "--jdk", home, "--jdk", home, "--out", folder)
    assert code == 0
    assert out.count("no edge counters") == 2
    assert len(json.loads((folder / "bench.json").read_text())["measured"]) == 2


def test_bench_of_other_programs_is_2_with_its_answer_kept(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.answer("bench", {"edges": 0, "modes": {}})
    code, _, err = framestorm("bench", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "bench")
    assert code == 2
    assert "'depths'" in err
    assert (tmp_path / "bench" / "bench.json").exists()


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
