"""Every known crash on every installed JDK, in fresh processes (corpus/crashes)."""

import json
import os
import shutil
from pathlib import Path

import pytest

from framestorm_cli.artifacts import codec
from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.corpus import crashes, judging
from framestorm_cli.jdks import runtimes
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.test import run as testing
from framestorm_cli.triage import expectations

pytestmark = pytest.mark.long

JDKS = crashes.one_per_feature(runtimes.usable())
_ASSESSING = [*JDKS, *crashes.instrumented()]
ASSESSED = [
    (folder, jdk)
    for folder in expectations.folders()
    for jdk in _ASSESSING
    if jdk.label in expectations.read_expectations(folder / "expected.json")
]
IDS = [f"{folder.name}-jdk{jdk.label}" for folder, jdk in ASSESSED]


@pytest.mark.parametrize(("folder", "jdk"), ASSESSED, ids=IDS)
def test_crash(folder: Path, jdk: Jdk, tmp_path: Path) -> None:
    artifact = expectations.artifact_of(folder, jdk.label)
    expectation = judging.expectation_of(artifact, jdk)
    assert expectation is not None
    tools = toolchain.prepare(jdk.home)
    result = judging.judge(tools, Symbolizer(), artifact, expectation, tmp_path)
    assert not result.problem, result.problem


ARTIFACTS = [file for folder in expectations.folders() for file in sorted(folder.glob("*.bin"))]


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_is_written_down_is_that_of_the_artifact(artifact: Path) -> None:
    program = toolchain.native_programs() / NATIVE
    described = codec.describe(program, artifact)
    assert artifact.with_suffix(".txt").read_text() == described.text
    expected = json.loads(artifact.with_name("expected.json").read_text())
    assert (expected["walker"], expected["state"]) == (described.input.walker, described.state)


def test_there_are_crashes_and_jdks_to_test_them_on() -> None:
    assert expectations.folders(), f"{paths.CRASHES} is empty: nothing was tested"
    assert JDKS, "no usable JDK is installed: nothing was tested"


@pytest.mark.skipif(
    "CI" not in os.environ, reason="only CI builds what a crash needs to be replayed"
)
def test_ci_replays_every_crash_of_what_it_builds() -> None:
    replayed = {(folder, jdk.label) for folder, jdk in ASSESSED}
    for folder in expectations.folders():
        for label in expectations.read_expectations(folder / "expected.json"):
            fetched = label.isdecimal() and int(label) in runtimes.WHEELS
            if fetched or label.partition("-")[2] in testing.BUILT:
                assert (folder, label) in replayed, f"{folder.name}: there is no JDK {label}"


NOT_HERE = sorted(
    {
        label
        for folder in expectations.folders()
        for label in expectations.read_expectations(folder / "expected.json")
        if label.partition("-")[2] not in ("", *testing.BUILT)
    }
    - {jdk.label for _, jdk in ASSESSED}
)


@pytest.mark.parametrize("label", NOT_HERE)
def test_crashes_of_other_variants_are_replayed_where_these_are(label: str) -> None:
    pytest.skip(f"no JDK {label} here: `framestorm jdk build --variant {label.partition('-')[2]}`")


def test_every_crash_is_described() -> None:
    text = (paths.CRASHES / "README.md").read_text(encoding="utf-8")
    assert [folder.name for folder in expectations.folders() if folder.name not in text] == []


def test_the_readme_counts_them() -> None:
    states = [
        json.loads(file.read_text())["state"] for file in paths.CRASHES.glob("*/expected.json")
    ]
    text = " ".join((paths.CHECKOUT / "README.md").read_text(encoding="utf-8").split())
    assert f"describes {len(states)} causes" in text
    assert f"No mutation at all is needed for {states.count('real')} of them" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{torn", "expected.json"),
        ('{"per_jdk": {"25": {"status": "unknown"}}}', "is none of"),
        ('{"per_jdk": {"newest": {"status": "fixed"}}}', "is no release"),
        ('{"per_jdk": {"25": {"status": "open"}}}', "needs its signature"),
        ('{"per_jdk": {"25": {"status": "fixed"}}}', "no entry has a signature"),
        ('{"per_jdk": {"25": {"status": "open", "signature": {"kind": 1}}}}', "signature"),
    ],
)
def test_expectations_that_make_no_sense_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "expected.json").write_text(text)
    with pytest.raises(FramestormError, match=message):
        expectations.read_expectations(tmp_path / "expected.json")


def test_a_fixed_crash_is_looked_for_by_the_signature_of_the_open_one(tmp_path: Path) -> None:
    signature = '{"kind": "fault", "clause": "", "frames": ["a"]}'
    (tmp_path / "expected.json").write_text(
        f'{{"per_jdk": {{"17": {{"status": "open", "signature": {signature}}}, '
        '"25": {"status": "fixed"}}}'
    )
    expected = expectations.read_expectations(tmp_path / "expected.json")
    assert expected["25"] == ("fixed", expected["17"][1])


def test_corpus_add(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "CRASHES", tmp_path / "crashes")
    artifact = tmp_path / "a.bin"
    artifact.write_bytes(b"FAKEa")
    other = Path(shutil.copytree(fakes.tools.jdk.home, tmp_path / "jdk17"))
    (other / "release").write_text('JAVA_VERSION="17.0.1"\n')
    # The five tries on the first JDK show it, those on the other do not.
    fakes.plan("replay", *[{"findings": [fakes.fault("a", "frame::sender")]}] * 5, {"findings": []})
    add = ("corpus", "add", artifact, "--jdk", fakes.tools.jdk.home, "--jdk", other)
    code, _, _ = framestorm(*add, "--id", "sender")
    assert code == 0
    expected = expectations.read_expectations(tmp_path / "crashes" / "sender" / "expected.json")
    assert expected["25"][0] == "open"
    assert expected["17"][0] == "unaffected"
    assert (tmp_path / "crashes" / "sender" / "input.bin").read_bytes() == b"FAKEa"

    assert framestorm(*add, "--id", "sender")[0] == 2
    assert framestorm(*add, "--id", "../evil")[0] == 2
    assert framestorm(*add, "--id", "nothing")[0] == 1
    assert expectations.folders(tmp_path / "crashes") == [tmp_path / "crashes" / "sender"]
