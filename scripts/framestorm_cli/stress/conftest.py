"""A fake JDK whose java does what a test says (fake_java.py)."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from framestorm_cli.conftest import Planned, Run
from framestorm_cli.fakes import plan
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native.toolchain import NATIVE, STEP
from framestorm_cli.stress import summary
from framestorm_cli.stress.workloads import BuiltIn

WORKLOADS = ("alpha", "beta")
ONE = ("--workload", "alpha", "--mode", "same-thread", "--duration", "3s")


class FakeJava(Planned):
    """`plan(workload, entry, entry, ...)` says what each of its starts does."""

    def __init__(self, jdk: Jdk) -> None:
        super().__init__(jdk.home / "bin", jdk.libjvm, cells={})
        self.jdk = jdk
        self.folder.mkdir()
        plan.install(self.folder / "java", "fake_java")
        self.lists(*WORKLOADS)

    def lists(self, *names: str, missing: str = "") -> None:
        line = {"summary": "does things", "missing": missing, "threads": "two"}
        self._plan["workloads"] = [
            {**line, "name": name, "jvm_args": ["-Dnatives={natives}"]} for name in names
        ]
        self._save()

    def plan(self, workload: str, *entries: dict[str, Any]) -> None:
        self._plan["cells"][workload] = list(entries)
        self._save()

    def preloaded(self, workload: str) -> list[str]:
        """LD_PRELOAD of every start of a workload so far, also of those without the agent."""
        return (self.folder / f"{workload}.preloaded").read_text().splitlines()

    def child_of(self, workload: str) -> int:
        """The process that a hanging workload started."""
        return int((self.folder / f"{workload}.child").read_text())


@pytest.fixture
def java(
    jdk_home: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FakeJava:
    home = tmp_path / "jdk"
    shutil.copytree(jdk_home, home)
    agent = tmp_path / "build" / "stress" / "agent" / "libframestorm.so"
    agent.parent.mkdir(parents=True)
    agent.touch()
    programs = tmp_path / "build" / "bin"
    programs.mkdir()
    for name in (NATIVE, STEP):
        plan.install(programs / name, "fake_native")
    (programs / "plan.json").write_text("{}")
    monkeypatch.setenv("FRAMESTORM_BIN", str(programs))
    jar = tmp_path / "workloads.jar"
    jar.touch()
    monkeypatch.setattr(
        "framestorm_cli.stress.compiling.build", lambda _: BuiltIn(jar, tmp_path / "natives.so")
    )
    return FakeJava(jdks.validate(home))


def read_summary(out: Path) -> dict[str, Any]:
    data = json.loads((out / "summary.json").read_text())
    msgspec.convert(data, summary.Summary)
    assert isinstance(data, dict)
    return data


@pytest.fixture
def stress(framestorm: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on the fake JDK, which keeps no shadow stacks. Its own FRAMESTORM_BIN comes last."""
    monkeypatch.setenv("FRAMESTORM_BIN", str(tmp_path / "build" / "bin"))
    fresh = ("--jdk", java.jdk.home, "--seed", "7", "--no-truth")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        more = () if "--resume" in arguments else fresh
        return framestorm("stress", *more, *arguments)

    return run


def only(data: dict[str, Any]) -> dict[str, Any]:
    (cell,) = data["cells"]
    assert isinstance(cell, dict)
    return cell


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
