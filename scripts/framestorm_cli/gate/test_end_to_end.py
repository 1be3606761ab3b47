"""The gate's stepping, and its comparison by replay, on the JDK of the machine."""

import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base import paths
from framestorm_cli.binaries.symbols import Symbolizer
from framestorm_cli.conftest import planted_library
from framestorm_cli.findings.finding import Finding
from framestorm_cli.gate import stepping_step, subject
from framestorm_cli.gate.crossing import Crossing
from framestorm_cli.gate.subject import Request, Subject
from framestorm_cli.gate.verdict import Step
from framestorm_cli.native import processes, toolchain
from framestorm_cli.native.toolchain import NATIVE
from framestorm_cli.replay import replaying
from framestorm_cli.reports.known import Known
from framestorm_cli.triage.buckets import into_buckets

pytestmark = pytest.mark.long


def test_a_plugin_that_is_wrong_at_calls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base that walks as AsyncGetCallTrace does, and a change that leaves out the caller at calls."""
    monkeypatch.delenv("FRAMESTORM_BIN", raising=False)
    monkeypatch.setattr(stepping_step, "SCENARIOS", ("c1", "exception-unwind"))
    sides = []
    for what, planted in (("change", 5), ("base", 0)):
        folder = tmp_path / what
        folder.mkdir()
        plugin = planted_library(
            "planted_walker.c", None, folder, f"-DPLANTED={planted}", "-DEVERY=400"
        )
        sides.append(subject.prepare(Request(plugin=str(plugin)), what))
    step = Step("step")
    out = tmp_path / "out"
    out.mkdir()
    entries = stepping_step.run(sides[0], sides[1], Known({}), 3.0, out, (), step)
    assert step.problems == []
    new = [entry for entry in entries if entry.kind == "new"]
    assert {"plugin is wrong in C1 body", "plugin is wrong in C1 slow path"} <= {
        entry.explanation.partition(",")[0] for entry in new
    }
    for entry in new:
        named = entry.explanation.split("`")[1::2]
        assert named and all(" call " in one for one in named), entry.explanation
        assert "; base: 0 of " in entry.how
    (c1,) = (one for one in new if "plugin is wrong in C1 body" in one.explanation)
    assert c1.artifact is not None
    command = [str(paths.SCRIPTS / "framestorm"), "replay", str(c1.artifact), "--tries", "3"]
    done = subprocess.run(
        [*command, "--out", str(out / "again")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # The caller of a frame that was inlined is a part of the same code: no frame is left out by itself.
    assert c1.signature.clause in ("caller-left-out", "frame-not-there")
    assert c1.signature.clause in done.stdout


def test_another_wrong_trace_of_a_profiler_does_not_hide_behind_that_of_its_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stores its innermost frame twice, the other leaves it out."""
    monkeypatch.delenv("FRAMESTORM_BIN", raising=False)
    library = toolchain.product("profiler_stand_in", "harness/walkers/libprofiler_stand_in.so")
    change, base = (
        subject.prepare(Request(profiler=f"{library}={mode}"), what)
        for what, mode in (("change", "twice"), ("base", "drop"))
    )
    artifact = tmp_path / "input.bin"
    text = b"framestorm-input 1\nscenario c1\nwalker profiler\n"
    artifact.write_bytes(processes.filter_text(change.tools.program(NATIVE), "encode", text))
    symbolizer = Symbolizer()

    def found(side: Subject) -> list[Finding]:
        request = replaying.Request(artifact, None, outside=side.outside)
        (tried,) = replaying.run_tries(side.tools, symbolizer, request, 1, tmp_path / side.what)
        return tried.findings

    def kinds(findings: list[Finding], there: Subject) -> list[str]:
        for finding in findings:
            finding.artifact = artifact
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        crossing = Crossing(change, there, Known({}), symbolizer, out, 1, (), {})
        buckets = into_buckets(findings)
        return [entry.kind for entry in crossing.sort(buckets, 60.0, 2.0, Step("fuzz"))]

    ours = found(change)
    assert [one.signature.clause for one in ours + found(base)] == ["wrong-frames"] * 2
    assert kinds(ours, base) == ["new"]
    assert kinds(ours, change) == ["unchanged"]
