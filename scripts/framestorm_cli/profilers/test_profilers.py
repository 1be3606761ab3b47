"""--profiler from its name to the library, the processes and the artifacts; Maven is a stand-in."""

import json
import platform
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import files, jars
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.conftest import FakePrograms, Run, compile_library
from framestorm_cli.corpus import judging
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.profilers import obtaining, outside, table
from framestorm_cli.profilers.table import Known, Released

LIBRARY = 'extern "C" __attribute__((used)) int walkVM(int x) { return x + 1; }'


@pytest.fixture
def known(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Known:
    """`quick`, the only known profiler; its jar is in tmp_path/jars."""
    library = tmp_path / "libQuick.so"
    compile_library(LIBRARY, library)
    jar = tmp_path / "jars" / "quick-1.5.jar"
    jar.parent.mkdir()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.write(library, "linux/libQuick.so")
    released = Released(
        "org.example", "quick", "1.5", files.sha256(jar),
        {platform.machine(): "linux/libQuick.so"},
    )  # fmt: skip
    one = Known("quick", "a test's", released, "start,file=%o/quick.jfr")
    monkeypatch.setattr(table, "KNOWN", (one,))
    monkeypatch.setattr(table, "BY_NAME", {"quick": one, "jfr": table.BY_NAME["jfr"]})
    return one


@pytest.fixture
def by_hand(known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that FRAMESTORM_PROFILERS names."""
    monkeypatch.setenv(jars.ENVIRONMENT, str(tmp_path / "jars"))
    return tmp_path / "jars"


def install_maven(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\necho called >> {folder}/calls\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


COPY = """
for argument; do
  case $argument in
    -DoutputDirectory=*) into=${argument#*=} ;;
    -Dartifact=*) what=${argument#*=} ;;
  esac
done
[ "$what" = org.example:quick:1.5 ] || { echo "no artifact $what"; exit 1; }
cp "$JARS"/quick-1.5.jar "$into"
"""


def test_a_profiler_is_fetched_once_and_kept_in_the_cache(
    known: Known, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JARS", str(tmp_path / "jars"))
    install_maven(tmp_path / "maven", COPY, monkeypatch)
    library = obtaining.library(known)
    assert library.read_bytes() == (tmp_path / "libQuick.so").read_bytes()
    assert own_cache in library.parents
    assert obtaining.library(known) == library
    assert (tmp_path / "maven" / "calls").read_text().split() == ["called"]
    assert [entry.name for entry in library.parent.iterdir()] == ["libQuick.so"]


def test_what_to_do_by_hand_is_said_when_maven_fails(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_maven(tmp_path / "maven", "echo Could not resolve; exit 1", monkeypatch)
    with pytest.raises(
        FramestormError, match=r"(?s)Could not resolve.*FRAMESTORM_PROFILERS=FOLDER"
    ):
        obtaining.library(known)


def test_a_jar_of_another_content_is_not_used(known: Known, by_hand: Path) -> None:
    with (by_hand / "quick-1.5.jar").open("ab") as file:
        file.write(b"more")
    with pytest.raises(FramestormError, match="has the SHA-256"):
        obtaining.library(known)
    library = obtaining.cached(known)
    assert library is not None
    assert not library.exists()


def test_a_folder_without_the_jar_is_an_error(known: Known, by_hand: Path) -> None:
    (by_hand / "quick-1.5.jar").unlink()
    with pytest.raises(FramestormError, match=r"there is no quick-1\.5\.jar in that folder"):
        obtaining.library(known)


def test_a_machine_that_the_release_has_no_library_for(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(FramestormError, match="no library for riscv64"):
        obtaining.library(known)


def test_names_options_and_files(by_hand: Path, fake_jdk: Jdk, tmp_path: Path) -> None:
    found = outside.resolve("quick", fake_jdk)
    assert (found.version, found.options) == ("1.5", "start,file=%o/quick.jfr")
    assert found.arguments(tmp_path) == [
        "--profiler", f"{found.file}=start,file={tmp_path}/quick.jfr",
    ]  # fmt: skip
    assert outside.resolve("quick=start,cpu=1ms", fake_jdk).options == "start,cpu=1ms"
    own = tmp_path / "libQuick.so"
    assert outside.resolve(str(own), fake_jdk).arguments(tmp_path) == ["--profiler", str(own)]
    assert outside.resolve(f"{own}=a=b", fake_jdk).options == "a=b"
    assert found.sha256 == files.sha256(own)


def test_options_by_which_it_samples_by_itself(
    fake_jdk: Jdk, by_hand: Path, known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = "start,every=%i,file=%o/own.jfr"
    monkeypatch.setattr(table, "KNOWN", (replace(known, sampling=sampling),))
    other = tmp_path / "libOther.so"
    other.touch()

    def sampled(profiler: str) -> str:
        return outside.resolve(profiler, fake_jdk).sampling.rpartition("/lib")[2]

    assert sampled("quick") == f"Quick.so={sampling}"
    # A build of one's own is started as the released library of that name is.
    assert sampled(f"{tmp_path}/libQuick.so=start") == f"Quick.so={sampling}"
    assert sampled(f"{other}=start,file=%o/x.jfr").endswith("%o/x.jfr")
    assert sampled(f"{other}=start,file=%o/x") == ""
    assert outside.resolve("jfr", fake_jdk).sampling == "jfr"
    assert outside.resolve("jvm", fake_jdk).sampling == ""


def test_jfr_is_started_by_arguments_of_the_jvm(fake_jdk: Jdk, tmp_path: Path) -> None:
    found = outside.resolve("jfr", fake_jdk)
    option, value, jvm_arg, started, again, repository = found.arguments(tmp_path)
    assert (option, value, jvm_arg, again) == ("--profiler", "jvm", "--jvm-arg", "--jvm-arg")
    assert started.startswith(f"-XX:StartFlightRecording=filename={tmp_path}/jfr.jfr,")
    assert "jdk.CPUTimeSample#enabled=true" in started
    assert repository == f"-XX:FlightRecorderOptions=repository={tmp_path}/jfr-repository"
    assert found.libraries == ()


def test_jfr_before_25_is_its_sampler_thread(fake_jdk: Jdk, tmp_path: Path) -> None:
    found = outside.resolve("jfr", replace(fake_jdk, feature=21))
    started, _, log = found.arguments(tmp_path)[3::2]
    assert "jdk.ExecutionSample#enabled=true" in started
    assert log == "-Xlog:jfr=off"


def test_a_jdk_on_which_it_does_not_walk_is_refused(
    known: Known, fake_jdk: Jdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = replace(known, jdks=(17, 25), why_not="it does not start there")
    assert [old.walks_on(24), old.walks_on(25)] == [True, False]
    monkeypatch.setattr(table, "BY_NAME", {"quick": old})
    with pytest.raises(FramestormError, match="it does not start there"):
        outside.resolve("quick", replace(fake_jdk, feature=25))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--profiler", "quik"],
            "there is no profiler quik. Did you mean quick? Known: quick, jfr",
        ),
        (["--profiler", "./lib.so=start"], "profiler ./lib.so does not exist"),
        (["--walker", "profiler"], "--walker profiler and --profiler NAME go together"),
        (
            ["--walker-plugin", "x.so", "--profiler", "jvm"],
            "--walker plugin and --walker-plugin FILE",
        ),
        (["--walker", "asgct", "--profiler", "jvm"], "--walker profiler and --profiler NAME go"),
        (["--profiler", "jfr=start"], "jfr takes no options"),
    ],
)
def test_what_makes_no_sense_is_refused(
    framestorm: Run, known: Known, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, _, err = framestorm("fuzz", "--out", tmp_path / "out", *arguments)
    assert code == 2
    assert message in err


def fuzzed(
    framestorm: Run, fakes: FakePrograms, out: Path, *options: str, **planned: Any
) -> tuple[int, str, dict[str, Any]]:
    fakes.plan("fuzz_stack", planned)
    code, said, err = framestorm(
        "fuzz", "--target", "fuzz_stack", "--runs", "1000", "--verify", "1", "--jobs", "1",
        "--seed", "1", "--out", out, "--jdk", fakes.tools.jdk.home, *options,
    )  # fmt: skip
    return code, said + err, json.loads((out / "summary.json").read_text())


def test_a_run_names_the_profiler_and_its_artifacts_find_it_again(
    framestorm: Run, fakes: FakePrograms, by_hand: Path, tmp_path: Path
) -> None:
    fault = fakes.fault("a", "frame::sender")
    fakes.plan("replay", {"findings": [fault]})
    code, said, summary = fuzzed(
        framestorm, fakes, tmp_path / "out", "--profiler", "quick", findings=[fault]
    )
    assert code == 1, said
    assert "profiler quick 1.5 (start,file=%o/quick.jfr)" in said
    assert "1,000 samples stored of 1,000 of them, 2 faults that it survived" in said
    assert summary["options"]["walker"] == "profiler"
    assert summary["options"]["profiler"]["version"] == "1.5"
    assert summary["totals"]["profiler"]["signal"] == "SIGPROF"
    assert "walked by: quick 1.5" in (tmp_path / "out" / "reports" / "b01.md").read_text()

    (fuzzing,) = fakes.starts("fuzz_stack")
    process = tmp_path / "out" / "work" / "000-fuzz_stack"
    assert fuzzing[fuzzing.index("--walker") + 1] == "profiler"
    given = fuzzing[fuzzing.index("--profiler") + 1]
    assert given.endswith(f"libQuick.so=start,file={process}/quick.jfr")
    # Each replay has a folder of its own.
    (verifying,) = fakes.starts("replay")
    again = verifying[verifying.index("--profiler") + 1]
    assert again != given
    assert "%o" not in again

    artifact = tmp_path / "out" / "artifacts" / "b01.bin"
    recorded = json.loads(artifact.with_name("b01.bin.json").read_text())["profiler"]
    assert recorded == {
        "name": "quick", "version": "1.5", "options": "start,file=%o/quick.jfr",
        "sha256": files.sha256(tmp_path / "libQuick.so"),
    }  # fmt: skip
    tries = ("--tries", "1", "--jdk", fakes.tools.jdk.home)
    code, said, _ = framestorm("replay", artifact, *tries)
    assert code == 0, said
    assert "profiler: quick 1.5" in said
    assert "--profiler" in fakes.starts("replay")[1]
    # A path is taken instead, with the options that were recorded.
    other = tmp_path / "other.so"
    other.write_bytes((tmp_path / "libQuick.so").read_bytes())
    assert framestorm("replay", artifact, *tries, "--profiler", other)[0] == 0
    assert any(f"{other}=start,file=" in argument for argument in fakes.starts("replay")[2])


def test_a_profiler_that_stores_nothing_does_not_pass(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, said, summary = fuzzed(
        framestorm, fakes, out, "--profiler", "jvm", profiler={"succeeded": 0}
    )
    assert code == 2
    assert "jvm stored no sample in 1,000 calls of its handler" in said
    assert not summary["liveness"]["ok"]


def test_an_artifact_of_a_version_that_is_not_here(known: Known, fake_jdk: Jdk) -> None:
    was = outside.from_recorded({"profiler": {"name": "quick", "version": "1.4", "options": "x"}})
    with pytest.raises(FramestormError, match=r"recorded with the profiler quick 1\.4 \(x\)"):
        outside.again(was, None, None, fake_jdk)


def test_an_artifact_of_the_jvms_own_profiler_starts_that_of_this_jdk(fake_jdk: Jdk) -> None:
    was = outside.resolve("jfr", replace(fake_jdk, feature=26))
    read = outside.from_recorded(json.loads(json.dumps(was.recorded())))
    assert outside.again(read, None, None, fake_jdk) == outside.resolve("jfr", fake_jdk)


def test_a_library_that_has_changed_since_is_told(
    fake_jdk: Jdk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "libOwn.so"
    library.write_bytes(b"one")
    was = outside.from_recorded(outside.resolve(f"{library}=start", fake_jdk).recorded())
    assert outside.again(was, None, None, fake_jdk) == was
    assert "differs" not in capsys.readouterr().err
    library.write_bytes(b"two")
    assert outside.again(was, None, None, fake_jdk).options == "start"
    assert "its SHA-256 differs" in capsys.readouterr().err


def test_an_expectation_can_name_the_profiler(
    framestorm: Run, fakes: FakePrograms, by_hand: Path, tmp_path: Path
) -> None:
    artifact = tmp_path / "input.bin"
    artifact.write_bytes(b"FAKEa")
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    expected: dict[str, Any] = {
        "profiler": {"name": "quick", "version": "1.5", "options": "start"},
        "per_jdk": {"25": {"status": "open", "signature": signature}},
    }
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    judged = ("corpus", "judge", artifact, "--jdk", fakes.tools.jdk.home)
    code, said, _ = framestorm(*judged)
    assert code == 0, said
    starts = fakes.starts("replay")
    assert len(starts) == judging.ROUNDS[0]
    assert all(
        start[start.index("--profiler") + 1].endswith("libQuick.so=start") for start in starts
    )
    expected["profiler"]["version"] = "1.4"
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    assert framestorm(*judged)[0] == 2
    assert framestorm(*judged, "--profiler", "quick")[0] == 0


def test_a_signature_of_a_profiler_is_told_as_ranges_of_its_library(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    library = tmp_path / "libQuick.so"
    compile_library(LIBRARY, library)
    artifact = tmp_path / "a.bin"
    artifact.write_bytes(b"FAKEa")
    signature = {"kind": "fault", "clause": "", "frames": ["walkVM", "frame::sender"]}
    (tmp_path / "a.bin.json").write_text(json.dumps({"signature": signature}))
    fakes.plan("minimize", {"findings": [fakes.fault("a", "frame::sender")]})
    kept = tmp_path / "kept"
    framestorm(
        "replay", artifact, "--tries", "1", "--out", kept, "--jdk", fakes.tools.jdk.home,
        "--profiler", library,
    )  # fmt: skip
    given = json.loads((kept / "try01" / "signature.json").read_text())
    assert [frame[0] for frame in given["frames"]] == ["libQuick.so", "libjvm.so"]


@pytest.mark.parametrize("command", ["scenarios", "bench"])
def test_other_commands_pass_it_on(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, command: str
) -> None:
    library = tmp_path / "libQuick.so"
    compile_library(LIBRARY, library)
    fakes.answer(command, [] if command == "scenarios" else {"edges": 0, "modes": {}, "depths": []})
    out = ["--out", tmp_path / "out"] if command == "bench" else []
    code, said, err = framestorm(
        command, "--jdk", fakes.tools.jdk.home, "--profiler", f"{library}=start", *out
    )
    assert code == 0, said + err


def test_the_list_says_where_they_are(framestorm: Run, by_hand: Path, own_cache: Path) -> None:
    code, said, _ = framestorm("profilers")
    assert code == 0
    assert "quick 1.5" in said
    assert "fetched when it is first used, from org.example:quick:1.5" in said
    code, said, _ = framestorm("profilers", "--fetch")
    assert code == 0
    assert str(own_cache / "profilers" / "quick-1.5" / "libQuick.so") in said


@pytest.mark.long
@pytest.mark.parametrize(
    "known", [one for one in table.KNOWN if one.released], ids=lambda one: one.name
)
def test_released_profilers_are_to_be_had(known: Known) -> None:
    assert elf.exports(obtaining.library(known), "Agent_OnLoad")
