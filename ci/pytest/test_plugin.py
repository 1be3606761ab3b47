"""The plugin: against a made-up checkout whose `scripts/framestorm` does what a test says, and for real."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_framestorm import checkout

PLUGIN = Path(__file__).parent
CHECKOUT = PLUGIN.parents[1]
TEXT = "framestorm-input 1\nscenario parked\nwalker {walker}\nregister sp = real-sp - 64\n"
_FAKE = """#!{python}
import json, pathlib, sys, time
HERE = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
with (HERE / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
plan = json.loads((HERE / "plan.json").read_text())
if arguments[:2] == ["jdk", "identify"]:
    print("framestorm: setting up", file=sys.stderr)
    given = arguments[arguments.index("--") + 1:]
    if "no-jdk" in given:
        sys.exit("framestorm: error: no-jdk is no JDK")
    print(json.dumps([dict(given=g, home="/jdks/" + g, version=g + ".0.1", label=g) for g in given]))
elif arguments[0] == "decode":
    if b"artifact" not in pathlib.Path(arguments[-1]).read_bytes():
        sys.exit("framestorm: error: not an artifact of framestorm")
    print(plan["text"])
else:
    jdk = arguments[arguments.index("--jdk") + 1].removeprefix("/jdks/")
    entry = plan["verdicts"].get(pathlib.Path(arguments[-1]).parent.name, {{}}).get(jdk)
    if entry is None:
        sys.exit(5)
    if entry == "broken":
        sys.exit("framestorm: error: scenario parked is not available on this JDK")
    pathlib.Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(entry))
    sys.exit(0 if entry["holds"] else 1)
"""


def verdict(status: str, problem: str = "", **more: Any) -> "dict[str, Any]":
    case = {
        "signature": "fault in frame::sender",
        "explanation": "read of 0x8: null + 8 in frame::sender",
        "detail": "",
        "fault": "SIGSEGV, si_code 1, address 0x8, pc libjvm.so+0x12",
        "stack": ["frame::sender+0x12", "AsyncGetCallTrace+0x34"],
    }
    return {
        "jdk": {"label": "25", "version": "25.0.1", "home": "/jdks/25"},
        "status": status,
        "signature": "fault in frame::sender",
        "holds": not problem,
        "problem": problem,
        "tries": 2,
        "reproduced": 2,
        "hung": 0,
        "input": TEXT.format(walker="asgct"),
        "case": case,
        **more,
    }


class Fake:
    """A project with artifacts and a checkout that answers as planned."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.scripts = pytester.path / "checkout" / "scripts"
        self.scripts.mkdir(parents=True)
        program = self.scripts / "framestorm"
        program.write_text(_FAKE.format(python=sys.executable))
        program.chmod(0o755)
        self.verdicts: dict[str, dict[str, Any]] = {}

    def crash(self, name: str, walker: str = "asgct", **verdicts: Any) -> Path:
        folder = self.pytester.path / "crashes" / name
        folder.mkdir(parents=True)
        (folder / "input.bin").write_bytes(b"artifact")
        (folder / "input.txt").write_text(TEXT.format(walker=walker))
        self.verdicts[name] = {key.removeprefix("jdk"): value for key, value in verdicts.items()}
        return folder

    def run(self, *arguments: str, jdks: "tuple[str, ...]" = ("25",)) -> pytest.RunResult:
        plan = {"text": TEXT.format(walker="asgct"), "verdicts": self.verdicts}
        (self.scripts / "plan.json").write_text(json.dumps(plan))
        options = [f"--framestorm-jdk={jdk}" for jdk in jdks]
        return self.pytester.runpytest_subprocess(
            "-p", "pytest_framestorm.plugin", "--strict-markers", *options, *arguments, "crashes"
        )

    def calls(self, name: str) -> "list[list[str]]":
        lines = (self.scripts / "calls.jsonl").read_text().splitlines()
        return [call for call in map(json.loads, lines) if name in call]


@pytest.fixture
def fake(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake(pytester)
    monkeypatch.setenv(checkout.HOME, str(made.scripts.parent))
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))
    return made


def test_one_test_per_artifact_and_jdk(fake: Fake) -> None:
    fake.crash("null-word", jdk25=verdict("open"), jdk17=verdict("unaffected", reproduced=0))
    fake.crash("gone", jdk25=verdict("fixed", reproduced=0))
    result = fake.run("-v", jdks=("25", "17"))
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "framestorm JDK: 25.0.1 (/jdks/25), expectations of 25",
            "crashes/gone/input.bin::jdk25 PASSED*",
            "crashes/gone/input.bin::jdk17 SKIPPED*",
            "crashes/null-word/input.bin::jdk25 PASSED*",
            "crashes/null-word/input.bin::jdk17 PASSED*",
        ]
    )
    for line in ("1 open, and reproduced", "1 fixed, and still gone", "1 unaffected, and still so"):
        result.stdout.fnmatch_lines([line])


def test_a_failure_shows_input_and_stack(fake: Fake) -> None:
    fake.crash("gone", jdk25=verdict("fixed", "fixed on JDK 25, but it came back"))
    result = fake.run()
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "fixed on JDK 25, but it came back",
            "  register sp = real-sp - 64",
            "explanation: read of 0x8: null + 8 in frame::sender",
            "walker stack:",
            "  #0  frame::sender+0x12",
            "  #1  AsyncGetCallTrace+0x34",
            "replay: scripts/framestorm replay * --jdk /jdks/25",
        ]
    )


