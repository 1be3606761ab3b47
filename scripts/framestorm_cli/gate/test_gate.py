"""The gate as a command, on fakes: what is new, fixed, unchanged, known, and what cannot be judged."""

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.corpus import known
from framestorm_cli.fakes import fake_native
from framestorm_cli.gate import stress_step
from framestorm_cli.gate.budget import Budget
from framestorm_cli.native import walkers
from framestorm_cli.native.toolchain import NATIVE

pytestmark = pytest.mark.long

SCENARIOS = json.loads(fake_native.NAMES.read_text())["scenarios"]
STRESSED = {
    "cells": [{"mode": mode, "samples": 1000} for mode in stress_step.MODES],
    "buckets": [],
}


@pytest.fixture
def stress(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The summary of every stress run of the test; its `problems` are reported as the command does."""
    summary: dict[str, Any] = json.loads(json.dumps(STRESSED))

    def one(_arguments: Any, _folder: Any, _seconds: Any, side: Any, step: Any) -> dict[str, Any]:
        step.problems += summary.get("problems", [])
        step.problems += [f"{side.what}: {line}" for line in stress_step.unstressed(summary)]
        return summary

    monkeypatch.setattr(stress_step, "_one", one)
    return summary


@pytest.fixture
def crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty corpus/crashes, and no list of known buckets."""
    folder = tmp_path / "crashes"
    folder.mkdir()
    monkeypatch.setattr("framestorm_cli.triage.expectations.folders.__defaults__", (folder,))
    monkeypatch.setattr(known, "FOLDER", tmp_path / "known")
    return folder


@pytest.fixture
def base(fakes: FakePrograms, tmp_path: Path) -> Path:
    """Another JDK, and the plan of its replays: fakes tell them apart by the order of their starts."""
    return Path(shutil.copytree(fakes.tools.jdk.home, tmp_path / "base"))


def stepped(**walker: int) -> dict[str, Any]:
    """step.json: a walker at two instructions of a method, with these verdicts at the second."""
    bad = [verdict for verdict in walker if verdict != "right"]
    misses = [
        {
            "walker": "asgct",
            "verdict": verdict,
            "clause": "caller-left-out",
            "detail": "C2 body: frame 1 is a/B.c@0, expected a/B.d@6",
            "detail_class": "* body: frame * is *",
            "input": "framestorm-input 1\nscenario c1\n",
        }
        for verdict in bad
    ]
    instruction = {"steps": 60, "section": "C2 body", "misses": []}
    return {
        "seconds": 2.0,
        "walkers": ["asgct"],
        "counts": {
            "steps": 110, "walked": 100, "judged": 100, "passed": 10, "excursions": 3,
            "from_outside": 0, "outside": 0, "lost": {},
        },
        "scenarios": {"c1": {"steps": 110, "seconds": 2.0, "unavailable": ""}},
        "sections": {"C2 body": {"asgct": {**walker, "right": 60 + walker.get("right", 0)}}},
        "findings": [],
        "blobs": [
            {
                "kind": "nmethod", "name": "a/B.c", "tier": 4, "code": "5590c3",
                "instructions": [
                    {**instruction, "offset": 0, "walkers": {"asgct": {"right": 60}}},
                    {**instruction, "offset": 2, "walkers": {"asgct": walker}, "misses": misses},
                ],
            }
        ],
    }  # fmt: skip


NEVER = {"steps": 0, "seconds": 1.0, "unavailable": ""}
RIGHT, WRONG = {"step": stepped(right=50)}, {"step": stepped(right=49, wrong=1)}


def fuzz(fakes: FakePrograms, *findings: Any, **more: Any) -> None:
    fakes.plan("step", RIGHT)
    for target in paths.TARGETS:
        entry = {"walks": 90_000, "scenarios": SCENARIOS, "findings": [], **more}
        fakes.plan(
            target, {**entry, "findings": list(findings)} if target == "fuzz_call" else entry
        )


class Gate:
    def __init__(self, framestorm: Run, fakes: FakePrograms, folder: Path) -> None:
        self._run, self._fakes, self.out = framestorm, fakes, folder / "gate"

    def __call__(self, *more: object) -> tuple[int, Any]:
        shutil.rmtree(self.out, ignore_errors=True)
        jdk = self._fakes.tools.jdk.home
        code, out, err = self._run(
            "gate", "--jdk", jdk, "--minutes", "20", "--seed", "1", "--out", self.out, *more
        )
        path = self.out / "gate.json"
        return code, json.loads(path.read_text()) if path.exists() else out + err

    def found(self, data: Any) -> dict[str, str]:
        return {" < ".join(e["signature"]["frames"]): e["kind"] for e in data["entries"]}


@pytest.fixture
def gate(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, stress: dict[str, Any], crashes: Path
) -> Gate:
    return Gate(framestorm, fakes, tmp_path)


def test_nothing_found(gate: Gate, fakes: FakePrograms) -> None:
    fuzz(fakes)
    code, data = gate()
    assert (code, data["verdict"], data["problems"]) == (0, "nothing new", [])
    assert [step["name"] for step in data["steps"]] == [
        "build", "corpus", "coverage", "fuzz", "step", "stress",
    ]  # fmt: skip
    known_targets = walkers.table(fakes.tools.program(NATIVE))
    targets, _ = known_targets.usable_targets(fakes.tools.jdk.libjvm)
    assert all(fakes.starts(target) for target in targets)
    assert "## ✅ framestorm gate: nothing new" in (gate.out / "summary.md").read_text()


def test_something_new_with_its_reproducer(gate: Gate, fakes: FakePrograms) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", {"findings": [fault]})
    code, data = gate()
    assert (code, data["verdict"]) == (1, "something new")
    (entry,) = data["entries"]
    assert entry["kind"] == "new"
    assert (gate.out / entry["artifact"]).read_bytes() == b"FAKEa"
    assert entry["command"].startswith("scripts/framestorm replay ")
    assert entry["how"] == "5 of 5 fresh JVMs"
    markdown = (gate.out / "summary.md").read_text()
    assert "❌" in markdown
    assert entry["command"] in markdown
    cases = {case.get("name"): case for case in ET.parse(gate.out / "junit.xml").iter("testcase")}
    assert cases["fuzz"].find("failure") is not None
    assert cases["corpus"].find("failure") is None
    sarif = json.loads((gate.out / "report.sarif").read_text())
    assert [one["baselineState"] for one in sarif["runs"][0]["results"]] == ["new"]


def test_a_profiler_against_its_release(gate: Gate, fakes: FakePrograms, tmp_path: Path) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", *[{"findings": [fault]}] * 5, {"findings": []})
    built, released = tmp_path / "built.so", tmp_path / "released.so"
    built.touch()
    released.touch()
    code, data = gate("--profiler", f"{built}=start", "--base", released)
    assert (code, gate.found(data)) == (1, {"frame::sender": "new"})
    given = [start[start.index("--profiler") + 1] for start in fakes.starts("replay")]
    assert given[0] == f"{built}=start"
    assert given[-1] == f"{released}=start"
    recorded = json.loads((gate.out / f"{data['entries'][0]['artifact']}.json").read_text())
    assert recorded["profiler"]["file"] == str(built)
    assert gate("--profiler", "jvm", "--walker", "asgct")[0] == 2
    assert gate("--profiler", "jvm", "--base", fakes.tools.jdk.home)[0] == 2


def sampled(
    clause: str, count: int, *deaths: str, did: str = "Inlined", workload: str = "alpha"
) -> dict[str, Any]:
    """A stress run of a profiler: 1000 samples of each workload, that many wrong in one; and cells that
    died."""
    wrong = {"kind": "contract", "clause": clause, "frames": [], "did": did}
    wrong["walker"] = "/its/own.so=start"
    dead = [{"kind": "process_death", "clause": "SIGSEGV", "frames": [one]} for one in deaths]
    found = [(wrong, count, {workload: count})] * (count > 0) + [(one, 1, {}) for one in dead]
    buckets = [
        {"id": f"b{at:02d}", "signature": signature, "known": False, "cells": [1], "count": times,
         "victims": victims}
        for at, (signature, times, victims) in enumerate(found, 1)
    ]  # fmt: skip
    cells = [{"mode": "self", "samples": 1000, "workload": one} for one in ("alpha", "beta")]
    return {"cells": cells, "buckets": buckets}


def test_a_profiler_samples_by_itself_beside_its_base(
    gate: Gate, fakes: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzz(fakes)
    runs = {
        "change": sampled("impossible-call", 40, "walkVM", "parse"),
        "base": sampled("wrong-bci", 30, "walkVM", "unwind"),
    }
    asked: dict[str, list[str]] = {}

    def one(arguments: list[str], _folder: Any, _seconds: Any, side: Any, _step: Any) -> Any:
        asked[side.what] = arguments
        return runs[side.what]

    monkeypatch.setattr(stress_step, "_one", one)
    built, released = tmp_path / "built.so", tmp_path / "released.so"
    built.touch()
    released.touch()
    options = "start,every=%i,file=%o/a.jfr"
    asks = ("--profiler", f"{built}={options}", "--base", released)
    code, data = gate(*asks)

    def kinds(data: Any) -> dict[str, str]:
        every = [(e["signature"], e["kind"]) for e in data["entries"]]
        return {one["frames"][0] if one["frames"] else one["clause"]: kind for one, kind in every}

    assert (code, kinds(data)) == (
        1,
        {
            "impossible-call": "new", "wrong-bci": "fixed", "walkVM": "unchanged", "parse": "new",
            "unwind": "fixed",
        },
    )  # fmt: skip
    for side, file in (("change", built), ("base", released)):
        given = asked[side]
        assert given[given.index("--profiler") + 1] == f"{file}={options}"
        assert not {"--mode", "--walker"} & set(given)
    how = {e["signature"]["clause"]: e["how"] for e in data["entries"]}
    assert how["impossible-call"] == "in 1 cells, 40 of 2,000 samples; base: none of 2,000"
    # Another wrong trace of that clause is another, and so is one in another program.
    for other in ({"did": "Interpreted"}, {"workload": "beta"}):
        runs["change"], runs["base"] = sampled("wrong-bci", 40), sampled("wrong-bci", 40, **other)
        code, data = gate(*asks)
        every = [(e["signature"]["did"], e["kind"]) for e in data["entries"]]
        theirs = other.get("did", "Inlined")
        assert (code, every) == (1, [("Inlined", "new"), (theirs, "fixed")])
    # Two of a thousand against none may be chance, and what both do is no news.
    runs["change"], runs["base"] = sampled("impossible-call", 2), sampled("wrong-bci", 2)
    code, data = gate(*asks)
    assert (code, kinds(data)) == (0, {"impossible-call": "too rare to compare"})
    runs["base"] = sampled("impossible-call", 1)
    code, data = gate(*asks)
    assert (code, kinds(data)) == (0, {"impossible-call": "unchanged"})
    # A list that the gate wrote holds for another file of the profiler, too.
    listed = tmp_path / "known.json"
    assert gate("--profiler", f"{built}={options}", "--write-baseline", listed)[0] == 1
    code, data = gate("--profiler", f"{released}={options}", "--baseline", listed)
    assert (code, kinds(data)) == (0, {"impossible-call": "known"})


def test_a_profiler_without_a_recording_is_not_stressed(
    gate: Gate, fakes: FakePrograms, tmp_path: Path
) -> None:
    fuzz(fakes)
    built = tmp_path / "built.so"
    built.touch()
    code, data = gate("--profiler", f"{built}=start,file=%o/samples.txt")
    assert code == 0
    assert "left out: built.so" in data["steps"][-1]["did"][0]


def test_on_a_busy_machine_fuzzing_goes_on_until_there_are_enough_walks(
    gate: Gate, fakes: FakePrograms
) -> None:
    fuzz(fakes, walks=3_000)
    code, data = gate()
    assert (code, data["problems"]) == (0, [])
    again = [start for start in fakes.starts("fuzz_call") if "--runs" in start]
    assert len(again) == 1
    assert again[0][again[0].index("--runs") + 1] == "2000"


def test_only_the_change_has_to_walk_enough(gate: Gate, fakes: FakePrograms, base: Path) -> None:
    """A base may die of each fault that the change has fixed."""
    fuzz(fakes, walks=100)
    _, data = gate("--base", base)
    assert any(one.startswith("fuzz: change: fuzz_call made 200") for one in data["problems"])
    assert not any("base: " in one for one in data["problems"]), data["problems"]


def test_what_does_not_come_back_fails_nothing(gate: Gate, fakes: FakePrograms) -> None:
    fuzz(fakes, fakes.fault("a", "frame::sender"))
    fakes.plan("replay", {"findings": []})
    code, data = gate()
    assert (code, gate.found(data)) == (0, {"frame::sender": "not reproduced"})


def test_known_by_a_list_that_the_gate_wrote(
    gate: Gate, fakes: FakePrograms, tmp_path: Path
) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", {"findings": [fault]})
    path = tmp_path / "known.json"
    assert gate("--write-baseline", path)[0] == 1
    replays = len(fakes.starts("replay"))
    code, data = gate("--baseline", path)
    assert (code, gate.found(data)) == (0, {"frame::sender": "known"})
    assert len(fakes.starts("replay")) == replays, "what is known need not be replayed"


def test_against_a_base_that_does_the_same(gate: Gate, fakes: FakePrograms, base: Path) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", {"findings": [fault]})
    code, data = gate("--base", base)
    assert code == 0
    assert set(gate.found(data).values()) == {"unchanged"}


def test_against_a_base_that_does_not(gate: Gate, fakes: FakePrograms, base: Path) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", *[{"findings": [fault]}] * 5, {"findings": []})
    code, data = gate("--base", base)
    assert (code, gate.found(data)) == (1, {"frame::sender": "new"})
    assert data["entries"][0]["how"] == "5 of 5 fresh JVMs; base: 0 of 4"


@pytest.mark.parametrize(
    ("later", "kind", "how"),
    [
        # After two of five: base and change in turn.
        ([0, 0] * 30, "too rare to compare", "2 of 29 fresh JVMs; base: 0 of 24"),
        ([0, 1] * 30, "new", "7 of 10 fresh JVMs; base: 0 of 6"),
        ([0, 0, 0, 0, 1], "unchanged", "2 of 7 fresh JVMs; base: 1 of 3"),
    ],
)
def test_what_comes_back_now_and_then(
    gate: Gate, fakes: FakePrograms, base: Path, later: list[int], kind: str, how: str
) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    fakes.plan("replay", *[{"findings": [fault] * hit} for hit in (1, 1, 0, 0, 0, *later)])
    code, data = gate("--base", base, "--jobs", "1")
    (entry,) = data["entries"]
    assert (entry["kind"], entry["how"]) == (kind, how)
    assert code == (kind == "new")


def test_what_hides_behind_a_known_signature(
    gate: Gate, fakes: FakePrograms, base: Path, tmp_path: Path
) -> None:
    fault = fakes.fault("a", "frame::sender")
    fuzz(fakes, fault)
    path = tmp_path / "known.json"
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    path.write_text(json.dumps({"format": 1, "known": [signature]}))
    # Two replays on the base, five on the change, three on the base.
    nothing: dict[str, Any] = {"findings": []}
    fakes.plan("replay", nothing, nothing, *[{"findings": [fault]}] * 5, nothing)
    code, data = gate("--base", base, "--baseline", path, "--jobs", "1")
    assert code == 1
    assert sorted(e["kind"] for e in data["entries"]) == ["known", "new"]
    new = next(e for e in data["entries"] if e["kind"] == "new")
    assert "5 of 5 fresh JVMs; base: 0 of 5" in new["how"]


def test_a_profilers_crash_is_judged_only_where_it_is_under_test(
    gate: Gate, fakes: FakePrograms, crashes: Path, tmp_path: Path
) -> None:
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    for name in ("async-profiler", "jfr"):
        (crashes / name).mkdir()
        (crashes / name / "input.bin").write_bytes(b"FAKE")
        expected = {
            "profiler": {"name": name},
            "per_jdk": {"25": {"status": "open", "signature": signature}},
        }
        (crashes / name / "expected.json").write_text(json.dumps(expected))
    fuzz(fakes)
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    # JFR is part of the JDK; another profiler's library is not even fetched.
    code, data = gate()
    assert (code, [e["id"] for e in data["entries"]]) == (0, ["jfr"])
    built = tmp_path / "built.so"
    built.touch()
    code, data = gate("--profiler", built)
    assert (code, data["entries"]) == (0, [])


def test_a_fixed_crash_that_comes_back(gate: Gate, fakes: FakePrograms, crashes: Path) -> None:
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    for name, status in (("back", "fixed"), ("still", "open")):
        (crashes / name).mkdir()
        (crashes / name / "input.bin").write_bytes(b"FAKE")
        expected = {"per_jdk": {"25": {"status": status, "signature": signature}}}
        (crashes / name / "expected.json").write_text(json.dumps(expected))
    fuzz(fakes)
    fakes.plan("replay", {"findings": [fakes.fault("a", "frame::sender")]})
    code, data = gate()
    assert code == 1
    assert {e["id"]: e["kind"] for e in data["entries"]} == {"back": "new", "still": "known"}
    fakes.plan("replay", {"findings": []})
    code, data = gate()
    assert (code, {e["id"]: e["kind"] for e in data["entries"]}) == (0, {"still": "fixed"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"walks": 100}, "200 walks only"),
        ({"scenarios": ["c1"]}, "never walked: interpreted-recursion, c2-inlined"),
        ({"success": 0.5}, "only 50.0% of"),
        ({"end": "setup"}, "could not run: libjvm.so cannot be loaded"),
    ],
)
def test_could_not_judge(gate: Gate, fakes: FakePrograms, more: dict[str, Any], said: str) -> None:
    fuzz(fakes, **more)
    code, data = gate()
    assert (code, data["verdict"]) == (2, "could not judge")
    assert any(said in problem for problem in data["problems"]), data["problems"]
    assert "⚠️" in (gate.out / "summary.md").read_text()
    root = ET.parse(gate.out / "junit.xml").getroot()
    assert root.find(".//error") is not None


