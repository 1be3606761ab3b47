"""ci/: what other people's infrastructure reads."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from framestorm_cli.base import packages, paths
from framestorm_cli.hotspot import building
from framestorm_cli.oss_fuzz import settings
from framestorm_cli.oss_fuzz.test_settings import OSS_FUZZ

_CI = paths.CHECKOUT / "ci"
_CFLITE = _CI / "clusterfuzzlite"
_WORKFLOWS = sorted((_CFLITE / "workflows").glob("*.yml"))
_DOCKERFILES = (_CI / "oss-fuzz" / "Dockerfile", _CFLITE / ".clusterfuzzlite" / "Dockerfile")
_ACTIONS = {
    "google/clusterfuzzlite/actions/build_fuzzers@v1": {
        "language", "sanitizer", "github-token", "upload-build", "keep-unaffected-fuzz-targets",
    },
    "google/clusterfuzzlite/actions/run_fuzzers@v1": {
        "github-token", "mode", "fuzz-seconds", "sanitizer", "output-sarif",
        "storage-repo", "storage-repo-branch", "storage-repo-branch-coverage",
    },
}  # fmt: skip


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(path: Path) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    return [(job, job["steps"]) for job in load(path)["jobs"].values()]


def test_yaml_is_clean() -> None:
    rules = "{extends: default, rules: {line-length: {max: 130}, document-start: disable, "
    rules += "truthy: {check-keys: false}}}"
    done = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "-d", rules, str(_CI)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_project_yaml() -> None:
    project = load(_CI / "oss-fuzz" / "project.yaml")
    assert {"homepage", "language", "primary_contact", "main_repo"} <= project.keys()
    assert project["language"] == "c++"
    assert project["fuzzing_engines"] == [one for one in settings.ENGINES if one != "none"]
    assert set(project["sanitizers"]) == {"address", "undefined"}
    assert set(project["sanitizers"]) <= settings.VARIANTS.keys()
    assert project["architectures"] == ["x86_64"]


def test_there_is_a_workflow_for_each_mode() -> None:
    modes = {
        step["with"]["mode"]
        for path in _WORKFLOWS
        for _, steps in jobs(path)
        for step in steps
        if "run_fuzzers" in step["uses"]
    }
    assert modes == {"code-change", "batch", "prune", "coverage"}


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.stem)
def test_workflow(path: Path) -> None:
    assert load(path)["permissions"] == "read-all"
    for job, steps in jobs(path):
        for step in steps:
            assert step["with"].keys() <= _ACTIONS[step["uses"]]
            asked = step["with"]["sanitizer"]
            each = job["strategy"]["matrix"]["sanitizer"] if "matrix" in asked else [asked]
            assert set(each) <= settings.VARIANTS.keys()
        first, *rest = steps
        assert "build_fuzzers" in first["uses"]
        # What is run is what was built.
        assert all(step["with"]["sanitizer"] == first["with"]["sanitizer"] for step in rest)


@pytest.mark.parametrize("path", _DOCKERFILES, ids=lambda path: path.parent.name)
def test_an_image_has_the_packages_that_a_build_looks_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("FROM gcr.io/oss-fuzz-base/base-builder")
    words = set(re.split(r"[\s\\]+", text))
    assert {*packages.BUILD_PACKAGES, *building.PACKAGES} <= words
    assert "$SRC/build.sh" in text


@pytest.mark.parametrize(
    "path",
    [_CI / "oss-fuzz" / "build.sh", _CFLITE / ".clusterfuzzlite" / "build.sh"],
    ids=lambda path: path.parent.name,
)
def test_build_sh_is_a_thin_bash_script(path: Path) -> None:
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) < 20


def test_build_sh_says_what_is_missing() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OSS_FUZZ}
    done = subprocess.run(
        [str(_CI / "oss-fuzz" / "build.sh")],
        env={**environment, **{k: v for k, v in OSS_FUZZ.items() if k != "CC"}},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "CC is not set" in done.stderr
