"""The `jdk` commands and `--jdk instrumented` on JDKs that are there already."""

import os
import shutil
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import Run
from framestorm_cli.hotspot import building, choosing
from framestorm_cli.hotspot.building import Request
from framestorm_cli.jdks import store


def put(
    jdk_home: Path,
    variant: str,
    source: str = "debian:openjdk-25",
    key: str = "k" * 64,
    version: str = "25.0.3+9",
) -> Path:
    """A finished instrumented JDK in the cache."""
    home = store.home_of(variant, version, key)
    shutil.copytree(jdk_home, home)
    record = store.Record(
        variant, version, source, "/", ("serial", "g1"), key, "tree", "base", 1e9, 60.0
    )
    store.write(home, record)
    return home


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What is asked to be built; nothing is."""
    asked: list[Request] = []

    def ensure(request: Request) -> Path:
        asked.append(request)
        return store.finished(request.variant)[0][0]

    monkeypatch.setattr(building, "ensure", ensure)
    return asked


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("instrumented", True),
        ("instrumented:plain", True),
        ("instrumented:", True),
        ("/opt/instrumented", False),
        ("instrumented2", False),
    ],
)
def test_which_options_name_an_instrumented_jdk(option: str, expected: bool) -> None:
    assert choosing.is_instrumented(Path(option)) is expected


def test_instrumented_is_the_sanitized_one_brought_up_to_date(
    jdk_home: Path, own_cache: Path, requests: list[Request]
) -> None:
    home = put(jdk_home, "sanitized", str(jdk_home))
    put(jdk_home, "plain")
    assert choosing.choose(Path("instrumented")).home == home.resolve()
    assert requests == [Request(str(jdk_home), Path("/"), "sanitized", ("serial", "g1"))]


def test_one_whose_source_is_gone_is_used_as_it_is(
    jdk_home: Path, own_cache: Path, requests: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    home = put(jdk_home, "sanitized", "/home/me/jdk")
    assert choosing.choose(Path("instrumented")).home == home.resolve()
    assert requests == []
    assert "/home/me/jdk is gone" in capsys.readouterr().err


def test_a_variant_can_be_named(jdk_home: Path, own_cache: Path, requests: list[Request]) -> None:
    put(jdk_home, "sanitized")
    plain = put(jdk_home, "plain")
    assert choosing.choose(Path("instrumented:plain")).home == plain.resolve()


def test_without_any_one_is_built_from_the_default_source(
    jdk_home: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def ensure(request: Request) -> Path:
        asked.append(request)
        return put(jdk_home, request.variant)

    monkeypatch.setattr(building, "ensure", ensure)
    assert choosing.choose(Path("instrumented:fastdebug")).feature == 25
    assert asked == [Request("debian:openjdk-25", None, "fastdebug")]


def test_an_unknown_variant(own_cache: Path) -> None:
    with pytest.raises(FramestormError, match="no variant turbo; variants: sanitized, fastdebug"):
        choosing.instrumented(Path("instrumented:turbo"))


def test_the_latest_is_the_one_last_used(jdk_home: Path, own_cache: Path) -> None:
    first = put(jdk_home, "plain", key="a" * 64)
    second = put(jdk_home, "plain", key="b" * 64)
    for seconds, home in enumerate((first, second)):
        os.utime(home / store.RECORD, (seconds, seconds))
    assert store.finished("plain")[0][0] == second
    store.used(first)
    assert store.finished("plain")[0][0] == first


def test_a_release_that_the_walkers_are_not_added_to_is_not_instrumented(
    jdk_home: Path, framestorm: Run
) -> None:
    with_them = put(jdk_home, "plain")
    newest = put(jdk_home, "plain", key="n" * 64, version="26.0.2+1")
    for seconds, home in enumerate((with_them, newest)):
        os.utime(home / store.RECORD, (seconds, seconds))
    assert [home for home, _ in choosing.with_walkers("plain")] == [with_them]
    assert [jdk.home for jdk in choosing.stock_builds()] == [newest.resolve()]
    code, out, err = framestorm("jdk", "path", "plain")
    assert (code, out.strip()) == (0, str(with_them)), err


def test_list(jdk_home: Path, framestorm: Run) -> None:
    code, out, err = framestorm("jdk", "list")
    assert (code, out) == (0, "")
    assert "no instrumented JDK yet" in err
    home = put(jdk_home, "plain")
    code, out, _ = framestorm("jdk", "list")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("plain")]
    assert "debian:openjdk-25" in line
    assert "serial, g1" in line
    assert str(home) in line


def test_path(jdk_home: Path, framestorm: Run) -> None:
    code, out, err = framestorm("jdk", "path", "plain")
    assert (code, out) == (2, "")
    assert "jdk build --variant plain" in err
    home = put(jdk_home, "plain")
    assert framestorm("jdk", "path", "plain")[:2] == (0, f"{home}\n")
    code, _, err = framestorm("jdk", "path", "turbo")
    assert code == 2
    assert "there is no variant turbo" in err


def test_clean_keeps_downloads_unless_told(jdk_home: Path, framestorm: Run) -> None:
    put(jdk_home, "plain")
    kept = store.folder() / "downloads" / "openjdk.tar.xz"
    tree = store.folder() / "trees" / "t" / "source" / "configure"
    for path in (kept, tree):
        path.parent.mkdir(parents=True)
        path.write_text("x" * 5000)
    code, out, _ = framestorm("jdk", "clean")
    assert code == 0
    assert "freed" in out
    assert store.finished() == []
    assert not tree.exists()
    assert kept.exists()
    assert framestorm("jdk", "clean", "--everything")[0] == 0
    assert not store.folder().exists()


def test_clean_removes_a_linked_tree_and_nothing_elsewhere(
    jdk_home: Path, tmp_path: Path, framestorm: Run
) -> None:
    trees = store.folder() / "trees"
    elsewhere = tmp_path / "elsewhere"
    for folder in (trees / "moved", elsewhere):
        (folder / "build").mkdir(parents=True)
        (folder / "build" / "Makefile").write_text("all:\n")
    (trees / "a-sanitized").symlink_to("moved")
    (trees / "b-release").symlink_to(elsewhere)
    (trees / "c-fastdebug").symlink_to("gone")
    code, _, err = framestorm("jdk", "clean")
    assert (code, "Traceback" in err) == (0, False)
    assert not trees.exists()
    assert (elsewhere / "build" / "Makefile").exists()


def test_build_errors_are_exit_2(framestorm: Run, tmp_path: Path) -> None:
    for arguments, words in (
        (("--source", tmp_path), "is not an OpenJDK source tree"),
        (("--source", tmp_path / "nowhere"), "no such file or folder"),
        (("--variant", "turbo"), "there is no variant turbo"),
        (("--gc", "epsilon"), "there is no collector epsilon"),
    ):
        code, out, err = framestorm("jdk", "build", *arguments)
        assert (code, out) == (2, "")
        assert words in err
        assert err.startswith("framestorm: error:")


def test_doctor_says_what_there_is(jdk_home: Path, framestorm: Run) -> None:
    put(jdk_home, "plain")
    _, out, _ = framestorm("doctor")
    (line,) = [
        line for line in out.splitlines() if "instrumented JDK" in line and "plain: " in line
    ]
    assert line.startswith("ok")
    (line,) = [
        line for line in out.splitlines() if "instrumented JDK" in line and "sanitized: " in line
    ]
    assert line.startswith("missing")
    assert "jdk build --variant sanitized" in line
