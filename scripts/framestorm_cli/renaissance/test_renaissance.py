"""The suite's jar, its benchmarks and its failures, on a small jar with Renaissance's command line."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.renaissance import obtaining, outcome, suite
from framestorm_cli.renaissance.obtaining import Release
from framestorm_cli.renaissance.outcome import Kind, Outcome

SOURCE = Path(__file__).parent / "FakeRenaissance.java"
# name: groups, distribution, oldest and newest JDK, what it does
BENCHMARKS = {
    "dotty": ("scala", "MIT", "11", "", ""),
    "scala-doku": ("scala", "MIT", "1.8", "", ""),
    "scala-stm-bench7": ("scala", "GPL3", "11", "", ""),
    "als": ("apache-spark", "MIT", "11", "", ""),
    "old": ("database", "MIT", "11", "16", ""),
    "new": ("database", "GPL3", "99", "", ""),
    "wrong": ("web", "MIT", "11", "", "give a wrong result"),
    "throwing": ("web", "MIT", "11", "", "throw"),
    "hungry": ("web", "MIT", "11", "", "use up the heap"),
    "unloadable": ("web", "MIT", "11", "", "not load"),
    "breaking": ("web", "MIT", "11", "", "break the JVM"),
    "killed": ("web", "MIT", "11", "", "be killed"),
    "dummy-empty": ("dummy", "MIT", "11", "", ""),
}
MANIFEST = """Manifest-Version: 1.0
Main-Class: FakeRenaissance
Specification-Title: Renaissance Benchmark Suite
Implementation-Version: {version}
"""


def metadata(distribution: str) -> str:
    lines = ["#Benchmark details"]
    for name, (groups, distro, oldest, newest, does) in BENCHMARKS.items():
        if distribution == "MIT" and distro != "MIT":
            continue
        settings = {
            "name": name,
            "groups": groups,
            "distro": distro,
            "jvm_version_min": oldest,
            "jvm_version_max": newest,
            "summary": "Runs\\: a benchmark\\u002e",
            "repetitions": "30",
            "configuration.default.does": does,
        }
        lines += [f"benchmark.{name}.{key}={value}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def jdk() -> Jdk:
    return next(jdk for jdk in jdks.usable() if jdk.javac is not None)


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory, jdk: Jdk) -> Path:
    folder = tmp_path_factory.mktemp("fake-renaissance")
    assert jdk.javac is not None
    subprocess.run([jdk.javac, "--release", "17", "-d", folder, SOURCE], check=True)
    return folder


def make_jar(
    folder: Path, classes: Path, distribution: str = "GPL", version: str = "0.16.0"
) -> Path:
    jar = folder / f"renaissance-{distribution.lower()}-{version}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST.format(version=version))
        archive.writestr("benchmarks.properties", metadata(distribution))
        for file in classes.iterdir():
            archive.write(file, file.name)
    return jar


@pytest.fixture
def jar(tmp_path: Path, classes: Path) -> Path:
    return make_jar(tmp_path, classes)


def test_what_is_in_a_jar(tmp_path: Path, classes: Path) -> None:
    gpl = suite.read(make_jar(tmp_path, classes, "GPL", "0.16.1"))
    mit = suite.read(make_jar(tmp_path, classes, "MIT", "0.14.0"))
    assert (gpl.version, gpl.distribution) == ("0.16.1", "GPL")
    assert (mit.version, mit.distribution) == ("0.14.0", "MIT")
    assert set(gpl.benchmarks) == set(BENCHMARKS)
    assert "scala-stm-bench7" not in mit.benchmarks
    dotty = gpl.benchmarks["dotty"]
    assert dotty.workload == "renaissance:dotty"
    assert dotty.groups == ("scala",)
    assert dotty.summary == "Runs: a benchmark."
    assert dotty.repetitions == 30
    assert (dotty.oldest_jdk, dotty.newest_jdk) == (11, 0)
    assert gpl.benchmarks["scala-doku"].oldest_jdk == 8
    assert dotty.jvm_args == ()
    assert gpl.benchmarks["als"].jvm_args == ("-Xss4m",)


def names(jar: Path, jdk: Jdk, *wanted: str) -> set[str]:
    return {one.name for one in suite.read(jar).select(wanted, jdk)[0]}


def test_names_globs_groups_and_all(jar: Path, jdk: Jdk) -> None:
    assert names(jar, jdk, "renaissance:dotty") == {"dotty"}
    assert names(jar, jdk, "renaissance:scala-*") == {"scala-doku", "scala-stm-bench7"}
    assert names(jar, jdk, "renaissance:scala") == {"scala-doku", "scala-stm-bench7", "dotty"}
    assert names(jar, jdk, "renaissance:dotty", "renaissance:als") == {"dotty", "als"}
    assert names(jar, jdk, "renaissance:dummy-empty") == {"dummy-empty"}
    everything = {name for name in BENCHMARKS if name not in ("dummy-empty", "old", "new")}
    assert names(jar, jdk, "renaissance:all") == everything
    assert names(jar, jdk, "renaissance:*") == everything


def test_benchmarks_this_jdk_cannot_run(jar: Path, jdk: Jdk) -> None:
    _, left_out = suite.read(jar).select(["renaissance:all"], jdk)
    assert len(left_out) == 2
    assert any("renaissance:new needs JDK 99 or later" in reason for reason in left_out)
    assert any("renaissance:old needs JDK 16 or older" in reason for reason in left_out)
    with pytest.raises(FramestormError, match="renaissance:new needs JDK 99"):
        suite.read(jar).select(["renaissance:new"], jdk)
    with pytest.raises(FramestormError, match="no benchmark is left"):
        suite.read(jar).select(["renaissance:database"], jdk)
    with pytest.raises(FramestormError, match=r"there is no renaissance:doty in .* It has: als, "):
        suite.read(jar).select(["renaissance:doty"], jdk)


def test_what_is_no_jar_of_renaissance(tmp_path: Path, classes: Path) -> None:
    with pytest.raises(FramestormError, match="does not exist"):
        suite.read(tmp_path / "absent.jar")
    torn = tmp_path / "torn.jar"
    torn.write_bytes(make_jar(tmp_path, classes).read_bytes()[:500])
    with pytest.raises(FramestormError, match="was the download interrupted"):
        suite.read(torn)
    other = tmp_path / "other.jar"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    with pytest.raises(FramestormError, match="is no jar of Renaissance's"):
        suite.read(other)
    with pytest.raises(FramestormError, match=r"Renaissance 0\.13\.0: framestorm takes 0\.14"):
        suite.read(make_jar(tmp_path, classes, version="0.13.0"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b\nc : d\ne f\n", {"a": "b", "c": "d", "e": "f"}),
        ("# no\n! no\n\n  x=1", {"x": "1"}),
        (r"a\ b\:c=d\=e\\f\tg", {"a b:c": "d=e\\f\tg"}),
        ("long=one \\\n   two\nnext=\\\\\nlast=", {"long": "one two", "next": "\\", "last": ""}),
        (r"u=\u00e9", {"u": "é"}),
    ],
)
def test_properties_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert suite.properties(text) == found


def run(jar: Path, jdk: Jdk, name: str, folder: Path, *options: str) -> tuple[Outcome, int, str]:
    found = suite.read(jar)
    program = found.program(found.benchmarks[name])
    command = [
        str(jdk.home / "bin" / "java"),
        "-Xmx64m",
        "-XX:-CreateCoredumpOnCrash",
        *program,
        *options,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    return (
        outcome.judge(output, done.returncode, folder / suite.RESULTS),
        done.returncode,
        output,
    )


def test_a_benchmark_that_runs(jar: Path, jdk: Jdk, tmp_path: Path) -> None:
    judged, code, _ = run(jar, jdk, "dotty", tmp_path, suite.ITERATIONS_OPTION, "3")
    assert (judged, code) == (Outcome(3, None, True), 0)
    judged, _, _ = run(jar, jdk, "scala-doku", tmp_path, suite.SECONDS_OPTION, "1")
    assert judged.finished
    assert judged.iterations >= 2


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("wrong", Kind.VALIDATION, "expected 1 but got 2"),
        ("throwing", Kind.EXCEPTION, "java.net.ConnectException: refused"),
        ("hungry", Kind.OUT_OF_MEMORY, "java.lang.OutOfMemoryError: "),
        ("unloadable", Kind.LOAD, "failed to load benchmark unloadable"),
        ("new", Kind.UNSUPPORTED_JVM, "requires JVM version >=99"),
    ],
)
def test_failures_that_are_none_of_walking(
    jar: Path, jdk: Jdk, tmp_path: Path, name: str, kind: Kind, says: str
) -> None:
    judged, _, output = run(jar, jdk, name, tmp_path)
    assert judged.failure is not None, output
    assert judged.failure.kind == kind
    assert says in judged.failure.message
    assert not judged.finished


@pytest.mark.parametrize("name", ["breaking", "killed"])
def test_ends_that_may_well_be_of_walking(jar: Path, jdk: Jdk, tmp_path: Path, name: str) -> None:
    judged, code, output = run(jar, jdk, name, tmp_path)
    assert code != 0
    assert judged == Outcome(judged.iterations, None, False), output


def test_a_name_that_is_not_there_and_a_run_that_does_nothing() -> None:
    absent = outcome.judge("Benchmark (or group) 'x' does not exist.\n", 1)
    assert absent.failure is not None
    assert absent.failure.kind == Kind.ABSENT
    nothing = outcome.judge("", 0)
    assert nothing.failure is not None
    assert nothing.failure.kind == Kind.NOTHING_DONE
    assert outcome.judge("Error occurred during initialization of VM\n", 1) == Outcome(
        0, None, False
    )
    assert outcome.judge("", None) == Outcome(0, None, False)


def test_where_the_jar_comes_from(
    jar: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classes: Path
) -> None:
    mit = make_jar(tmp_path, classes, "MIT")
    monkeypatch.setenv(obtaining.ENVIRONMENT, str(mit))
    assert obtaining.find(jar).distribution == "GPL"
    assert obtaining.find(None).distribution == "MIT"
    monkeypatch.setenv(obtaining.ENVIRONMENT, str(tmp_path / "absent.jar"))
    with pytest.raises(FramestormError, match=rf"{obtaining.ENVIRONMENT}: .*does not exist"):
        obtaining.find(None)


def test_a_download_is_kept(jar: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(obtaining.ENVIRONMENT, raising=False)
    release = Release(jar.as_uri(), hashlib.sha512(jar.read_bytes()).hexdigest())
    found = obtaining.find(None, release)
    assert own_cache in found.jar.parents
    jar.unlink()
    assert obtaining.find(None, release) == found


def test_a_download_with_another_checksum_is_thrown_away(
    jar: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(obtaining.ENVIRONMENT, raising=False)
    with pytest.raises(FramestormError, match="has the SHA-512"):
        obtaining.find(None, Release(jar.as_uri(), "0" * 128))
    assert list((own_cache / "renaissance").iterdir()) == []


def test_no_download_to_be_had(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(obtaining.ENVIRONMENT, raising=False)
    with pytest.raises(
        FramestormError, match=r"could not be downloaded .*--renaissance PATH or FRAME"
    ):
        obtaining.find(None, Release((tmp_path / "absent.jar").as_uri(), "0" * 128))
    assert list((own_cache / "renaissance").iterdir()) == []


def test_the_pinned_release_is_one() -> None:
    assert obtaining.RELEASE.file == "renaissance-gpl-0.16.0.jar"
    assert len(bytes.fromhex(obtaining.RELEASE.sha512)) == 64
