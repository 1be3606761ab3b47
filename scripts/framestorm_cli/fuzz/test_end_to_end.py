"""The real thing, briefly: every target on the JDK of the machine."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from framestorm_cli.base import paths
from framestorm_cli.fuzz import afl, summary
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.target_process import FuzzOptions
from framestorm_cli.native import processes, toolchain

pytestmark = pytest.mark.long


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "FRAMESTORM_BIN"}


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    out = tmp_path_factory.mktemp("run") / "out"
    command = [str(paths.SCRIPTS / "framestorm"), "fuzz", "--seconds", "10", "--seed", "1"]
    done = subprocess.run(
        [*command, "--verify", "1", "--out", str(out)],
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=900,
        check=False,
    )
    return out, done


def test_it_fuzzes(run: tuple[Path, "subprocess.CompletedProcess[str]"]) -> None:
    out, done = run
    assert done.returncode in (0, 1), done.stderr
    data = json.loads((out / "summary.json").read_text())
    msgspec.convert(data, summary.Summary)
    assert data["exit"] == done.returncode
    # An installed JDK has no iterators and no queues.
    assert set(data["targets"]) == set(paths.TARGETS) - {"fuzz_iterator", "fuzz_queue"}
    for figures in data["targets"].values():
        assert figures["walks"] > 0
        assert figures["places"] > figures["halts"] > 0
    # Not of each target: one that makes reports smaller has no time for other places meanwhile.
    halts, places = (
        sum(one[key] for one in data["targets"].values()) for key in ("halts", "places")
    )
    assert places > 8 * halts, "few victims were walked along"
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


def test_a_jvm_that_ends_itself_is_a_death_and_another_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRAMESTORM_BIN", raising=False)
    tools = toolchain.prepare(None)
    options = FuzzOptions(("fuzz_call",), 12.0, None, 1, 1, tmp_path / "out", scenarios=("c1",))
    aborted: list[int] = []

    def abort_the_first(run: Run) -> None:
        pid = run.processes[0].popen.pid
        if run.processes[0].walks and not aborted:
            aborted.append(pid)
            os.kill(pid, signal.SIGABRT)

    first, second = Fuzzer(tools, options).fuzz(abort_the_first).processes
    assert first.death is not None
    assert first.death.how == "SIGABRT"
    assert second.exit == 0
    assert second.walks > 0


def test_a_wrong_trace_that_a_profiler_stored_is_found_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRAMESTORM_BIN", raising=False)
    library = toolchain.product("profiler_stand_in", "harness/walkers/libprofiler_stand_in.so")
    command = [str(paths.SCRIPTS / "framestorm"), "fuzz", "--profiler", f"{library}=drop"]
    command += ["--target", "fuzz_ucontext", "--scenario", "c1", "--seconds", "12", "--seed", "1"]
    command += ["--verify", "2", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    data = json.loads((tmp_path / "out" / "summary.json").read_text())
    wrong = [b for b in data["buckets"] if b["signature"]["clause"] == "wrong-frames"]
    assert [(b["state"], b["verification"]["status"]) for b in wrong] == [("real", "reproduced")], (
        done.stdout
    )
    assert data["totals"]["profiler"]["recorded"]["wrong"] > 0


def test_inputs_of_a_corpus_are_walked_at_their_own_program_point(tmp_path: Path) -> None:
    """Of a walker that errs in each walk each scenario has a finding. A victim that is not halted for
    its own scenario stands suspended, and what is found there does not come back."""
    plugin = paths.build() / "harness" / "walkers" / "declared_walker.so"
    states: dict[str, set[str]] = {}
    for seed in ("1", "2"):
        out = tmp_path / seed
        done = subprocess.run(
            [
                *(paths.SCRIPTS / "framestorm", "fuzz", "--target", "fuzz_ucontext"),
                *("--seconds", "4", "--seed", seed),
                *("--walker", "plugin", "--walker-plugin", f"{plugin}=bad-status"),
                *("--jobs", "1", "--verify", "0", "--out", out),
            ],
            capture_output=True, text=True, env=_environment(), timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        for file in (out / "work").glob("*/findings.jsonl"):
            for found in map(json.loads, file.read_text().splitlines()):
                if found["type"] == "finding" and found["clause"] == "status-out-of-range":
                    state = found.get("context", {}).get("thread_state", "")
                    states.setdefault(found["victim"], set()).add(state)
    in_java = {
        "c1",
        "c2-inlined",
        "osr",
        "lambda",
        "method-handle",
        "large-frame",
        "string-compare",
    }
    assert len(in_java & states.keys()) > 2, states
    # A safepoint may come up while the world is halted: at the one walk of a victim that is kept, not at
    # those of all victims in both runs.
    elsewhere = [one for one in in_java & states.keys() if "_thread_in_Java" not in states[one]]
    assert len(elsewhere) <= 1, states


def test_it_fuzzes_with_afl(tmp_path: Path) -> None:
    """Ten seconds of one target, and AFL++'s own tools on what it found."""
    out = tmp_path / "out"
    environment = {name: value for name, value in os.environ.items() if name != "FRAMESTORM_BIN"}
    done = subprocess.run(
        [
            str(paths.SCRIPTS / "framestorm"), "fuzz", "--engine", "afl", "--target", "fuzz_ucontext",
            "--seconds", "10", "--jobs", "1", "--seed", "1", "--verify", "0", "--out", str(out),
        ],
        capture_output=True, text=True, env=environment, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    data = json.loads((out / "summary.json").read_text())
    assert data["engine"] == "afl"
    assert data["liveness"]["ok"]
    figures = data["targets"]["fuzz_ucontext"]
    assert figures["walks"] > 0
    assert set(figures["by_mode"]) == {"same-thread", "separate-thread"}
    assert figures["places"] > 2 * figures["halts"]
    (instance,) = data["afl"]
    assert instance["stability_percent"] > 98
    assert instance["corpus"] > len(list((paths.SEEDS / "fuzz_ucontext").glob("*.txt")))
    found = list((out / "corpus" / "fuzz_ucontext").iterdir())
    assert found

    tools = toolchain.prepare(Path(data["jdk"]["home"]))
    target = [
        str(afl.program(tools, "fuzz_ucontext")), *processes.jvm_arguments(tools, tmp_path / "workers"),
        *afl.priming("fuzz_ucontext"),
    ]  # fmt: skip
    (tmp_path / "workers").mkdir()
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for number in range(2):  # a duplicate adds nothing
        for file in found:
            shutil.copyfile(file, inputs / f"{file.stem}-{number}")
    environment |= afl.environment(tools)
    limits = ["-t", str(afl.TIMEOUT_MS)]

    def run_tool(tool: str, given: Path, out: Path) -> None:
        command = [tool, "-i", str(given), "-o", str(out), *limits, "--", *target, "--one-halt"]
        _run(command, environment)

    run_tool("afl-cmin", inputs, tmp_path / "smaller")
    kept = list((tmp_path / "smaller").iterdir())
    assert 0 < len(kept) <= len(found)

    # Bytes behind an input mean nothing. This one's walk ends alike at every halt, since its victim
    # never runs; one that spins may stand in the VM at one halt, at a safepoint.
    steady = (paths.SEEDS / "fuzz_ucontext" / "parked.txt").read_bytes()
    longer = tmp_path / "longer"
    longer.write_bytes(
        processes.filter_text(toolchain.native_program(), "encode", steady) + b"\0" * 32
    )
    shorter = tmp_path / "shorter"
    run_tool("afl-tmin", longer, shorter)
    assert shorter.stat().st_size < longer.stat().st_size - 16


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
