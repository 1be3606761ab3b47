"""Each layer of ground truth is noticed by the one beside it when it is wrong; and a right one is silent."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.conftest import planted_library
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import runtimes
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.stress import jfr, profiled, recordings, stacks, truth, truth_figures
from framestorm_cli.stress.agent import LIBRARY, OBSERVER, SHADOWS

SOURCE = Path(__file__).with_name("TruthProgram.java")


@pytest.fixture(scope="module")
def jdk() -> Jdk:
    return choosing.choose(None, may_install=False)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Classes that every JDK loads."""
    classes = tmp_path_factory.mktemp("classes")
    javac = next(one.javac for one in jdks.usable() if one.javac is not None)
    subprocess.run([str(javac), "--release", "17", "-d", str(classes), str(SOURCE)], check=True)
    return classes


def run_jvm(command: list[str], folder: Path) -> None:
    """Runs it to its end; of one that does not end, the failure says where its threads are."""
    jvm = subprocess.Popen(command)
    try:
        assert jvm.wait(timeout=120) == 0
    except subprocess.TimeoutExpired:
        folder.mkdir(exist_ok=True)
        stacks.take(jvm.pid, Path(command[0]), folder, limit=60)
        told = [
            folder / name for name in (stacks.PROC_STACKS, stacks.NATIVE_STACKS, stacks.JAVA_STACKS)
        ]
        pytest.fail("\n".join(file.read_text(errors="replace") for file in told if file.exists()))
    finally:
        jvm.kill()
        jvm.wait()


def run(
    jdk: Jdk,
    program: Path,
    out: Path,
    *arguments: str,
    jvm: tuple[str, ...] = (),
    walker: str = "asgct",
    instrumented: str = "",
) -> tuple[dict[str, Any], set[str]]:
    """The last stats, and the clauses of the findings."""
    agent = toolchain.product("framestorm_agent", f"stress/agent/{LIBRARY}", jdk)
    options = f"out={out},walker={walker},truth=1,checks=5,interval=500us"
    command = [str(jdk.home / "bin" / "java"), *jvm, f"-agentpath:{agent}={options}"]
    shadows = f"-javaagent:{truth.build(jdk)}={instrumented}"
    command += [shadows, "-cp", str(program), "TruthProgram", *arguments]
    run_jvm(command, out)
    stats = json.loads((out / "stats.jsonl").read_text().splitlines()[-1])
    lines = (out / "findings.jsonl").read_text().splitlines()
    return stats, {json.loads(line).get("clause", "") for line in lines}


@pytest.mark.long
@pytest.mark.parametrize("feature", [17, 21, 25])
def test_what_is_right_is_right_on_each_jdk(feature: int, program: Path, tmp_path: Path) -> None:
    found = next((one for one in runtimes.usable() if one.feature == feature), None)
    if found is None:
        pytest.skip(f"no JDK {feature} is here")
    stats, clauses = run(found, program, tmp_path / "out")
    assert "reference-differs" not in clauses
    judged = truth_figures.of([stats])
    assert judged is not None
    assert judged.reference.hits == 0
    assert judged.reference.trials > 0
    (walker,) = judged.walkers
    assert walker.judged > 100
    assert walker.verdicts["right"] > 0.8 * walker.judged
    # Errors while the JVM starts: whether there was a frame is not known.
    assert set(walker.not_judged) <= {"no instrumented frame"}
    assert (walker.safepoint.hits, walker.sandwich.hits) == (0, 0)
    assert walker.safepoint.trials > 0
    assert walker.sandwich.trials > 0
    assert stats["truth"]["shadow_stacks"]["made"] < 20


@pytest.mark.long
def test_a_share_of_the_methods_is_enough(jdk: Jdk, program: Path, tmp_path: Path) -> None:
    stats, clauses = run(jdk, program, tmp_path / "out", instrumented=";0.5")
    assert stats["truth"]["instrumented_methods"] == 1, "by its name that is descend alone"
    assert "reference-differs" not in clauses
    judged = truth_figures.of([stats])
    assert judged is not None
    (walker,) = judged.walkers
    assert walker.verdicts["right"] > 0.8 * walker.judged > 80
    assert judged.reference.hits == 0


@pytest.mark.long
def test_a_wrong_shadow_stack_is_noticed_by_the_reference(
    jdk: Jdk, program: Path, tmp_path: Path
) -> None:
    stats, clauses = run(jdk, program, tmp_path / "out", "wrong")
    assert "reference-differs" in clauses
    assert stats["truth"]["reference"]["broken"] > 0


@pytest.mark.long
def test_a_wrong_reference_is_noticed_by_the_shadow_stack(
    jdk: Jdk, program: Path, tmp_path: Path
) -> None:
    planted = planted_library("planted_reference.c", jdk, tmp_path)
    stats, clauses = run(jdk, program, tmp_path / "out", jvm=(f"-agentpath:{planted}",))
    assert "reference-differs" in clauses
    assert stats["truth"]["reference"]["broken"] > 0


@pytest.mark.long
def test_a_wrong_walker_is_noticed_by_both(jdk: Jdk, program: Path, tmp_path: Path) -> None:
    planted = planted_library("planted_walker.c", jdk, tmp_path, "-DPLANTED=6", "-DEVERY=1000")
    walker = f"plugin,plugin={planted}"
    stats, clauses = run(jdk, program, tmp_path / "out", walker=walker)
    assert "wrong-trace" in clauses
    (figures,) = stats["truth"]["walkers"].values()
    assert figures["wrong"] > 0
    assert figures["safepoint"]["broken"] > 0
    assert stats["truth"]["reference"]["broken"] == 0


