"""`framestorm stress --profiler` on a fake java, and recordings whose figures are known."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import Run, compile_library
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.profilers import table
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.stress import cell_process, profiled, recordings, tools
from framestorm_cli.stress.conftest import FakeJava, read_summary
from framestorm_cli.stress.recordings import Recorded

_VERDICTS = {"whole": 700, "cut": 100, "short": 150, "wrong": 40, "misplaced": 0, "none": 10}
_FRAMES = ["A.callee@3", "A.caller@9"]


def recorded(**changed: Any) -> dict[str, Any]:
    """What Samples.java says of a recording."""
    said = {
        "codes": [{"state": "running", "code": "ok", "count": 1000}],
        "frame_types": {"Interpreted": 2000},
        "verdicts": _VERDICTS,
        "examples": [
            {"verdict": "wrong", "why": "A.callee@3 under A.caller@9, which calls nothing there",
             "did": "Inlined under Interpreted, innermost", "count": 40, "frames": _FRAMES},
            {"verdict": "short", "why": "ends with A.b@1 (Inlined)", "did": "", "count": 150,
             "frames": ["A.b@1"]},
        ],
        "samples": 1000, "taken": 1000, "lost": 250, "biased": 0, "truncated": 0, "traces": 990,
        "frames": 2000, "most_frames": 30, "threads": 2, "other_threads": 5, "calls_judged": 900,
        "calls_unknown": 100, "unreadable": 0,
    }  # fmt: skip
    return {**said, **changed}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profiler's; what it records is what the fake java was planned to."""

    def read(
        self: Recorded, _jdk: Jdk, _class_path: Sequence[Path], _traces: Path | None
    ) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.files[0].read_text())
        return {"problem": "", **said}

    monkeypatch.setattr(Recorded, "_read", read)
    made = tmp_path / "libQuick.so"
    compile_library('extern "C" __attribute__((used)) int walk(int x) { return x; }', made)
    return made


def run(stress: Run, library: Path, out: Path, *more: str) -> tuple[int, str, str]:
    options = "start,every=%i,file=%o/quick.jfr"
    return stress(
        *("--workload", "alpha", "--profiler", f"{library}={options}", *more),
        *("--duration", "9s", "--out", out),
    )


def test_a_profiler_beside_a_walker_and_the_program_by_itself(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path
) -> None:
    java.plan("alpha", {"recorded": recorded()})
    code, said, _ = run(stress, library, tmp_path / "out", "--profiler", "asgct")
    assert code == 1  # traces are wrong
    data = read_summary(tmp_path / "out")
    assert {(cell["walker"].partition("=")[0], cell["mode"]) for cell in data["cells"]} == {
        (str(library), "self"), ("unsampled", "self"), ("asgct", "same-thread"),
    }  # fmt: skip
    lines = {line["sampler"].partition("=")[0]: line for line in data["side_by_side"]}
    quick = lines[str(library)]
    shares = {name: quick[name] for name in _VERDICTS}
    assert shares == {
        "whole": 0.7,
        "cut": 0.1,
        "short": 0.15,
        "wrong": 0.04,
        "misplaced": 0,
        "none": 0.01,
    }
    assert quick["lost"] == 0.2
    assert quick["asked_hz"] == 10_000
    assert quick["delivered_hz"] == pytest.approx(1000 / quick["cpu_seconds"], rel=0.01)
    assert quick["cost"] is not None
    assert quick["judged_by"] == "bytecode"
    assert lines["asgct"]["none"] == pytest.approx(0.3)
    assert lines["asgct"]["short"] is None  # none of its ends was compared
    assert lines["unsampled"]["cost"] is None
    assert "15.00%" in said
    page = (tmp_path / "out" / "profilers.md").read_text()
    assert "| 4.00 % | alpha 100us | wrong | `A.callee@3 under A.caller@9" in page
    assert "| 15.00 % | alpha 100us | short | `ends with A.b@1 (Inlined)` |" in page
    assert "<td>15.00%</td>" in (tmp_path / "out" / "report.html").read_text()


