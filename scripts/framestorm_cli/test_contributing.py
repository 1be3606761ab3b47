"""CONTRIBUTING.md says how few places a new thing has: those that are there have no others. Tests, pages,
the corpus and what is compiled into a JDK may name whatever they are about."""

import json
import subprocess

import pytest

from framestorm_cli.base import paths

_NAMES = json.loads((paths.SCRIPTS / "framestorm_cli" / "testdata" / "names.json").read_text())
_WALKERS = [row["name"] for row in _NAMES["walker_table"] if row["origin"] == "added"]
_CODE = ("*.cpp", "*.h", "*.cmake", "*CMakeLists.txt", "*.py", "*.java")
_NOT = ("*_test.cpp", "*_fixture.*", "*test_*.py", "*conftest.py", "*/fakes/*", "harness/hotspot/*")


def places(pattern: str, *code: str) -> set[str]:
    """Files of the code with a match of an extended regular expression."""
    command = ["git", "grep", "--untracked", "-lE", "-e", pattern, "--", *(code or _CODE)]
    command += [f":(exclude){path}" for path in _NOT]
    done = subprocess.run(command, cwd=paths.CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.splitlines())


def test_what_is_there_is_found() -> None:
    assert places("^class Walker ") == {"harness/walkers/walker.h"}


@pytest.mark.parametrize("name", _WALKERS)
def test_a_walker_is_a_row_and_an_adapter(name: str) -> None:
    named = places(rf'WalkerId::{name.replace("-", "_")}\b|"{name}"')
    # Matrices of stress are an example in a comment.
    others = named - {"harness/input/walker_table.h", "scripts/framestorm_cli/stress/matrix.py"}
    assert "harness/input/walker_table.h" in named
    assert others
    assert all(place.startswith("harness/walkers/") for place in others)


def test_a_profiler_is_a_row() -> None:
    assert places('"java-profiler-agent"') == {"scripts/framestorm_cli/profilers/table.py"}


@pytest.mark.parametrize("target", paths.TARGETS)
def test_a_target_is_a_file(target: str) -> None:
    # Headers and help texts name one as an example.
    assert places(rf"\b{target}\b", "*.cpp", "*.cmake", "*CMakeLists.txt") == {f"fuzz/{target}.cpp"}
    assert (paths.SEEDS / target).is_dir()


def test_no_list_of_targets_in_python() -> None:
    for target in ("fuzz_call", "fuzz_frame", "fuzz_thread_state"):
        assert places(rf"\b{target}\b", "*.py") == set()


def test_a_scenario_is_a_row_and_a_class() -> None:
    assert places(r'\blarge_frame\b|"large-frame"|\bLargeFrame\b') == {
        "harness/input/scenario_table.h",
        "harness/victim/java/common/framestorm/LargeFrame.java",
    }


@pytest.mark.parametrize("oracle", ["agreement", "determinism", "signal-safety"])
def test_an_oracle_is_a_file(oracle: str) -> None:
    assert places(f'"{oracle}"') == {f"harness/oracles/{oracle.replace('-', '_')}.cpp"}


def test_a_workload_is_a_row_and_a_class() -> None:
    folder = "stress/workloads/java/common/framestorm/workloads"
    assert places(r'\bTHREAD_CROWD\b|"thread-crowd"|\bThreadCrowd\b') == {
        f"{folder}/Catalog.java",
        f"{folder}/ThreadCrowd.java",
    }


def test_a_command_is_a_package() -> None:
    package = "scripts/framestorm_cli/doctor/"
    named = places(r"framestorm_cli\.doctor\b|def doctor\b")
    assert named
    assert all(place.startswith(package) for place in named)