@pytest.mark.parametrize(
    ("runs", "kind", "how"),
    [
        ([WRONG, RIGHT] * 5, "new", "change: 5 of 5 runs; base: 0 of 5"),
        ([RIGHT, WRONG] * 5, "fixed", "base: 5 of 5 runs; change: 0 of 5"),
        (
            [WRONG, RIGHT, RIGHT, RIGHT] * 3,
            "too rare to compare",
            "change: 3 of 5 runs; base: 0 of 5",
        ),
        ([WRONG, RIGHT, WRONG, WRONG] * 3, "", ""),
        ([WRONG, WRONG], "", ""),
    ],
)
def test_an_instruction_where_one_side_alone_is_wrong(
    gate: Gate, fakes: FakePrograms, base: Path, runs: list[Any], kind: str, how: str
) -> None:
    fuzz(fakes)
    fakes.plan("step", *runs)
    code, data = gate("--base", base)
    assert data["problems"] == []
    assert code == (kind == "new")
    assert [(e["step"], e["kind"], e["how"]) for e in data["entries"]] == (
        [("step", kind, how)] if kind else []
    )
    if kind == "new":
        (entry,) = data["entries"]
        named = "`nmethod a/B.c (tier 4)+0x2 ret`. C2 body: frame 1 is a/B.c@0, expected a/B.d@6"
        assert named in entry["explanation"]
        assert (gate.out / entry["artifact"]).read_bytes() == b"FAKEencoded"
        assert named in (gate.out / "summary.md").read_text()
        cases = ET.parse(gate.out / "junit.xml").iter("testcase")
        failed = [case.get("name") for case in cases if case.find("failure") is not None]
        assert failed == ["step"]


