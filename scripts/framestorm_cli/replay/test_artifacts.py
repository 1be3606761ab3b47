"""Commands that are given an artifact, on fake native programs: replay, minimize, decode, encode."""

import json
from pathlib import Path

import pytest

from framestorm_cli.base import files
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms, Run, compile_library
from framestorm_cli.findings import records
from framestorm_cli.findings.finding import Signature
from framestorm_cli.replay import replaying
from framestorm_cli.triage.signature import native_filter


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
