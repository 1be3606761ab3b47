"""Targets under AFL++: its processes add up to a run, and inputs go from engine to engine."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from framestorm_cli.base import packages, paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import FakePrograms
from framestorm_cli.fuzz import afl, afl_process, liveness, summary, target_process
from framestorm_cli.fuzz.afl_process import USELESS_WORKERS, AflInstance
from framestorm_cli.fuzz.fuzzing import Fuzzer, Run
from framestorm_cli.fuzz.target_process import FuzzOptions


@pytest.fixture
def afl_fakes(fakes: FakePrograms, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    fakes.install_afl("found one", "found two", "found one")
    seeds = fakes.folder / "seeds" / "fuzz_stack"
    seeds.mkdir(parents=True)
    (seeds / "one.txt").write_text("framestorm-input 1\nscenario c1\n")
    monkeypatch.setattr(paths, "SEEDS", seeds.parent)
    monkeypatch.setenv("PATH", f"{fakes.folder}{os.pathsep}{os.environ['PATH']}")
    return fakes


def fuzz(
    fakes: FakePrograms, out: Path, watch: Callable[[Run], None] = lambda _: None, **options: Any
) -> Run:
    base: dict[str, Any] = {
        "targets": ("fuzz_stack",), "seconds": 2.0, "runs": None, "seed": 100, "jobs": 1, "out": out,
        "engine": "afl",
    }  # fmt: skip
    out.mkdir()
    return Fuzzer(fakes.tools, FuzzOptions(**{**base, **options})).fuzz(watch)


def names_of(*contents: str) -> set[str]:
    return {f"{hashlib.sha1(text.encode()).hexdigest()}.bin" for text in contents}


def test_the_processes_of_an_instance_add_up(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    # Each worker walks for one second by its own account, so two of them are the slice.
    afl_fakes.plan(
        "fuzz_stack",
        {"end": "not-reusable", "edges": 40, "findings": [afl_fakes.fault("a", "frame::sender")]},
        {"end": "hang", "edges": 30, "findings": [afl_fakes.fault("b", "frame::sender")]},
    )
    run = fuzz(afl_fakes, tmp_path / "out")
    assert [process.exit for process in run.processes] == [3, 0]
    assert [process.folder.name for process in run.processes] == ["worker-000", "worker-001"]
    assert run.totals()["walks"] == 2000
    assert [f.key for process in run.processes for f in process.file.findings] == ["a", "b"]
    assert run.edges() == 40
    assert run.active == []
    assert liveness.problems(run) == []
    (instance,) = run.afl
    assert instance.popen.poll() == 0
    assert instance.figures().stability_percent == 99.5


def test_a_worker_that_dies_is_a_finding_and_the_next_goes_on(
    afl_fakes: FakePrograms, tmp_path: Path
) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "die"}, {"end": "hang"})
    run = fuzz(afl_fakes, tmp_path / "out")
    assert [p.death.how if p.death else None for p in run.processes] == ["SIGKILL", None]


def test_what_the_queue_has_found_is_kept_once(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "hang"})
    fuzz(afl_fakes, tmp_path / "out", seconds=1.0)
    kept = tmp_path / "out" / "corpus" / "fuzz_stack"
    assert {file.name for file in kept.iterdir()} == names_of("found one", "found two")


def test_it_starts_from_binary_forms_of_all_inputs(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "hang"})
    corpus = tmp_path / "corpus"
    (corpus / "fuzz_stack").mkdir(parents=True)
    (corpus / "fuzz_stack" / "a.txt").write_text("framestorm-input 1\nscenario c1\n")
    (corpus / "fuzz_stack" / "b.bin").write_bytes(b"FAKEbinary")
    (corpus / "fuzz_stack" / "README").write_text("no input")
    run = fuzz(afl_fakes, tmp_path / "out", seconds=1.0, corpus=(corpus,))
    seeds = run.afl[0].folder / "seeds"
    assert {file.read_bytes() for file in seeds.iterdir()} == {b"FAKEencoded", b"FAKEbinary"}


def test_options_reach_target_and_mutator(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "hang"})
    run = fuzz(
        afl_fakes, tmp_path / "out", runs=500, scenarios=("c1", "osr"), modes=("same-thread",),
        walker="asgct", jvm_args=("-Xint",),
    )  # fmt: skip
    argv, environment = afl_fakes.afl_start()
    line = " ".join(argv)
    assert f"-s 100 -E 500 -- {afl_fakes.folder}/afl/fuzz_stack" in line
    assert "--jvm-arg -Xint --scenario c1 --scenario osr --mode same-thread --walker asgct" in line
    assert "--seconds" not in line
    assert environment["FRAMESTORM_TARGET"] == "fuzz_stack"
    assert environment["FRAMESTORM_SCENARIOS"] == "c1,osr"
    assert environment["FRAMESTORM_MODES"] == "same-thread"
    assert environment["FRAMESTORM_OUT"] == str(run.afl[0].folder.resolve())
    assert environment["AFL_CUSTOM_MUTATOR_LIBRARY"].endswith("afl/framestorm_afl_mutator.so")


def test_a_set_up_error_of_a_worker_ends_the_target(
    afl_fakes: FakePrograms, tmp_path: Path
) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "setup"})
    run = fuzz(afl_fakes, tmp_path / "out", seconds=600.0)
    assert run.unable == {"fuzz_stack": "libjvm.so cannot be loaded: fake"}
    assert len(run.afl) == 1
    (ended,) = run.afl
    ended.workers.append(replace(ended.workers[0], folder=tmp_path, setup_error="", ended=False))
    ended.setup_error = ""
    ended.finish()
    assert ended.setup_error == "libjvm.so cannot be loaded: fake", "the last one was cut short"


def test_workers_that_never_walk_end_the_target(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    afl_fakes.plan("fuzz_stack", {"walks": 0, "end": "die"})
    run = fuzz(afl_fakes, tmp_path / "out", seconds=600.0)
    assert "in a row ended before their first walk" in run.unable["fuzz_stack"]
    assert len(run.processes) >= USELESS_WORKERS


def test_an_afl_fuzz_that_refuses_is_shown(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    (afl_fakes.folder / "afl-fuzz").write_text("#!/bin/sh\necho '[-] PROGRAM ABORT: no'\nexit 1\n")
    run = fuzz(afl_fakes, tmp_path / "out")
    assert "afl-fuzz ended (exit 1): [-] PROGRAM ABORT: no" in run.unable["fuzz_stack"]


def test_strict_ends_the_run_at_a_workers_finding(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    afl_fakes.plan("fuzz_stack", {"end": "strict"})
    run = fuzz(afl_fakes, tmp_path / "out", seconds=600.0, strict=True)
    assert run.stopped.startswith("strict: fuzz_stack")
    assert run.processes[0].exit == 77


def test_a_stalled_worker_is_ended_and_a_finding(
    afl_fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_process, "STALL_LIMIT", 0.3)
    afl_fakes.plan("fuzz_stack", {"end": "hang"}, {"end": "not-reusable"})
    first = fuzz(afl_fakes, tmp_path / "out", seconds=3.0).processes[0]
    assert first.death is not None
    assert first.death.how == "did not end"


def test_an_interrupted_run_leaves_no_process(afl_fakes: FakePrograms, tmp_path: Path) -> None:
    def interrupt(run: Run) -> None:
        if run.totals() and run.active:
            raise KeyboardInterrupt

    afl_fakes.plan("fuzz_stack", {"end": "hang"})
    run = fuzz(afl_fakes, tmp_path / "out", interrupt, seconds=600.0)
    assert run.stopped == "interrupted"
    assert run.afl[0].popen.poll() is not None
    assert run.active == []
    assert (tmp_path / "out" / "corpus" / "fuzz_stack").is_dir()


def test_a_libfuzzer_process_starts_from_what_its_predecessor_found(
    fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("fuzz_stack", {"end": "not-reusable", "after": 0.5, "corpus": ["new"]}, {})
    out = tmp_path / "out"
    fuzz(fakes, out, engine="libfuzzer", seconds=10.0)
    first, second = fakes.starts("fuzz_stack")
    kept = out / "corpus" / "fuzz_stack"
    assert {file.name for file in kept.iterdir()} == names_of("new")
    assert str(kept) not in first
    assert second[second.index(str(kept)) - 1] == "--corpus"


def test_the_command_says_which_engine_it_was(
    afl_fakes: FakePrograms,
    framestorm: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(packages, "ensure", lambda wanted=(): asked.append(wanted))
    afl_fakes.plan("fuzz_stack", {"end": "hang", "edges": 1234})
    code, out, err = framestorm(
        "fuzz", "--engine", "afl", "--target", "fuzz_stack", "--seconds", "1", "--jobs", "1", "--jdk",
        afl_fakes.tools.jdk.home, "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    assert asked == [("afl++",)]
    data = json.loads((tmp_path / "run" / "summary.json").read_text())
    msgspec.convert(data, summary.Summary)
    assert data["engine"] == "afl"
    assert data["totals"]["edges"] == 1234
    assert data["afl"][0]["executions_per_second"] == 123.45
    assert "1,234 edges of libjvm covered" in out
    assert "123 executions/s, stability 99.50%, 7 inputs in its queue, 1 inputs that did not" in out


def test_afl_that_ended_within_a_second_has_no_speed(
    afl_fakes: FakePrograms, tmp_path: Path
) -> None:
    # It divides by whole seconds, and JSON has no infinity.
    afl_fakes.install_afl(rate="inf")
    afl_fakes.plan("fuzz_stack", {"end": "hang"})
    # As long as its worker walks by its own account.
    run = fuzz(afl_fakes, tmp_path / "out", seconds=1.0)
    figures = run.afl[0].figures()
    assert figures.executions_per_second is None
    assert "321 executions, stability" in summary._afl_line(figures)


def test_programs_that_were_not_built_are_named(fakes: FakePrograms) -> None:
    with pytest.raises(FramestormError, match="afl/fuzz_stack is missing"):
        afl.program(fakes.tools, "fuzz_stack")
    with pytest.raises(FramestormError, match=r"framestorm_afl_mutator\.so is missing"):
        afl.mutator(fakes.tools)


def test_instances_are_spread_over_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    instances = [
        cast(AflInstance, SimpleNamespace(core=core, ended=ended))
        for core, ended in ((3, False), (5, True))
    ]
    assert afl_process.core_for([]) == 3
    assert afl_process.core_for(instances) == 5
    assert afl_process.core_for([*instances, *instances[:1]]) == 5