@pytest.mark.parametrize(
    "asked", [("--walker", "asgct,gst"), ("--walker", "asgct", "--walker", "gst")]
)
def test_a_walker_that_was_not_asked_for_is_not_stepped(
    gate: Gate, fakes: FakePrograms, asked: tuple[str, ...]
) -> None:
    fuzz(fakes)
    gate(*asked)
    (start,) = fakes.starts("step")
    assert [start[at + 1] for at, one in enumerate(start) if one == "--walker"] == ["asgct"]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"end": "die"}, "step: change: the JVM died: SIGKILL"),
        ({"end": "setup"}, "step: framestorm-step: libjvm.so cannot be loaded"),
        (
            {"step": stepped(right=1) | {"scenarios": {"c1": NEVER}}},
            "step: change: scenario c1: no instruction was stepped",
        ),
    ],
)  # fmt: skip
def test_stepping_that_is_not_to_be_believed_is_no_green(
    gate: Gate, fakes: FakePrograms, run: dict[str, Any], said: str
) -> None:
    fuzz(fakes)
    fakes.plan("step", run)
    code, data = gate()
    assert (code, data["verdict"]) == (2, "could not judge")
    assert any(one.startswith(said) for one in data["problems"]), data["problems"]
    assert data["steps"][-1]["name"] == "stress", "the gate goes on"


