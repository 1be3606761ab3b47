"""`framestorm coverage`, `framestorm corpus minimize` and `framestorm corpus check`."""

import json
from pathlib import Path

import click

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.coverage import measuring, places, tables
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import store
from framestorm_cli.native import toolchain

_SHOWN = 15
FLOOR = paths.CHECKOUT / "corpus" / "coverage-floor.json"


def coverage_command(
    *,
    corpus: tuple[Path, ...],
    halts: int,
    check: Path | None,
    write_floor: Path | None,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    from framestorm_cli.coverage import report  # noqa: PLC0415 (jinja2 takes long to load)

    files = measuring.files_of(corpus)
    floor = tables.read_floor(check) if check else {}
    tools = toolchain.prepare(jdk or choosing.INSTRUMENTED)
    folder = run_folder.prepare(out, "coverage")
    measured = measuring.measure_saying_so(tools, files, folder, halts, jvm_args)
    steps.say("reading the line tables of libjvm")
    found = tables.tables_of(
        measured,
        places.places_of(measured.libjvm, [edge.pc for edge in measured.edges]),
        tables.walker_stems(),
    )
    result = folder / "coverage.json"
    result.write_text(json.dumps(tables.as_json(measured, found)) + "\n", encoding="utf-8")
    record = store.read(tools.jdk.home)
    sources = store.folder() / "trees" / record.tree / "source" if record else None
    title = f"Coverage of the walkers, JDK {tools.jdk.version}"
    index = report.write(measured, found, folder, title, sources)
    _say_what_was_found(measured, found)
    click.echo(f"{paths.shown(index)}\n{paths.shown(result)}")
    if write_floor:
        new = tables.floor_of(found)
        write_floor.write_text(json.dumps({"functions": new}, indent=1) + "\n", encoding="utf-8")
        click.echo(f"floor of {len(new)} functions written to {paths.shown(write_floor)}")
    lines = tables.fallen(found, floor)
    for line in lines:
        click.echo(f"fell below its floor: {line}")
    if check and not lines:
        click.echo(
            f"all {len(floor)} functions of {paths.shown(check)} are at their floor or above"
        )
    return 1 if lines else 0


def _say_what_was_found(measured: measuring.Measured, found: tables.Tables) -> None:
    walked = sum(one.walked for one in measured.inputs)
    repeatable = measured.repeatability
    click.echo(
        f"{walked:,} of {len(measured.inputs):,} inputs walked; "
        f"{len(measured.reached):,} of {len(measured.edges):,} edges reached"
        + ("" if repeatable is None else f"; {repeatable:.2%} of the counters repeat")
    )
    missed = found.never_reached
    click.echo(
        f"{len(found.functions) - len(missed):,} of {len(found.functions):,} functions reached; "
        "the largest that are not:"
    )
    for function in sorted(missed, key=lambda one: -len(one.edges))[:_SHOWN]:
        click.echo(
            f"  {function.name}  ({function.source}:{function.line}, {len(function.edges)} edges)"
        )
