"""What is expected of an artifact, and whether it holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.corpus import judging
from framestorm_cli.corpus.judge_command import EXIT_NO_EXPECTATION

SENDER = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "crash" / "input.bin"
    path.parent.mkdir()
    path.write_bytes(b"FAKEa")
    return path


def expect(artifact: Path, status: str, label: str = "25") -> None:
    data = {"per_jdk": {label: {"status": status, "signature": SENDER}}}
    artifact.with_name("expected.json").write_text(json.dumps(data))


def judge(framestorm: Run, fakes: FakePrograms, artifact: Path, *more: object) -> tuple[int, Any]:
    verdict = artifact.with_name("verdict.json")
    code, out, err = framestorm(
        "corpus", "judge", artifact, "--jdk", fakes.tools.jdk.home, "--json", verdict, *more
    )
    return code, json.loads(verdict.read_text()) if verdict.exists() else out + err


def test_an_open_crash_that_comes_back(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    expect(artifact, "open")
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    code, verdict = judge(framestorm, fakes, artifact)
    assert code == 0
    assert (verdict["holds"], verdict["status"], verdict["reproduced"]) == (True, "open", 1)
    assert verdict["input"].startswith("framestorm-input 1")
    assert any("frame::sender" in line for line in verdict["case"]["stack"])
    assert "SIGSEGV" in verdict["case"]["fault"]


def test_an_open_crash_that_is_gone_is_looked_for_again(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    expect(artifact, "open")
    fakes.plan("replay", {"findings": []})
    code, verdict = judge(framestorm, fakes, artifact)
    assert (code, verdict["tries"]) == (1, sum(judging.ROUNDS))
    assert "did not come back" in verdict["problem"]


def test_a_jdk_may_have_an_artifact_of_its_own(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    expect(artifact, "open")
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    other = artifact.with_name("input-17.bin")
    other.write_bytes(b"FAKEa")
    assert judge(framestorm, fakes, artifact)[0] == 0
    assert judge(framestorm, fakes, other)[0] == EXIT_NO_EXPECTATION

    own = other.rename(artifact.with_name("input-25.bin"))
    assert judge(framestorm, fakes, artifact)[0] == EXIT_NO_EXPECTATION
    assert judge(framestorm, fakes, own)[0] == 0


@pytest.mark.parametrize("status", ["fixed", "unaffected"])
def test_a_fixed_crash(framestorm: Run, fakes: FakePrograms, artifact: Path, status: str) -> None:
    expect(artifact, status)
    fakes.plan("replay", {"findings": []})
    code, verdict = judge(framestorm, fakes, artifact)
    assert (code, verdict["holds"], verdict["status"]) == (0, True, status)


def test_a_fixed_crash_that_comes_back(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    expect(artifact, "fixed")
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    code, verdict = judge(framestorm, fakes, artifact)
    assert code == 1
    assert "it came back" in verdict["problem"]


@pytest.mark.parametrize(
    ("end", "options", "said", "hung"),
    [("hang", ("--limit", "1"), "did not end", judging.TRIES), ("die", (), "SIGKILL", 0)],
)
def test_a_jvm_that_hangs_or_dies_is_no_fix(
    framestorm: Run,
    fakes: FakePrograms,
    artifact: Path,
    end: str,
    options: tuple[str, ...],
    said: str,
    hung: int,
) -> None:
    expect(artifact, "fixed")
    fakes.plan("replay", {"findings": [], "end": end})
    code, verdict = judge(framestorm, fakes, artifact, *options)
    assert code == 1
    assert said in verdict["problem"]
    assert verdict["hung"] == hung


def test_what_was_not_walked_is_no_fix(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    expect(artifact, "fixed")
    fakes.plan("replay", {"findings": [], "walks": 0})
    code, verdict = judge(framestorm, fakes, artifact)
    assert (code, "no JVM came to walk it" in verdict["problem"]) == (1, True)


def test_nothing_expected_on_this_jdk(framestorm: Run, fakes: FakePrograms, artifact: Path) -> None:
    expect(artifact, "open", "17")
    code, said = judge(framestorm, fakes, artifact)
    assert code == 5
    assert "nothing is expected of it on JDK 25" in said
    assert fakes.starts("replay") == []


def test_an_artifact_of_which_nothing_is_known_must_find_nothing(
    framestorm: Run, fakes: FakePrograms, artifact: Path
) -> None:
    fakes.plan(
        "replay", {"findings": []}, {"findings": []}, {"findings": [fakes.fault("a", "os::copy")]}
    )
    assert judge(framestorm, fakes, artifact)[0] == 0
    code, verdict = judge(framestorm, fakes, artifact)
    assert code == 1
    assert "os::copy" in verdict["problem"]


def test_a_sidecar_of_fuzz_is_an_open_crash_of_its_jdk(fakes: FakePrograms, artifact: Path) -> None:
    sidecar = artifact.with_name("input.bin.json")
    sidecar.write_text(json.dumps({"signature": SENDER, "jdk": {"feature": 25}}))
    known = judging.expectation_of(artifact, fakes.tools.jdk)
    assert known is not None
    assert (known.status, known.must_come_back) == ("open", True)
    sidecar.write_text(json.dumps({"signature": SENDER, "status": "fixed"}))
    known = judging.expectation_of(artifact, fakes.tools.jdk)
    assert known is not None
    assert known.status == "fixed"
    sidecar.write_text(json.dumps({"signature": SENDER, "jdk": {"feature": 17}}))
    assert judging.expectation_of(artifact, fakes.tools.jdk) is None
    for bad in ({"signature": SENDER, "status": "gone"}, {"status": "open"}, {}):
        sidecar.write_text(json.dumps(bad))
        with pytest.raises(FramestormError, match=r"input\.bin\.json"):
            judging.expectation_of(artifact, fakes.tools.jdk)


def test_identify(framestorm: Run, fakes: FakePrograms) -> None:
    home = fakes.tools.jdk.home
    code, out, _ = framestorm("jdk", "identify", home, "--prepare")
    assert code == 0
    assert json.loads(out) == [
        {"given": str(home), "home": str(home), "version": "25.0.3+9", "label": "25"}
    ]