def test_a_hung_jvm_is_said(fake: Fake) -> None:
    fake.crash("stuck", jdk25=verdict("open", "did not come back", hung=2, case=None))
    result = fake.run("--framestorm-timeout", "7")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["HUNG: 2 of 2 JVMs did not end and were killed"])
    assert fake.calls("judge")[0][fake.calls("judge")[0].index("--limit") + 1] == "7"


@pytest.mark.parametrize(
    ("chosen", "passed"),
    [("asgct", ["a"]), ("asgst-iterator", ["b"]), ("jdk25", ["a", "b"]),
     ("framestorm and not asgct", ["b"])],
)  # fmt: skip
def test_markers_of_walker_and_jdk(fake: Fake, chosen: str, passed: "list[str]") -> None:
    fake.crash("a", jdk25=verdict("open"))
    fake.crash("b", "asgst-iterator", jdk25=verdict("open"))
    result = fake.run("-m", chosen, "-v")
    result.assert_outcomes(passed=len(passed), deselected=2 - len(passed))
    for name in passed:
        result.stdout.fnmatch_lines([f"crashes/{name}/input.bin::jdk25 PASSED*"])


def test_in_parallel_the_jdks_are_set_up_once(fake: Fake) -> None:
    for number in range(4):
        fake.crash(f"c{number}", jdk25=verdict("open"))
    fake.crash("bad", jdk25=verdict("fixed", "it came back"))
    result = fake.run("-n", "2")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["  #0  frame::sender+0x12", "4 open, and reproduced"])
    assert len(fake.calls("identify")) == 1


def test_nothing_expected_on_the_jdk_is_not_green(fake: Fake) -> None:
    fake.crash("a", jdk17=verdict("open"))
    result = fake.run()
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*nothing is expected of any of the 1 artifacts on 25*"])


def test_a_replay_that_cannot_be_made_fails(fake: Fake) -> None:
    fake.crash("a", jdk25="broken")
    result = fake.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["could not replay *", "*scenario parked is not available*"])


def test_bare_artifacts_are_decoded_and_others_refused(fake: Fake) -> None:
    folder = fake.crash("bare", jdk25=verdict("unknown", case=None))
    (folder / "input.txt").unlink()
    (folder / "noise.bin").write_bytes(b"\x7fELF")
    result = fake.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*not an artifact of framestorm*"])
    (folder / "noise.bin").unlink()
    fake.run("-m", "asgct").assert_outcomes(passed=1)


def test_other_projects_are_left_alone(fake: Fake) -> None:
    fake.crash("a", jdk25=verdict("open"))
    result = fake.run(jdks=())
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (fake.scripts / "calls.jsonl").exists()


def test_the_jdk_may_stand_in_the_configuration(fake: Fake) -> None:
    fake.crash("a", jdk25=verdict("open"))
    fake.pytester.makeini("[pytest]\nframestorm_jdk = 25\n")
    fake.run(jdks=()).assert_outcomes(passed=1)


def test_what_is_wrong_with_jdk_or_checkout_is_said(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.crash("a", jdk25=verdict("open"))
    result = fake.run(jdks=("no-jdk",))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no-jdk is no JDK*"])
    monkeypatch.setenv(checkout.HOME, str(fake.pytester.path))
    result = fake.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*has no scripts/framestorm: set FRAMESTORM_HOME*"])


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    program = tmp_path / "scripts" / "framestorm"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nsleep 600 &\necho $! > "$1"\necho working\nwait\n')
    program.chmod(0o755)
    with pytest.raises(
        checkout.CallFailedError, match=r"did not end in 1 s and was killed:\nworking"
    ):
        checkout.call(tmp_path, [str(tmp_path / "child")], 1.0)
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    while child.exists() and (child / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.05)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as pip installs it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", str(folder), str(PLUGIN)],
        check=True,
    )
    return folder


def _elsewhere(installed: Path, folder: Path, jdk: str, crash: str) -> str:
    """Runs pytest in another folder, with one crash of the corpus copied there."""
    shutil.copytree(CHECKOUT / "corpus" / "crashes" / crash, folder / "crashes" / crash)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    environment.pop(checkout.HOME, None)
    command = [sys.executable, "-m", "pytest", "--framestorm-jdk", jdk, "crashes"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _newest(variant: str = "") -> str:
    """A JDK to replay on, as the checkout chooses it."""
    from framestorm_cli.hotspot import choosing

    if not variant:
        return str(choosing.choose(None).home)
    found = choosing.with_walkers(variant)
    if not found:
        pytest.skip(f"no JDK here: `framestorm jdk build --variant {variant}`")
    return str(found[0][0])


def test_installed_elsewhere_it_reproduces_an_open_crash(installed: Path, tmp_path: Path) -> None:
    said = _elsewhere(installed, tmp_path, _newest(), "safe-for-sender-accepts-misaligned-fp")
    assert f"framestorm: {CHECKOUT}" in said
    assert "1 open, and reproduced" in said


def test_installed_elsewhere_it_reports_a_fixed_one(installed: Path, tmp_path: Path) -> None:
    said = _elsewhere(installed, tmp_path, _newest("plain"), "method-entry-caller-sp-unchecked")
    assert "1 fixed, and still gone" in said
