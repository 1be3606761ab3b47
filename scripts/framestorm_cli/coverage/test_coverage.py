"""Coverage: measured over several processes, turned into functions and lines, held to a floor."""

import json
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.conftest import FakePrograms, Run
from framestorm_cli.coverage.measuring import Edge, Input, Measured
from framestorm_cli.coverage.places import Place, without_parameters
from framestorm_cli.coverage.tables import fallen, floor_of, read_floor, tables_of, walker_stems

STEMS = frozenset({"frame"})
FRAME = "/sources/src/hotspot/share/runtime/frame.cpp"
FUNCTIONS = ("frame::sender", "frame::sender_for_compiled_frame", "AsyncGetCallTrace")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"framestorm-input 1\n# {name}\n")
    return folder


def plan(fakes: FakePrograms, **more: Any) -> None:
    pcs = [fakes.symbols.ranges(name)[0][0] for name in FUNCTIONS]
    fakes.plan("coverage", {"pcs": pcs, **more})


def coverage(
    framestorm: Run, fakes: FakePrograms, tmp_path: Path, *more: object, out: str = "out"
) -> Any:
    folder = tmp_path / out
    code, text, err = framestorm(
        "coverage",
        tmp_path / "corpus",
        "--jdk",
        fakes.tools.jdk.home,
        "--out",
        folder,
        *map(str, more),
    )
    data = json.loads((folder / "coverage.json").read_text()) if code != 2 else {}
    return code, text, err, data