def test_new_in_stepping_without_a_base(gate: Gate, fakes: FakePrograms) -> None:
    fuzz(fakes)
    wrong = {
        "key": "1", "kind": "contract", "clause": "caller-left-out",
        "detail": "C2 body: frame 1 is a/B.c@0", "detail_class": "C2 body: frame * is *",
    }  # fmt: skip
    fakes.plan("step", {**WRONG, "findings": [wrong]})
    fakes.plan("replay", {"findings": [wrong]})
    code, data = gate()
    assert (code, data["problems"]) == (1, [])
    assert [(e["step"], e["kind"], e["how"]) for e in data["entries"]] == [
        ("step", "new", "5 of 5 fresh JVMs")
    ]
    fakes.plan("replay", {"findings": []})
    code, data = gate()
    assert (code, data["entries"][0]["kind"]) == (0, "not reproduced")


def test_no_stress_is_no_green(gate: Gate, fakes: FakePrograms, stress: dict[str, Any]) -> None:
    fuzz(fakes)
    stress["cells"] = []
    code, data = gate()
    assert code == 2
    assert "stress: change: no walk was made in same-thread mode" in data["problems"]


def test_stress_that_cannot_be_run_is_no_green(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, crashes: Path, own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(Budget, "stress", lambda _: 2.0)
    # Its process would make a venv in a cache that has none.
    (own_cache / Path(sys.prefix).name).symlink_to(sys.prefix)
    fuzz(fakes)
    code, data = Gate(framestorm, fakes, tmp_path)()
    assert code == 2
    assert any("stress could not be run" in problem for problem in data["problems"])


def test_new_in_stress(gate: Gate, fakes: FakePrograms, stress: dict[str, Any]) -> None:
    fuzz(fakes)
    signature = {"kind": "contract", "clause": "bad-count", "frames": []}
    bucket = {"id": "b01", "signature": signature, "known": False, "cells": [1], "repro": "r.sh"}
    stress["buckets"] = [bucket]
    code, data = gate()
    assert (code, data["entries"][0]["kind"]) == (1, "new")
    assert data["entries"][0]["command"].startswith("sh ")
    bucket["known"] = True
    assert gate()[0] == 0


def test_what_stress_finds_has_to_come_back_where_it_can_be_replayed(
    gate: Gate, fakes: FakePrograms, stress: dict[str, Any], base: Path
) -> None:
    fuzz(fakes)
    fault = fakes.fault("a", "frame::sender")
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    files = ["buckets/b01/sample-1.sample", "buckets/b01/sample-1.bin"]
    stress["buckets"] = [
        {"id": "b01", "signature": signature, "known": False, "cells": [1], "files": files}
    ]
    fakes.plan("replay", {"findings": []})
    code, data = gate()
    assert (code, data["entries"][0]["kind"]) == (0, "not reproduced")
    fakes.plan("replay", *[{"findings": [fault]}] * 40)
    assert gate()[0] == 1
    code, data = gate("--base", base)
    assert (code, data["entries"][0]["kind"]) == (0, "unchanged")


@pytest.mark.parametrize(("hits", "kind"), [(4, "new"), (2, "too rare to compare")])
def test_what_stress_finds_and_comes_back_now_and_then(
    gate: Gate, fakes: FakePrograms, stress: dict[str, Any], base: Path, hits: int, kind: str
) -> None:
    fuzz(fakes)
    signature = {"kind": "fault", "clause": "", "frames": ["frame::sender"]}
    stress["buckets"] = [
        {"id": "b01", "signature": signature, "known": False, "cells": [1], "files": ["s-1.bin"]}
    ]
    fault = fakes.fault("a", "frame::sender")
    fakes.plan("replay", *[{"findings": [fault] * (i < hits)} for i in range(10)])
    code, data = gate("--base", base)
    assert (code, data["entries"][0]["kind"]) == (kind == "new", kind)


def test_what_cannot_be_built_leaves_its_reports(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "jdk").mkdir()
    code, out = gate("--jdk", tmp_path / "jdk")
    assert code == 2
    assert "is no JDK home" in out["problems"][0]
    assert "could not judge" in (gate.out / "summary.md").read_text()


def test_too_little_time(gate: Gate, fakes: FakePrograms) -> None:
    fuzz(fakes)
    code, data = gate("--minutes", "0.5")
    assert code == 2
    assert any("give more --minutes" in problem for problem in data["problems"])
