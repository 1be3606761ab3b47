"""The command on the stand-in of the native program."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.step import page, results

WRONG = {
    "key": "1",
    "kind": "contract",
    "clause": "caller-left-out",
    "detail": "C2 body: frame 1 is a/B.c@0, expected a/B.d@6",
    "detail_class": "C2 body: frame * is *",
}
MISS = {
    "walker": "asgct",
    "verdict": "wrong",
    **{key: WRONG[key] for key in ("clause", "detail", "detail_class")},
    "input": 'framestorm-input 1\nscenario c1\nhalt nmethod "a/B.c" tier 4 entry + 0x1 occurrence 1\n',
}


def tally(**counts: int) -> dict[str, Any]:
    return {**counts, "errors": {"-5": counts["refused"]} if "refused" in counts else {}}


def stepped(judged: int = 100, **more: Any) -> dict[str, Any]:
    """step.json of two walkers, one instruction each in two blobs."""
    instruction = {
        "offset": 1,
        "steps": 60,
        "section": "C2 body",
        "walkers": {"asgct": tally(right=59, wrong=1), "plugin": tally(right=60)},
        "misses": [MISS],
    }
    entry = instruction | {"offset": 0, "section": "interpreter codelet", "steps": 40, "misses": []}
    return {
        "seconds": 2.0,
        "walkers": ["asgct", "plugin"],
        "counts": {
            "steps": 110,
            "walked": 100,
            "from_outside": 20,
            "judged": judged,
            "passed": 10,
            "excursions": 3,
            "outside": 0,
            "lost": {} if judged == 100 else {"frames of nobody": 100 - judged},
        },
        "scenarios": {"c1": {"steps": 110, "seconds": 2.0, "unavailable": ""}},
        "sections": {
            "C2 body": {"asgct": tally(right=59, wrong=1), "plugin": tally(right=60)},
            "interpreter codelet": {
                "asgct": tally(right=30, refused=10),
                "plugin": tally(right=40),
            },
        },
        "findings": [
            {
                "walker": "asgct",
                "verdict": "wrong",
                "promised": True,
                "clause": "caller-left-out",
                "detail": WRONG["detail"],
                "section": "C2 body",
                "code": "",
                "count": 1,
                "scenarios": {"c1": 1},
                "position": "a/B.c+1",
                "path": ["a/B.c+0 sp 0x10"],
                "trace": ["a/B.e@0", "a/B.c@0"],
                "truth": ["a/B.e", "a/B.d@6", "a/B.c@0"],
            }
        ],
        "blobs": [
            {
                "kind": "nmethod",
                "name": "a/B.c",
                "tier": 4,
                "code": "5590c3",
                "instructions": [instruction],
            },
            {
                "kind": "codelet",
                "name": "iload_1",
                "tier": 0,
                "code": "90c3",
                "instructions": [entry],
            },
        ],
        **more,
    }


def test_a_clean_run(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("step", {"step": stepped(findings=[])})
    code, text, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    assert code == 0, err
    assert "110 instructions in 2 s (55/s), 2 distinct" in text
    assert "100.0% of them judged" in text
    assert "nothing found" in text
    row = next(line for line in text.splitlines() if "interpreter codelet" in line)
    assert "75.00%" in row and "25.00%" in row and "-5: 10" in row
    assert "plugin" in (tmp_path / "out" / "step.html").read_text()


def test_what_the_native_program_is_told(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("step", {"step": stepped(findings=[])})
    options = (
        "--scenario",
        "c1",
        "--walker",
        "asgct",
        "--seconds",
        "7",
        "--gc",
        "z",
        "--jit",
        "c1",
    )
    code, _, err = framestorm(
        "step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out", *options
    )
    assert code == 0, err
    told = " ".join(fakes.starts("step")[0])
    for part in (
        "--scenario c1",
        "--walker asgct",
        "--seconds 7.0",
        "--jvm-arg -XX:+UseZGC",
        "--jvm-arg -XX:TieredStopAtLevel=1",
    ):
        assert part in told, told


def test_findings_are_replayed_and_written(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("step", {"step": stepped(), "findings": [WRONG]})
    fakes.plan("replay", {"findings": [WRONG]}, {"findings": []})
    out = tmp_path / "out"
    code, text, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", out)
    assert code == 1, err
    assert "caller-left-out by asgct" in text
    assert "1 of 2 fresh JVMs" in text
    assert (out / "artifacts" / "b01.bin").read_bytes()
    assert "caller-left-out" in (out / "reports" / "b01.md").read_text()
    assert "framestorm replay" in text
    html = (out / "step.html").read_text()
    assert 'class="v wrong" title="59 right, 1 wrong"' in html
    assert "push rbp" in html and "a/B.d@6" in html


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (stepped(judged=90), "90.0% of the instructions were judged, at least 95% have to be"),
        (
            stepped(scenarios={"c1": {"steps": 0, "seconds": 1.0, "unavailable": ""}}),
            "scenario c1: no instruction was stepped",
        ),
    ],
)
def test_a_run_that_is_not_to_be_believed(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, made: dict[str, Any], why: str
) -> None:
    fakes.plan("step", {"step": made})
    code, _, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    assert code == 2
    assert why in err


def test_a_scenario_that_was_asked_for_is_not_passed_over(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    missing = {"steps": 0, "seconds": 0.1, "unavailable": "needs JDK 22 or later"}
    scenarios = stepped()["scenarios"] | {"ffi-upcall": missing}
    fakes.plan("step", {"step": stepped(scenarios=scenarios, findings=[])})
    command = ("step", "--jdk", fakes.tools.jdk.home)
    assert framestorm(*command, "--out", tmp_path / "all")[0] == 0
    code, _, err = framestorm(*command, "--out", tmp_path / "it", "--scenario", "ffi-upcall")
    assert code == 2
    assert "ffi-upcall: needs JDK 22" in err


def with_event(injected: int, effective: int, **why_not: int) -> dict[str, Any]:
    """step.json of a run with --event gc."""
    event = {"injected": injected, "effective": effective, "why_not": why_not}
    scenarios = {"c1": stepped()["scenarios"]["c1"] | {"events": {"gc": event}}}
    walked = {"gc": {"asgct": tally(right=3, wrong=1), "plugin": tally(right=4)}}
    return stepped(scenarios=scenarios, events=walked, findings=[])


def test_events_are_told_and_counted(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("step", {"step": with_event(8, 5, late=3)})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--event", "gc", "--event", "signal")
    code, text, err = framestorm(*command, "--out", tmp_path / "out")
    assert code == 0, err
    assert "--event gc --event signal" in " ".join(fakes.starts("step")[0])
    assert "gc: 8 injected, 5 took effect" in text
    row = next(line for line in text.splitlines() if "during gc" in line)
    assert "75.00%" in row and "25.00%" in row
    assert "gc: 8 injected, 5 took effect" in (tmp_path / "out" / "step.html").read_text()


@pytest.mark.parametrize(
    ("made", "asked", "why"),
    [
        (with_event(8, 0, late=8), ("c1",), "scenario c1: event gc took effect nowhere: late"),
        (with_event(0, 0), (), "scenario c1: event gc took effect nowhere: none was injected"),
    ],
)
def test_an_event_without_effect_is_not_passed_over(
    framestorm: Run,
    fakes: FakePrograms,
    tmp_path: Path,
    made: dict[str, Any],
    asked: tuple[str, ...],
    why: str,
) -> None:
    fakes.plan("step", {"step": made})
    options = [part for name in asked for part in ("--scenario", name)]
    command = ("step", "--jdk", fakes.tools.jdk.home, "--event", "gc", *options)
    code, _, err = framestorm(*command, "--out", tmp_path / "out")
    assert code == 2
    assert why in err


def test_a_scenario_without_instructions_of_its_own_may_have_no_event(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    made = with_event(8, 5)
    made["scenarios"]["osr"] = with_event(0, 0)["scenarios"]["c1"]
    fakes.plan("step", {"step": made})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--event", "gc")
    code, text, err = framestorm(*command, "--out", tmp_path / "all")
    assert code == 0, err
    assert "gc took no effect: osr: none was injected" in text
    code, _, err = framestorm(*command, "--out", tmp_path / "it", "--scenario", "osr")
    assert code == 2
    assert "scenario osr: event gc took effect nowhere" in err


@pytest.mark.parametrize(
    ("stored", "code", "said"),
    [
        (90, 0, "the profiler stored 90 samples; its traces are not judged"),
        (0, 2, "the profiler stored no sample"),
        (None, 2, "its samples cannot be counted"),
    ],
)
def test_a_profiler_has_to_store_samples(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, stored: int | None, code: int, said: str
) -> None:
    fakes.plan("step", {"step": stepped(findings=[], profiler={"stored": stored})})
    library = tmp_path / "profiler.so"
    library.touch()
    command = ("step", "--jdk", fakes.tools.jdk.home, "--profiler", f"{library}=start")
    ended, text, err = framestorm(*command, "--out", tmp_path / "out")
    assert (ended, said in " ".join((text + err).split())) == (code, True), text + err
    told = " ".join(fakes.starts("step")[0])
    assert f"--walker profiler --profiler {library}=start" in told, told
    code, _, err = framestorm(*command, "--event", "gc")
    assert (code, "do not go together" in err) == (2, True)


def test_a_process_that_dies_is_a_finding(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan("step", {"end": "die"})
    code, text, err = framestorm(
        "step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out", "--verify", "0"
    )
    assert code == 2, text
    assert "the JVM died: SIGKILL" in err
    assert "1 findings" in text


def test_the_scenarios_after_a_death_are_stepped_in_another_jvm(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    first = with_event(8, 5) | {"left": ["c2", "osr", "adapters"]}
    second = with_event(4, 2) | {"left": [], "seconds": 3.0}
    second["scenarios"] = {
        "osr": second["scenarios"]["c1"],
        "adapters": stepped()["scenarios"]["c1"],
    }
    fakes.plan(
        "step",
        {"step": first, "findings": [WRONG], "end": "die"},
        {"step": second, "findings": [WRONG | {"key": "2", "clause": "wrong-bci"}]},
    )
    out = tmp_path / "out"
    command = ("step", "--jdk", fakes.tools.jdk.home, "--event", "gc", "--verify", "0")
    code, text, err = framestorm(*command, "--out", out)
    assert code == 2, text
    assert "the JVM died in scenario c2: SIGKILL, exit code 137; see" in err
    assert "going on with osr in another JVM" in err + text
    told = [" ".join(start) for start in fakes.starts("step")]
    assert len(told) == 2
    assert "--scenario" not in told[0]
    assert "--scenario osr --scenario adapters" in told[1]
    assert f"--out {out / 'jvm-2'}" in told[1]
    for found in ("caller-left-out by asgct", "wrong-bci by asgct", "process_death SIGKILL"):
        assert found in text, text
    made = results.read(out / "step.json")
    assert list(made.scenarios) == ["c1", "osr", "adapters"]
    assert made.counts.steps == 220
    assert made.sections["interpreter codelet"]["asgct"].refused == 20
    assert made.sections["interpreter codelet"]["asgct"].errors == {"-5": 20}
    assert made.events["gc"]["asgct"].wrong == 2
    assert "gc: 12 injected, 7 took effect" in text
    assert "220 instructions in 5 s" in text


def test_a_scenario_that_cannot_be_ended_takes_no_other_away(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    fakes.plan(
        "step",
        {"step": stepped(findings=[]) | {"left": ["c2", "osr"]}, "end": "setup"},
        {"step": stepped(findings=[])},
    )
    code, _, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    assert code == 2
    assert "stepping ended in scenario c2: framestorm-step: libjvm.so cannot be loaded" in err
    assert "--scenario osr" in " ".join(fakes.starts("step")[1])


def test_a_jvm_that_never_steps_is_not_tried_for_ever(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    first = stepped(findings=[]) | {"left": ["c2", "osr"]}
    fakes.plan("step", {"step": first, "end": "die"}, {"end": "die"})
    code, _, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    assert code == 2
    assert len(fakes.starts("step")) == 2
    assert "the JVM died: SIGKILL" in err
    assert "not stepped: osr" in err


def test_a_setup_error_is_said(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("step", {"end": "setup"})
    code, _, err = framestorm("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    assert code == 2
    assert "libjvm.so cannot be loaded" in err


def test_distinct_instructions_are_those_of_code_by_name(tmp_path: Path) -> None:
    twice = stepped()
    twice["blobs"] += twice["blobs"][:1]  # compiled again, to the same code
    (tmp_path / "step.json").write_text(json.dumps(twice))
    made = results.read(tmp_path / "step.json")
    assert made.distinct == 2
    assert made.distinct_by_section == {"C2 body": 1, "interpreter codelet": 1}
    page.write(made, "JDK 25", tmp_path / "step.html")
    assert (
        "nmethod a/B.c (tier 4): 1 stepped, 1 not right by asgct"
        in (tmp_path / "step.html").read_text()
    )


def program(**more: Any) -> dict[str, Any]:
    sampled = {"kind": "nmethod", "name": "a/B.c", "tier": 4, "offset": 1, "samples": 9}
    missed = sampled | {"offset": 7, "samples": 1}
    return {"windows": 2, "vain": 0, "ended": False, "sampled": [sampled, missed], **more}


def test_a_program_is_stepped(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    fakes.plan("step", {"step": stepped(scenarios={}, program=program(), findings=[])})
    workload = "class:-cp . --add-opens java.base/java.lang=ALL-UNNAMED -Da=b a.Main x --y"
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    code, text, err = framestorm(*command, "--workload", workload)
    assert code == 0, err
    told = " ".join(fakes.starts("step")[0])
    assert "--main a.Main --argument x --argument --y" in told, told
    for one in (f"-Djava.class.path={Path.cwd()}", "-Da=b", "-XX:+BackgroundCompilation"):
        assert f"--jvm-arg {one}" in told, told
    assert "--jvm-arg --add-opens=java.base/java.lang=ALL-UNNAMED" in told, told
    assert "2 windows of the program; 90.0% of its 10 samples" in text
    assert "not stepped: 10.0% in nmethod a/B.c (tier 4)" in text
    page_text = (tmp_path / "out" / "step.html").read_text()
    assert '<td>nmethod a/B.c (tier 4)</td><td class="number">1</td>' in page_text


def test_a_program_that_was_never_stepped_is_no_clean_run(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    never = program(windows=0, vain=3)
    fakes.plan("step", {"step": stepped(scenarios={}, program=never, findings=[])})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    code, _, err = framestorm(*command, "--workload", "class:a.Main")
    assert code == 2
    assert "no instruction of the program was stepped" in err


def test_what_a_program_missed_most_is_told_first(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    places = [
        {"kind": "nmethod", "name": f"a/B.m{n}", "tier": 4, "offset": 7, "samples": n}
        for n in range(1, 8)
    ]
    missing = stepped(scenarios={}, program=program(sampled=places), findings=[])
    fakes.plan("step", {"step": missing})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    _, text, _ = framestorm(*command, "--workload", "class:a.Main")
    told = [line for line in text.splitlines() if "not stepped:" in line]
    assert [line.split()[5] for line in told] == [f"a/B.m{n}" for n in (7, 6, 5, 4, 3)], told
    assert "and in 2 others: step.html, step.json" in text


def test_in_code_of_methods_an_instruction_counts_that_was_stepped_with_other_registers(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    def place(kind: str, tier: int, code: str, samples: int) -> dict[str, Any]:
        name = "a/B.new" if kind == "nmethod" else "a stub"
        return {"kind": kind, "name": name, "tier": tier, "offset": 7, "samples": samples} | {
            "code": code
        }

    load, like, unlike = (
        "488b4210",
        "4c8b4a20",
        "48890424",
    )  # mov rax, [rdx+16]; r9, [rdx+32]; [rsp], rax
    places = [
        place("nmethod", 4, like, 90),
        place("nmethod", 1, like, 5),
        place("nmethod", 4, unlike, 4),
        place("stub", 0, load, 1),
    ]
    made = stepped(scenarios={}, program=program(sampled=places), findings=[])
    made["blobs"][0] |= {"tier": 4, "code": "90" + load}
    fakes.plan("step", {"step": made})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    _, text, _ = framestorm(*command, "--workload", "class:a.Main")
    assert "90.0% where an instruction of a method's code counts" in text
    told = [line.split("% in ")[1] for line in text.splitlines() if "not so:" in line]
    assert told == [
        "tier 1: mov R, qword ptr [R + N]",
        "tier 4: mov qword ptr [rsp], R",
        "stub a stub",
    ]


def test_what_another_run_has_stepped_counts_for_the_samples_of_a_program(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    step = ("step", "--jdk", fakes.tools.jdk.home)
    of_program = (*step, "--workload", "class:a.Main", "--also", tmp_path / "scenarios")
    stub = {"kind": "stub", "name": "sha", "tier": 0, "offset": 0, "samples": 7}
    places = [stub, stub | {"offset": 3, "samples": 2}, stub | {"name": "md5", "samples": 1}]
    blob = stepped()["blobs"][1] | {"kind": "stub", "name": "sha"}
    fakes.plan(
        "step",
        {"step": stepped(blobs=[blob], findings=[])},
        {"step": stepped(scenarios={}, program=program(sampled=places), findings=[])},
    )
    assert framestorm(*step, "--out", tmp_path / "scenarios")[0] == 0
    _, text, _ = framestorm(*of_program, "--out", tmp_path / "out")
    assert "70.0% of its 10 samples" in text
    assert "not stepped: 20.0% in stub sha" in text
    assert "70.0% where an instruction of a method's code counts" in text

    other = {"libjvm_build_id": "of another one"}
    (tmp_path / "scenarios" / "jvm.json").write_text(json.dumps(other))
    code, _, err = framestorm(*of_program, "--out", tmp_path / "again")
    assert (code, "is of another JDK" in err) == (2, True), err
    code, _, err = framestorm(*step, "--also", tmp_path / "scenarios")
    assert (code, "it goes with --workload" in err) == (2, True), err


def test_an_event_without_effect_in_a_program_is_not_passed_over(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path
) -> None:
    events = {"gc": {"injected": 3, "effective": 0, "why_not": {"late": 3}}}
    fakes.plan("step", {"step": stepped(scenarios={}, program=program(events=events), findings=[])})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    code, text, err = framestorm(*command, "--workload", "class:a.Main", "--event", "gc")
    assert code == 2
    assert "gc: 3 injected, 0 took effect" in text
    assert "event gc took effect nowhere: late" in err


def test_a_program_and_scenarios_exclude_each_other(framestorm: Run) -> None:
    code, _, err = framestorm("step", "--workload", "class:a.Main", "--scenario", "c1")
    assert code == 2
    assert "give one of them" in err


def test_a_jar_names_its_main_class(framestorm: Run, fakes: FakePrograms, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: a.B\n")
    fakes.plan("step", {"step": stepped(scenarios={}, program=program(), findings=[])})
    command = ("step", "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "out")
    code, _, err = framestorm(*command, "--workload", f"jar:{jar} x")
    assert code == 0, err
    told = " ".join(fakes.starts("step")[0])
    assert f"-Djava.class.path={jar}" in told
    assert "--main a.B --argument x" in told
