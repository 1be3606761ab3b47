"""`framestorm detect`: the runs, then what they come to."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from rich.table import Table

from framestorm_cli.base import files, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.live import results_console
from framestorm_cli.base.machine import machine
from framestorm_cli.detect import catalogue, equivalents, libraries, measuring, subjects, surveying
from framestorm_cli.detect.catalogue import Bug
from framestorm_cli.detect.contestants import CONTESTANTS
from framestorm_cli.detect.measuring import Measured
from framestorm_cli.detect.mutation import Mutant
from framestorm_cli.detect.subjects import Subject
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.native.names import known

_DEFAULT = ("libfuzzer",)
_MUTANTS = "mutants.json"  # those that are asked for, in --out


def detect_command(
    *,
    names: tuple[str, ...],
    listing: bool,
    contestants: tuple[str, ...],
    seconds: float,
    runs: int,
    replays: int,
    seed: int,
    jobs: int | None,
    out: Path | None,
    again: bool,
    mutants: bool,
    statements: bool,
    whole: bool,
) -> int:
    """Returns the exit code: 0 every triggered bug was found, 1 not, 2 a run did not look."""
    if listing and not mutants:
        return _list(catalogue.chosen(names))
    if statements and not mutants:
        raise FramestormError("--statements goes with --mutants")
    known("contestant", contestants, list(CONTESTANTS))
    contestants = tuple(dict.fromkeys(contestants)) or _DEFAULT
    if again and out is None:
        raise FramestormError("--again needs --out: the folder of the runs")
    folder = (
        out.resolve()
        if out and (out / measuring.DATA).exists()
        else run_folder.new_folder(out, "detect")
    )
    run_folder.check_room(folder)
    if not again:
        if mutants:
            _check_mutants(contestants, runs, whole=whole)
            chosen = _mutants(names, contestants, folder, statements=statements)
        else:
            chosen = [subjects.of_bug(bug) for bug in catalogue.chosen(names)]
        _prepare(chosen, contestants)
        planned = list(
            surveying.plan(chosen, contestants, seed, seconds, folder)
            if mutants
            else measuring.plan(chosen, contestants, runs, seed, seconds, replays, folder, whole)
        )
        with steps.termination_interrupts():
            measuring.make(planned, folder, jobs or os.cpu_count() or 1)
    return _conclude(measuring.read(folder), folder)


def _mutants(
    names: tuple[str, ...], contestants: Sequence[str], folder: Path, *, statements: bool
) -> list[Subject]:
    """Those of these names, or all. Raises FramestormError for a name that is none."""
    variants = dict.fromkeys(CONTESTANTS[name].variant for name in contestants)
    homes = [libraries.mutated(variant, statements=statements) for variant in variants]
    lists = [libraries.read_mutants(home) for home in homes]
    if any(one != lists[0] for one in lists):
        raise FramestormError(
            f"the builds {', '.join(variants)} have different mutants: survey each in a folder of its own"
        )
    every = {one.id: one for one in lists[0]}
    known("mutant", names, list(every))
    for file, function, was, becomes in equivalents.strangers(list(every.values())):
        steps.say(f"{equivalents.FILE.name}: no mutant of {file}, {function}: {was} -> {becomes}")
    chosen = [every[name] for name in names] if names else list(every.values())
    _check_numbers(folder, every)
    files.write_bytes(folder / _MUTANTS, msgspec.json.encode(chosen))
    table = walkers.table(toolchain.native_program())
    return [subjects.of_mutant(one, table) for one in chosen]


def _check_numbers(folder: Path, every: Mapping[str, Mutant]) -> None:
    """Runs know mutants by their numbers. Raises FramestormError where the folder's have those of others."""
    if not (folder / _MUTANTS).exists():
        return
    for before in msgspec.json.decode((folder / _MUTANTS).read_bytes(), type=list[Mutant]):
        now = every.get(before.id)
        if now is None or equivalents.name(now) != equivalents.name(before):
            raise FramestormError(f"{folder} has runs of other mutants: choose another --out")


def _check_mutants(contestants: Sequence[str], runs: int, *, whole: bool) -> None:
    if runs > 1 or whole:
        raise FramestormError("--mutants goes with neither --runs nor --whole: one kill is enough")
    if no_parts := [name for name in contestants if not CONTESTANTS[name].parts]:
        able = ", ".join(one.name for one in CONTESTANTS.values() if one.parts)
        raise FramestormError(
            f"--mutants goes with contestants that can try them, {able}; not with {', '.join(no_parts)}"
        )


def _prepare(chosen: Sequence[Subject], contestants: Sequence[str]) -> None:
    """All that is built, before the first run: nothing compiles beside one."""
    for variant in dict.fromkeys(CONTESTANTS[name].variant for name in contestants):
        for one in subjects.controls(chosen):
            toolchain.prepare(one.home(variant))
        for subject in chosen:
            subject.home(variant)


def _list(bugs: Sequence[Bug]) -> int:
    console = results_console()
    table = Table(box=None, pad_edge=False)
    for title in ("bug", "year", "class", "walkers", "what"):
        table.add_column(title, overflow="fold")
    for bug in bugs:
        table.add_row(bug.id, str(bug.year), bug.kind, ", ".join(bug.walkers), bug.title)
    console.print(table)
    console.print(f"\n{len(bugs)} planted bugs. Contestants:")
    for one in CONTESTANTS.values():
        console.print(f"  {one.name}: {one.what}", highlight=False)
    return 0


def _conclude(runs: Sequence[Measured], folder: Path) -> int:
    from framestorm_cli.detect import page, tables  # noqa: PLC0415 (scipy and matplotlib take long to load)

    if not runs:
        raise FramestormError(f"{folder} has no run")
    if (folder / _MUTANTS).exists():
        return _conclude_mutants(runs, folder)
    text = tables.markdown(runs, machine())
    files.write_bytes(folder / "detect.md", text.encode())
    click.echo(text)
    if tables.counted(runs):
        page.write(runs, machine(), folder)
        click.echo(paths.shown(folder / page.PAGE))
    click.echo(paths.shown(folder / measuring.DATA))
    failed = [one for one in runs if one.problem]
    for one in failed:
        FramestormError(f"{one.bug} by {one.contestant} does not count: {one.problem}").show()
    if failed:
        return 2
    return 1 if tables.missed(runs) else 0


def _conclude_mutants(runs: Sequence[Measured], folder: Path) -> int:
    from framestorm_cli.detect import mutant_tables  # noqa: PLC0415 (as above)

    chosen = msgspec.json.decode((folder / _MUTANTS).read_bytes(), type=list[Mutant])
    text = mutant_tables.markdown(runs, chosen)
    files.write_bytes(folder / "mutants.md", text.encode())
    click.echo(text)
    click.echo(paths.shown(folder / measuring.DATA))
    failed = [one for one in runs if one.problem]
    for one in failed:
        FramestormError(
            f"{one.contestant} with {', '.join(one.parts)} did not look: {one.problem}"
        ).show()
    if failed:
        return 2
    survived = mutant_tables.SURVIVED in mutant_tables.outcomes(runs, chosen).values()
    return 1 if survived else 0