def test_functions_lines_and_what_is_never_reached(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    plan(fakes, edges={"a": [0], "b": [0, 2], "c": []})
    code, text, _, data = coverage(framestorm, fakes, tmp_path)
    assert code == 0
    assert data["edges"] == 3
    assert data["edges_reached"] == 2
    assert data["repeatability"] == 0.99
    names = {function["name"]: function["reached"] for function in data["functions"]}
    assert names["frame::sender"] == 1
    assert names["frame::sender_for_compiled_frame"] == 0
    assert [line for line in data["never_reached"] if "sender_for_compiled_frame" in line]
    assert "99.00% of the counters repeat" in text
    index = (tmp_path / "out" / "index.html").read_text()
    assert "frame::sender_for_compiled_frame" in index
    assert list((tmp_path / "out" / "files").glob("frame.cpp-*.html"))


def test_a_walk_that_ends_its_process_does_not_hide_the_others(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    plan(fakes, edges={"a": [0], "b": [1], "c": [2]}, not_reusable=["a", "b"])
    code, _, _, data = coverage(framestorm, fakes, tmp_path)
    assert code == 0
    assert data["edges_reached"] == 3
    assert data["inputs_walked"] == 3
    assert len(fakes.starts("coverage")) == 3


def test_an_input_without_a_victim_does_not_start_processes_for_ever(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    plan(fakes, edges={"a": [0]}, not_reusable=["a"])
    code, _, _, data = coverage(framestorm, fakes, tmp_path)
    assert code == 0
    assert (data["inputs"], data["inputs_walked"]) == (3, 1)


def test_the_floor_names_what_fell(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    floor = tmp_path / "floor.json"
    plan(fakes, edges={"a": [0, 1], "b": [], "c": []})
    assert coverage(framestorm, fakes, tmp_path, "--write-floor", floor)[0] == 0
    assert set(read_floor(floor)) == {"frame::sender", "frame::sender_for_compiled_frame"}
    # What an older floor does not know is in the new one too.
    floor.write_text('{"functions": {"frame::sender": 0.1}}')
    assert coverage(framestorm, fakes, tmp_path, "--write-floor", floor, out="anew")[0] == 0
    assert set(read_floor(floor)) == {"frame::sender", "frame::sender_for_compiled_frame"}
    plan(fakes, edges={"a": [0], "b": [], "c": []})
    code, text, _, _ = coverage(framestorm, fakes, tmp_path, "--check", floor, out="again")
    assert code == 1
    assert "fell below its floor: frame::sender_for_compiled_frame: 0 of its 1 edges" in text


@pytest.mark.parametrize("content", ["", "[]", '{"functions": [1]}', '{"functions": {"a": "x"}}'])
def test_a_floor_that_is_none_is_said(content: str, tmp_path: Path) -> None:
    path = tmp_path / "floor.json"
    path.write_text(content)
    with pytest.raises(FramestormError, match="is no floor"):
        read_floor(path)


def test_a_function_that_is_gone_fell_too() -> None:
    measured = Measured(Path("libjvm.so"), [Edge(1, True)], {"c1": {0}})
    found = tables_of(measured, [Place("frame::sender", FRAME, 7)], STEMS)
    assert fallen(found, {"frame::sender": 1.0}) == []
    assert fallen(found, {"frame::other": 0.5})[0].startswith("frame::other: not in this libjvm's")
    assert floor_of(found) == {"frame::sender": 0.85}


@pytest.mark.parametrize(
    ("reached", "of", "is_fallen"),
    [(5, 8, False), (4, 8, False), (3, 8, True), (1, 2, False), (0, 2, True), (0, 1, True),
     (52, 100, False), (51, 100, True)],
)  # fmt: skip
def test_a_single_edge_is_no_fall(reached: int, of: int, is_fallen: bool) -> None:
    places = [Place("frame::sender", FRAME, 7)] * of
    edges = [Edge(number, True) for number in range(of)]
    measured = Measured(Path("libjvm.so"), edges, {"c1": set(range(reached))})
    lines = fallen(tables_of(measured, places, STEMS), {"frame::sender": 0.53})
    assert bool(lines) is is_fallen, lines


def test_only_the_walkers_own_sources_count() -> None:
    share = "/sources/src/hotspot/share"
    places = [
        Place("std::sort", "/usr/include/c++/12/algorithm", 3),
        Place("f", FRAME, 0),
        Place("g", f"{share}/../cpu/x86/frame_x86.inline.hpp", 4),
        Place("oopDesc::field", f"{share}/oops/oop.inline.hpp", 5),
    ]
    edges = [Edge(number, True) for number in range(len(places))]
    found = tables_of(Measured(Path("libjvm.so"), edges, {"c1": {0, 1, 3}}), places, STEMS)
    assert [function.name for function in found.functions] == ["g", "f"]
    assert found.files[1].lines == {}, "line 0 is unknown"
    assert {"frame", "forte", "nmethod", "asyncInstructions"} <= walker_stems()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("frame::sender(RegisterMap*) const", "frame::sender"),
        ("AsyncGetCallTrace", "AsyncGetCallTrace"),
        ("void f<void (*)(int)>(g(int), int)", "void f<void (*)(int)>"),
        ("Closure::operator()(oop*)", "Closure::operator()"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
    ],
)
def test_names_without_parameters(name: str, short: str) -> None:
    assert without_parameters(name) == short


def test_minimize_keeps_what_adds(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    plan(fakes, edges={"a": [0, 1], "b": [1], "c": [2]})
    into = tmp_path / "small"
    command = ("corpus", "minimize", corpus, "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "o")
    code, text, _ = framestorm(*command, "--into", into)
    assert code == 0
    assert "2 of 3 inputs reach all 3 edges" in text
    kept = sorted(path.read_text() for path in into.iterdir())
    assert kept == [(corpus / f"{name}.txt").read_text() for name in ("a", "c")]
    code, _, err = framestorm(*command, "--into", into)
    assert code == 2
    assert "is not empty" in err


def test_check_says_what_is_wrong_with_each_seed(
    framestorm: Run, fakes: FakePrograms, corpus: Path, tmp_path: Path
) -> None:
    (corpus / "d.txt").write_text("something else")
    (corpus / "jdk-8313796-x.txt").write_text("framestorm-input 1\n# named after a bug\n")
    plan(fakes, edges={"a": [0], "b": [0], "jdk-8313796-x": [0]})
    code, text, _ = framestorm(
        "corpus", "check", corpus, "--jdk", fakes.tools.jdk.home, "--out", tmp_path / "o"
    )
    assert code == 1
    said = {Path(line.split(":")[0]).name: line for line in text.splitlines() if "txt: " in line}
    assert "adds nothing" in said["b.txt"]
    assert "reaches no walk" in said["c.txt"]
    assert "is no legal input" in said["d.txt"]
    assert "1 add nothing but are kept" in text
    assert "1 of 5 are legal" in text


def test_inputs_are_one_of_each_file() -> None:
    measured = Measured(Path("libjvm.so"), inputs=[Input(Path("a"), "c1")])
    assert measured.repeatability is None
