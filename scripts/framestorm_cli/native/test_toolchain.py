"""Set-up that has to happen once and then not again."""

import subprocess
import threading
from pathlib import Path

import pytest

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
foreach(name fuzz_ucontext fuzz_frame fuzz_stack fuzz_thread_state fuzz_call fuzz_iterator fuzz_queue
    framestorm-native framestorm-step)
  add_executable(${name} main.cpp)
endforeach()
"""


@pytest.fixture
def checkout(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a project that builds in a second."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "main.cpp").write_text("int main() {}\n")
    (folder / "CMakePresets.json").write_bytes((paths.CHECKOUT / "CMakePresets.json").read_bytes())
    monkeypatch.setattr(paths, "CHECKOUT", folder)
    monkeypatch.setattr(toolchain, "headers", lambda _: tmp_path)
    monkeypatch.delenv("FRAMESTORM_BIN", raising=False)
    return folder


def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What of the logged steps runs from now on."""
    names: list[str] = []
    original = steps.run_logged

    def record(command: list[str], **arguments: str) -> None:
        names.append(arguments["log_name"])
        original(command, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(steps, "run_logged", record)
    return names


def _did_nothing() -> bool:
    return "no work to do" in (paths.cache() / "logs" / "build.log").read_text()


def test_a_second_build_does_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ran(monkeypatch)
    programs = toolchain.native_programs()
    assert not _did_nothing()
    assert (programs / toolchain.NATIVE).exists()
    assert paths.cache() in programs.parents
    capsys.readouterr()
    toolchain.native_programs()
    assert _did_nothing()
    assert capsys.readouterr().err == ""
    (checkout / "main.cpp").write_text("int main() { return 1; }\n")
    toolchain.native_programs()
    assert not _did_nothing()
    assert names.count("configure") == 1


def test_no_room_to_build_in(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "BUILD_ROOM", 1 << 60)
    names = ran(monkeypatch)
    with pytest.raises(FramestormError, match="MiB of free disk"):
        toolchain.native_programs()
    assert names == []


def test_two_at_once_build_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ran(monkeypatch)
    threads = [threading.Thread(target=toolchain.native_programs) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["configure", "build", "build"]
    assert _did_nothing()


def test_a_build_that_fails_shows_the_error(checkout: Path) -> None:
    (checkout / "main.cpp").write_text("int main() { return undeclared; }\n")
    with pytest.raises(FramestormError) as error:
        toolchain.native_programs()
    assert "undeclared" in error.value.message
    assert "build.log" in error.value.message


def test_a_compiler_cache_that_is_there_is_used(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for language in ("C", "CXX"):
        monkeypatch.delenv(f"CMAKE_{language}_COMPILER_LAUNCHER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.compiler_launchers() == {}
    (tmp_path / "ccache").touch(mode=0o755)
    found = toolchain.compiler_launchers()
    assert sorted(found) == ["CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_C_COMPILER_LAUNCHER"]
    assert all(value.endswith(str(tmp_path / "ccache")) for value in found.values())
    assert all(f"CCACHE_DIR={paths.cache()}" in value for value in found.values())
    monkeypatch.setenv("CMAKE_CXX_COMPILER_LAUNCHER", "own")
    assert toolchain.compiler_launchers() == {}


def test_own_programs_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAMESTORM_BIN", str(tmp_path))
    with pytest.raises(FramestormError, match="FRAMESTORM_BIN"):
        toolchain.native_programs()


@pytest.fixture
def victims(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two small victims, one of them for newer JDKs."""
    for name, source in (
        ("common/framestorm/A.java", "package framestorm; public class A {}"),
        (
            "jdk22/framestorm/B.java",
            "package framestorm; class B extends A { Object o = java.lang.foreign.Arena.global(); }",
        ),
    ):
        path = tmp_path / "java" / name
        path.parent.mkdir(parents=True)
        path.write_text(source)
    monkeypatch.setattr(toolchain, "_JAVA", tmp_path / "java")
    return tmp_path / "java"


def installed() -> list[Jdk]:
    return [jdk for jdk in jdks.usable() if jdk.javac is not None]


@pytest.mark.parametrize("jdk", installed(), ids=lambda jdk: jdk.version)
def test_victims_for_this_jdk(victims: Path, jdk: Jdk) -> None:
    folder = toolchain.victims(jdk)
    assert (folder / "framestorm" / "A.class").exists()
    assert (folder / "framestorm" / "B.class").exists() == (jdk.feature >= 22)
    stamp = (folder / "framestorm" / "A.class").stat().st_mtime_ns
    assert toolchain.victims(jdk) == folder
    assert (folder / "framestorm" / "A.class").stat().st_mtime_ns == stamp
    (victims / "common" / "framestorm" / "A.java").write_text(
        "package framestorm; class A { int x; }"
    )
    assert toolchain.victims(jdk) != folder


def test_a_victim_that_does_not_compile_leaves_nothing_behind(
    victims: Path, own_cache: Path
) -> None:
    (victims / "common" / "framestorm" / "A.java").write_text(
        "package framestorm; class A { broken }"
    )
    with pytest.raises(FramestormError, match=r"A\.java"):
        toolchain.victims(installed()[0])
    assert list(own_cache.glob("classes-*/")) == []


def test_there_is_a_jdk_to_test_with() -> None:
    assert installed(), "no usable JDK with javac is installed: see `scripts/framestorm doctor`"


@pytest.mark.parametrize(
    ("program", "arguments"), [(toolchain.STEP, ("run",)), (paths.TARGETS[0], ())]
)
def test_help_and_errors_list_names_as_text(program: str, arguments: tuple[str, ...]) -> None:
    path = toolchain.native_program(program)
    for asked in (("--help",), ("--walker", "no-such-walker")):
        done = subprocess.run([path, *arguments, *asked], capture_output=True, check=False)
        said = (done.stdout + done.stderr).decode()
        assert "asgct" in said
        assert all(character.isprintable() or character.isspace() for character in said)
