"""A fake JDK whose java does what a test says (fake_java.py)."""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import TESTDATA, Run
from framestorm_cli.fakes import fake_java
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress import summary
from framestorm_cli.stress.workloads import BuiltIn

WORKLOADS = ("alpha", "beta")
ONE = ("--workload", "alpha", "--mode", "same-thread", "--duration", "3s")


class FakeJava:
    """`plan(workload, entry, entry, ...)` says what each of its starts does."""

    def __init__(self, jdk: Jdk) -> None:
        self.jdk = jdk
        self._symbols = Symbolizer().module(jdk.libjvm)
        self._bin = jdk.home / "bin"
        self._bin.mkdir()
        java = self._bin / "java"
        java.write_text(f"#!{sys.executable} -I\n{Path(fake_java.__file__).read_text()}")
        java.chmod(0o755)
        self._plan: dict[str, Any] = {
            "modules": {"libjvm.so": str(jdk.libjvm)},
            "hs_err": str(TESTDATA / "hs_err_jdk25.log"),
            "cells": {},
        }
        self.lists(*WORKLOADS)

    def lists(self, *names: str, minimum: int = 17) -> None:
        line = {"summary": "does things", "minimum_jdk": minimum, "threads": "two"}
        self._plan["workloads"] = [
            {**line, "name": name, "jvm_args": ["-Dnatives={natives}"]} for name in names
        ]
        self._save()

    def plan(self, workload: str, *entries: dict[str, Any]) -> None:
        self._plan["cells"][workload] = list(entries)
        self._save()

    def _save(self) -> None:
        (self._bin / "plan.json").write_text(json.dumps(self._plan))

    def fault(self, key: str, *functions: str, **more: Any) -> dict[str, Any]:
        """A contained fault with these functions of the fake libjvm on its stack."""
        stack = [
            f"libjvm.so+0x{self._symbols.ranges(name)[0][0] + 2:x}"
            for name in (*functions, "AsyncGetCallTrace")
        ]
        fault = {"signal": "SIGSEGV", "si_code": 1, "address": "0x8", "pc": stack[0]}
        return {"key": key, "kind": "fault", "stack": stack, **fault, **more}

    def starts(self, workload: str) -> list[list[str]]:
        """The arguments of every start of a workload with the agent so far."""
        count = len(list(self._bin.glob(f"{workload}.start*")))
        return [json.loads((self._bin / f"{workload}.start{n}").read_text()) for n in range(count)]

    def preloaded(self, workload: str) -> list[str]:
        """LD_PRELOAD of every start of a workload so far, also of those without the agent."""
        return (self._bin / f"{workload}.preloaded").read_text().splitlines()

    def child_of(self, workload: str) -> int:
        """The process that a hanging workload started."""
        return int((self._bin / f"{workload}.child").read_text())


@pytest.fixture
def java(
    jdk_home: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FakeJava:
    home = tmp_path / "jdk"
    shutil.copytree(jdk_home, home)
    agent = tmp_path / "build" / "stress" / "agent" / "libframestorm.so"
    agent.parent.mkdir(parents=True)
    agent.touch()
    monkeypatch.setenv("FRAMESTORM_BIN", str(tmp_path / "build" / "bin"))
    jar = tmp_path / "workloads.jar"
    jar.touch()
    monkeypatch.setattr(
        "framestorm_cli.stress.tools.workloads", lambda _: BuiltIn(jar, tmp_path / "natives.so")
    )
    return FakeJava(jdks.validate(home))


def read_summary(out: Path) -> dict[str, Any]:
    data = json.loads((out / "summary.json").read_text())
    summary.validate(data)
    assert isinstance(data, dict)
    return data


@pytest.fixture
def stress(framestorm: Run, java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command on the fake JDK. Its own FRAMESTORM_BIN comes last."""
    monkeypatch.setenv("FRAMESTORM_BIN", str(tmp_path / "build" / "bin"))

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        more = () if "--resume" in arguments else ("--jdk", java.jdk.home, "--seed", "7")
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