_NATIVE = "native or VM"


def test_sums_of_cells() -> None:
    cell = {
        "truth": {
            "reference": {"made": 4, "broken": 1},
            "walkers": {
                "asgct": {
                    "verdicts": {"right": 6, "refused": 2, "short": 1, "invented": 1},
                    "more_on_top": 1,
                    "not_judged": {"no instrumented frame": 10},
                    "by_code": {"c2": {"judged": 10, "wrong": 2}},
                    "positions": [
                        {"verdict": "refused", "error": "unknown_Java", "at": "c1", "count": 2},
                        {
                            "verdict": "short",
                            "error": "",
                            "at": f"{_NATIVE} _ZN3Foo3barEi",
                            "count": 1,
                        },
                        {"verdict": "invented", "error": "", "at": _NATIVE, "count": 2},
                    ],
                    "safepoint": {"made": 3, "broken": 0},
                    "sandwich": {"made": 2, "broken": 1},
                }
            },
        }
    }
    found = truth_figures.of([cell, {}, cell])
    assert found is not None
    assert (found.reference.hits, found.reference.trials) == (2, 8)
    (walker,) = found.walkers
    assert (walker.judged, walker.wrong.hits, walker.wrong.trials) == (20, 4, 16)
    assert (walker.wrong_top_free.hits, walker.wrong_top_free.trials) == (2, 16)
    assert walker.by_code["c2"].hits == 4
    assert [(one.at, one.count) for one in walker.positions] == [
        (_NATIVE, 4), (f"{_NATIVE} Foo::bar", 2), ("c1", 4),
    ], "what is wrong, then what is refused"  # fmt: skip
    assert (walker.sandwich.hits, walker.sandwich.trials) == (2, 4)
    assert truth_figures.cells(walker)[-3:] == ["50.0%", "0 of 6", "2 of 4"]
    assert len(truth_figures.cells(walker)) == len(truth_figures.HEADS)


def test_no_truth_is_nothing() -> None:
    assert truth_figures.of([{}, {"samples": 3}]) is None


def recorded_by(
    jdk: Jdk, program: Path, folder: Path, *profiler: str, jvm: tuple[str, ...] = ()
) -> Path:
    """What the observer noted of a program that a profiler samples."""
    observer = toolchain.product("framestorm_observer", f"stress/agent/{OBSERVER}", jdk)
    out = folder / "out"
    command = [str(jdk.home / "bin" / "java"), *profiler, f"-agentpath:{observer}={out}", *jvm]
    command += [f"-javaagent:{truth.build(jdk)}", "-cp", str(program), "TruthProgram"]
    run_jvm(command, out)
    return out / SHADOWS


@pytest.mark.long
@pytest.mark.parametrize(
    ("defect", "verdict"),
    [(0, "right"), (1, "short"), (2, "wrong-method"), (3, "")],
)
def test_what_a_profiler_has_wrong_in_its_own_samples_is_found(
    jdk: Jdk, program: Path, tmp_path: Path, defect: int, verdict: str
) -> None:
    planted = planted_library("planted_recorder.cpp", jdk, tmp_path, f"-DDEFECT={defect}")
    traces = tmp_path / "traces.tsv"
    shadows = recorded_by(jdk, program, tmp_path, f"-agentpath:{planted}={traces}")
    found = recordings.judge("own", shadows, traces)
    figures = found["truth"]["walkers"]["own"]
    assert figures["judged"] > 50
    assert set(figures["not_judged"]) <= {"no handler at its time", "no instrumented frame"}
    if not defect:
        assert figures["wrong"] < 0.1 * figures["judged"]
    if verdict:
        assert figures["verdicts"][verdict] > 0.5 * figures["judged"]
    else:
        # The trace of the sample before is often the same, and not always.
        assert figures["wrong"] > 0.1 * figures["judged"]
    if defect:
        assert "TruthProgram.descend" in found["examples"][0]["why"]


@pytest.mark.long
@pytest.mark.parametrize("feature", [17, 21, 25])
def test_samples_of_jfr_are_those_of_the_moment(
    feature: int, program: Path, tmp_path: Path
) -> None:
    found = next((one for one in runtimes.usable() if one.feature == feature), None)
    if found is None:
        pytest.skip(f"no JDK {feature} is here")
    walkers, _ = profiled.resolve(["jfr"], found)
    recording = jfr.Recording(walkers[0], tmp_path / "jfr", 1_000_000)
    shadows = recorded_by(found, program, tmp_path, jvm=tuple(recording.start()))
    stats = recording.recorded().stats(found, [], 8.0, 8.0, shadows)
    figures = stats["truth"]["walkers"][walkers[0]]
    assert figures["judged"] > 50
    # Between places with debug information it takes what is inlined at the next one: how often is the
    # compiler's, half of those that JFR does not say to be of the next safepoint.
    assert figures["wrong"] - figures["verdicts"]["other-inlining"] < 0.05 * figures["judged"]
    assert figures["verdicts"]["right"] > 0.25 * figures["judged"]
