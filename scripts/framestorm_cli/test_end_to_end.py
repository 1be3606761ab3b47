"""The real thing, briefly: every target on the JDK of the machine."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from framestorm_cli import paths, summary


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    out = tmp_path_factory.mktemp("run") / "out"
    command = [str(paths.SCRIPTS / "framestorm"), "fuzz", "--seconds", "10", "--seed", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "FRAMESTORM_BIN"}
    done = subprocess.run(
        [*command, "--verify", "1", "--out", str(out)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
        check=False,
    )
    return out, done


def test_it_fuzzes(run: tuple[Path, "subprocess.CompletedProcess[str]"]) -> None:
    out, done = run
    assert done.returncode in (0, 1), done.stderr
    data = json.loads((out / "summary.json").read_text())
    summary.validate(data)
    assert data["exit"] == done.returncode
    assert set(data["targets"]) == set(paths.TARGETS)
    for figures in data["targets"].values():
        assert figures["walks"] > 0
    assert data["liveness"]["ok"]
    assert (data["exit"] == 1) == bool(data["buckets"])


def test_every_bucket_has_what_a_person_needs(
    run: tuple[Path, "subprocess.CompletedProcess[str]"],
) -> None:
    out, done = run
    for bucket in json.loads((out / "summary.json").read_text())["buckets"]:
        assert bucket["explanation"] in done.stdout
        assert bucket["replay"] in done.stdout
        assert (out / bucket["artifact"]).stat().st_size > 0
        assert (out / bucket["text"]).read_text().startswith("framestorm-input")
        assert bucket["id"] in (out / bucket["report"]).read_text()