def test_a_walker_is_judged_by_shadow_stacks_where_there_are_some(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path
) -> None:
    verdicts = {"right": 60, "in-transition": 10, "short": 4, "invented": 1, "wrong-method": 2,
                "too-deep": 3, "wrong-bci": 5, "refused": 15}  # fmt: skip
    layer = {"made": 0, "broken": 0}
    judged = {
        "verdicts": verdicts,
        "more_on_top": 0,
        "not_judged": {},
        "by_code": {},
        "positions": [],
        "safepoint": layer,
        "sandwich": layer,
    }
    truth = {"reference": layer, "walkers": {"asgct": judged}}
    java.plan("alpha", {"recorded": recorded(), "stats": {"truth": truth}})
    run(stress, library, tmp_path / "out", "--profiler", "asgct")
    lines = read_summary(tmp_path / "out")["side_by_side"]
    (asgct,) = (line for line in lines if line["sampler"] == "asgct")
    assert {name: asgct[name] for name in _VERDICTS} == {
        "whole": 0.7, "cut": 0, "short": 0.04, "wrong": 0.06, "misplaced": 0.05, "none": 0.15,
    }  # fmt: skip
    assert asgct["judged_by"] == "shadow stacks"


def test_with_truth_a_profiler_is_judged_by_the_shadow_stacks_of_its_samples(
    stress: Run,
    java: FakeJava,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdicts = {"right": 90, "short": 4, "wrong-method": 1, "refused": 5}
    layer = {"made": 0, "broken": 0}
    example = {"verdict": "wrong", "why": "wrong-method: A.b", "did": "wrong-method in c2",
               "count": 1, "frames": _FRAMES}  # fmt: skip

    def judge(walker: str, shadows: Path, traces: Path) -> dict[str, Any]:
        assert shadows.parent == traces.parent
        figures = {"wrong": 5, "verdicts": verdicts, "more_on_top": 0, "not_judged": {}, "by_code": {},
                   "positions": [], "safepoint": layer, "sandwich": layer}  # fmt: skip
        return {
            "truth": {"reference": layer, "walkers": {walker: figures}},
            "examples": [example],
        }

    def with_truth(found: tools.Tools) -> tools.Tools:
        kept = replace(found.java, truth=Path("/truth.jar"), observer=Path("/observer.so"))
        return replace(found, java=kept)

    monkeypatch.setattr(recordings, "judge", judge)
    monkeypatch.setattr(tools, "with_truth", with_truth)
    java.plan("alpha", {"recorded": recorded()})
    code, _, _ = run(stress, library, tmp_path / "out", "--truth")
    assert code == 1
    data = read_summary(tmp_path / "out")
    lines = {line["sampler"].partition("=")[0]: line for line in data["side_by_side"]}
    quick = lines[str(library)]
    assert {name: quick[name] for name in _VERDICTS} == {
        "whole": 0.9, "cut": 0, "short": 0.04, "wrong": 0.01, "misplaced": 0, "none": 0.05,
    }  # fmt: skip
    assert quick["judged_by"] == "shadow stacks"
    (bucket,) = data["buckets"]
    assert (bucket["signature"]["clause"], bucket["count"]) == ("wrong-trace", 1)
    # The program by itself keeps shadow stacks, too; the observer comes behind the profiler.
    for words in java.starts("alpha"):
        agents = [word for word in words if word.startswith(("-agentpath:", "-javaagent:"))]
        given = [word.partition(":")[2].partition("=")[0] for word in agents]
        assert given[-1] == "/truth.jar"
        assert given[:-1] in ([str(library), "/observer.so"], ["/observer.so"])


def test_wrong_traces_are_a_finding_with_a_trace(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path
) -> None:
    java.plan("alpha", {"recorded": recorded()})
    run(stress, library, tmp_path / "out")
    (bucket,) = read_summary(tmp_path / "out")["buckets"]
    signature = bucket["signature"]
    assert (signature["kind"], signature["clause"], signature["did"]) == (
        "contract", "impossible-call", "Inlined under Interpreted, innermost",
    )  # fmt: skip
    assert bucket["count"] == 40
    assert bucket["victims"] == {"alpha": 40}
    assert "A.callee@3" in (tmp_path / "out" / bucket["report"]).read_text()


def test_the_profiler_is_started_as_asked_for(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path
) -> None:
    java.plan("alpha", {"recorded": recorded(verdicts={"whole": 1000}, examples=[])})
    code, _, _ = run(stress, library, tmp_path / "out", "--interval", "10us")
    assert code == 0
    data = read_summary(tmp_path / "out")
    folder = tmp_path / "out" / next(c["folder"] for c in data["cells"] if c["interval"])
    options = f"start,every=10000ns,file={folder}/agent/quick.jfr"
    starts = [words[0] for words in java.starts("alpha")]
    assert f"-agentpath:{library}={options}" in starts
    assert java.preloaded("alpha") == ["", ""]


def test_a_profiler_that_is_started_from_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libJavaProfiler.so"
    name = "Java_com_datadoghq_profiler_JavaProfiler_execute0"
    compile_library(f'extern "C" __attribute__((used)) void {name}() {{}}', library)
    monkeypatch.setattr(toolchain, "product", lambda target, _file: Path("/built") / target)
    walked = OutsideWalker("profiler", str(library), "java-profiler", options="start,file=%o/a.jfr")
    (agent,) = profiled.Recording("java-profiler", walked, tmp_path / "out", 1000).start()
    assert agent == (
        f"-agentpath:/built/framestorm_start={library}=start,file={tmp_path}/out/a.jfr"
    )


def test_a_program_that_only_gets_no_time_is_asked_to_end_and_what_was_recorded_counts(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path
) -> None:
    java.plan(
        "alpha", {"recorded": recorded(verdicts={"whole": 1000}, examples=[]), "end": "slowed"}
    )
    matrix = tmp_path / "m.toml"
    matrix.write_text('limit = "2s"\n')
    code, said, _ = run(stress, library, tmp_path / "out", "--matrix", str(matrix))
    data = read_summary(tmp_path / "out")
    assert (code, data["problems"]) == (0, [])
    (line,) = (line for line in data["side_by_side"] if line["sampler"] != "unsampled")
    assert (line["verdicts"], line["samples"], line["unfinished"]) == (["clean"], 1000, True)
    assert " > +" in said


def test_a_program_that_gets_no_time_to_end_does_not_hang(
    stress: Run,
    java: FakeJava,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_process, "_GRACE", 0.0)
    monkeypatch.setattr(cell_process, "_SLOW_ENDS", 0.5)
    nothing = recorded(samples=0, unreadable=1, problem="it has no end")
    java.plan("alpha", {"recorded": nothing, "end": "slowed", "deaf": True})
    matrix = tmp_path / "m.toml"
    matrix.write_text('limit = "2s"\n')
    code, _, _ = run(stress, library, tmp_path / "out", "--matrix", str(matrix))
    assert code == 2
    (problem,) = read_summary(tmp_path / "out")["problems"]
    assert "slowed down by its walks" in problem


@pytest.mark.parametrize("agent", ["", "-javaagent:/some.jar"])
def test_classes_that_an_agent_may_transform_are_not_judged(
    stress: Run,
    java: FakeJava,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
) -> None:
    given: list[Sequence[Path]] = []
    reads = Recorded.stats

    def stats(self: Recorded, jdk: Jdk, class_path: Sequence[Path], *rest: Any) -> dict[str, Any]:
        given.append(class_path)
        return reads(self, jdk, class_path, *rest)

    monkeypatch.setattr(Recorded, "stats", stats)
    java.plan("alpha", {"recorded": recorded()})
    run(stress, library, tmp_path / "out", *(["--jvm-arg", agent] if agent else []))
    assert given == [[] if agent else [tmp_path / "workloads.jar"]]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "left no recording"),
        (recorded(samples=0, taken=0, unreadable=1, problem="no pool"), "cannot be read: no pool"),
        (recorded(samples=0, taken=0), "no samples"),
    ],
)
def test_a_profiler_that_recorded_nothing_is_not_clean(
    stress: Run, java: FakeJava, library: Path, tmp_path: Path, said: dict[str, Any], why: str
) -> None:
    java.plan("alpha", {"recorded": said})
    code, _, _ = run(stress, library, tmp_path / "out")
    assert code == 2
    (problem,) = read_summary(tmp_path / "out")["problems"]
    assert why in problem


def test_names_and_options(fake_jdk: Jdk, library: Path) -> None:
    assert profiled.names(["a,b", "c=start,x=1", "d"]) == ["a", "b", "c=start,x=1", "d"]
    assert profiled.resolve(["asgct,jfr"], fake_jdk) == (["asgct", "jfr-cpu-time"], {})
    older = replace(fake_jdk, feature=21)
    assert profiled.resolve(["jfr"], older) == (["jfr-execution"], {})
    walkers, profilers = profiled.resolve([f"{library}=start,file=%o/a.jfr"], fake_jdk)
    assert list(profilers) == walkers
    for text, why in (
        (f"{library}", "write a recording below %o"),
        (f"{library}=start,file=/tmp/a.jfr", "write a recording below %o"),
        ("jfr=x", "takes no options"),
        ("./libNone.so=file=%o/a.jfr", "does not exist"),
    ):
        with pytest.raises(FramestormError, match=why):
            profiled.resolve([text], fake_jdk)
    for one in table.KNOWN:
        if one.released is not None:
            assert "%o" in one.sampling
            assert "%i" in one.sampling
