"""What instrumentation for ground truth changes of a program: cells with it beside plain ones."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from framestorm_cli.base import files
from framestorm_cli.reports.schema import said
from framestorm_cli.stress import agent
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.cells import Cell
from framestorm_cli.stress.proportion import Proportion

COMPILED = "compiled.json"  # the agent's
C2 = 4  # its tier
# Less of the plain run's compiled code than this is another program's. Two plain runs keep as much.
LEAST_KEPT = 0.9
HEADS = ("workload", "sampled", "compiled by C2, too", "inlined by it, too", "work per CPU second")


class Distortion(msgspec.Struct, forbid_unknown_fields=True):
    workload: str
    sampled: Annotated[str, said("The cell's walkers, mode and so on.")]
    compiled: Annotated[
        Proportion | None,
        said(
            "Of the instrumented methods that C2 compiles in the plain cell: those it compiles here."
        ),
    ]
    inlined: Annotated[
        Proportion | None,
        said(
            "Of their pairs of a compiled and an inlined method in the plain cell: those that are here."
        ),
    ]
    work: Annotated[
        float | None, said("Iterations per CPU second of the process, over the plain cell's.")
    ]

    @property
    def is_other_code(self) -> bool:
        shares = (one.hits / one.trials for one in (self.compiled, self.inlined) if one is not None)
        return any(share < LEAST_KEPT for share in shares)


class _Method(msgspec.Struct):
    tier: int
    inlined: list[str]


class _Compiled(msgspec.Struct):
    methods: dict[str, _Method]
    instrumented: list[str]


def with_plain(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells; behind the first of each workload, collector and JIT setting that is held against
    ground truth, the same one without it."""
    found: list[Cell] = []
    seen: set[tuple[str, str, str]] = set()
    for cell in cells:
        found.append(cell)
        key = (cell.workload, cell.gc, cell.jit)
        if key not in seen and cell.stands_still:
            seen.add(key)
            found.append(replace(cell, plain=True))
    return tuple(found)


def of(results: Sequence[CellResult], out: Path) -> list[Distortion]:
    """Of each cell that has a plain one beside it, where both ended by themselves."""
    plain = {one.cell: one for one in results if one.cell.plain}
    found = []
    for one in results:
        beside = None if one.cell.plain else plain.get(replace(one.cell, plain=True))
        if beside is not None and (made := _compare(one, beside, out)) is not None:
            found.append(made)
    return found


def _compare(one: CellResult, beside: CellResult, out: Path) -> Distortion | None:
    here, there = _read(one, out), _read(beside, out)
    if here is None or there is None:
        return None
    instrumented = set(here.instrumented)
    methods, pairs = _made_by_c2(there, instrumented), _pairs(there, instrumented)
    rates = [_rate(one), _rate(beside)]
    return Distortion(
        workload=one.cell.workload,
        sampled=one.cell.settings,
        compiled=_kept(methods, _made_by_c2(here, instrumented)),
        inlined=_kept(pairs, _pairs(here, instrumented)),
        work=rates[0] / rates[1] if rates[0] and rates[1] else None,
    )


def _read(result: CellResult, out: Path) -> _Compiled | None:
    text = files.read_text(out / result.folder / agent.OUT / COMPILED)
    return msgspec.json.decode(text, type=_Compiled) if text else None


def _made_by_c2(compiled: _Compiled, instrumented: set[str]) -> set[str]:
    return {name for name, one in compiled.methods.items() if one.tier == C2} & instrumented


def _pairs(compiled: _Compiled, instrumented: set[str]) -> set[tuple[str, str]]:
    """Instrumented methods in code of such ones."""
    return {
        (name, inlined)
        for name in _made_by_c2(compiled, instrumented)
        for inlined in instrumented.intersection(compiled.methods[name].inlined)
    }


def _kept(plain: Set[Any], here: Set[Any]) -> Proportion | None:
    return Proportion.of(len(plain & here), len(plain)) if plain else None


def _rate(result: CellResult) -> float:
    done = float(result.work.get("iterations") or 0)
    return done / result.cpu_seconds if result.cpu_seconds else 0.0


def cells(one: Distortion) -> list[str]:
    """A line of the table that HEADS is the head of."""
    shares = [
        "-" if share is None else f"{share.hits} of {share.trials}"
        for share in (one.compiled, one.inlined)
    ]
    return [one.workload, one.sampled, *shares, "-" if one.work is None else f"{one.work:.0%}"]


def lines(found: Sequence[Distortion]) -> list[str]:
    """For the summary that a person reads: of the cells whose code is another one."""
    return [
        f"truth, {one.workload} {one.sampled}: instrumentation changes what is compiled. Of the plain "
        f"cell's code by C2 there are {methods} methods, {pairs} inlined ones; work per CPU second {work}"
        for one in found
        if one.is_other_code
        for _, _, methods, pairs, work in [cells(one)]
    ]
