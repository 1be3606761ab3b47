"""Cells with ground truth beside plain ones."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm_cli.stress import agent, distortion
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.cells import MODES, UNSTOPPED, Cell

CELL = Cell("work", "asgct", "same-thread", 100_000)


def result(
    out: Path,
    cell: Cell,
    methods: Mapping[str, tuple[int, list[str]]],
    instrumented: Iterable[str] = (),
    iterations: int = 0,
) -> CellResult:
    """Of a cell that used two seconds of CPU time."""
    folder = "plain" if cell.plain else "truth"
    compiled = {name: {"tier": tier, "inlined": into} for name, (tier, into) in methods.items()}
    file = out / folder / agent.OUT / distortion.COMPILED
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"methods": compiled, "instrumented": sorted(instrumented)}))
    return CellResult(
        cell, 1, folder, 1, [], "clean", "", "", 0, 3.0, 0.0,
        work={"iterations": iterations}, cpu_seconds=2.0,
    )  # fmt: skip


def test_what_instrumentation_changes_is_counted_and_said(tmp_path: Path) -> None:
    plain = {
        "A.a": (4, ["A.b", "A.c", "java.Other"]),
        "A.b": (4, ["A.c"]),
        "A.d": (3, []),
        "java.Other": (4, []),
    }
    here = {"A.a": (4, ["A.b"]), "A.b": (3, ["A.c"]), "A.d": (4, [])}
    truth = result(tmp_path, CELL, here, {"A.a", "A.b", "A.c", "A.d"}, iterations=30)
    beside = result(tmp_path, replace(CELL, plain=True), plain, iterations=40)
    (found,) = distortion.of([truth, beside], tmp_path)
    assert distortion.cells(found)[2:] == ["1 of 2", "1 of 3", "75%"]
    (line,) = distortion.lines([found])
    assert "work same-thread" not in line
    assert "changes what is compiled" in line
    assert "1 of 2 methods, 1 of 3 inlined" in line


def test_what_stays_as_it_was_is_not_said(tmp_path: Path) -> None:
    same = {"A.a": (4, ["A.b"])}
    truth = result(tmp_path, CELL, same, {"A.a", "A.b"})
    beside = result(tmp_path, replace(CELL, plain=True), same)
    (found,) = distortion.of([truth, beside], tmp_path)
    assert not distortion.lines([found])
    assert distortion.cells(found)[-1] == "-", "no work was told"


def test_a_cell_that_left_nothing_is_not_compared(tmp_path: Path) -> None:
    truth = result(tmp_path, CELL, {"A.a": (4, [])}, {"A.a"})
    beside = result(tmp_path, replace(CELL, plain=True), {})
    (tmp_path / "plain" / agent.OUT / distortion.COMPILED).unlink()
    assert distortion.of([truth, beside], tmp_path) == []


@pytest.mark.parametrize("mode", MODES)
def test_each_workload_has_one_plain_cell(mode: str) -> None:
    cells = [
        Cell(workload, walker, mode, 1, gc)
        for workload in "ab"
        for walker in ("asgct", "asgst")
        for gc in ("g1", "z")
    ]
    planned = distortion.with_plain(cells)
    plain = [cell for cell in planned if cell.plain]
    assert [cell for cell in planned if not cell.plain] == cells
    expected = {(w, g) for w in "ab" for g in ("g1", "z")} if mode != UNSTOPPED else set()
    assert {(cell.workload, cell.gc) for cell in plain} == expected
    assert len(plain) == len(expected)
