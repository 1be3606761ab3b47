"""`framestorm evaluate`."""

import shutil
import time
from pathlib import Path
from typing import Any

import click

from framestorm_cli.base import files, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.experiments import DEFAULT_INTERVALS, evaluate_runs, evaluate_table, shared
from framestorm_cli.experiments.evaluate_runs import Program, Settings
from framestorm_cli.experiments.measured import NONE, Measured, Row, rows
from framestorm_cli.stress import planning, tools, truth, units, workloads
from framestorm_cli.stress.plan import cores

DATA, PAGE = "evaluation.json", "evaluation.md"


def evaluate_command(
    *,
    busy: str,
    parallel: str,
    intervals: tuple[str, ...],
    repetitions: int,
    seconds: float,
    walker: str,
    walker_plugin: str | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
    renaissance: Path | None,
    seed: int | None,
    out: Path | None,
    again: Path | None,
    docs: bool,
) -> int:
    """Returns 0, or 2 when it was interrupted or a condition has no run that did its work."""
    if again is not None:
        return _conclude(*shared.read(again, DATA, Measured), (out or again.parent).resolve(), docs)
    folder = run_folder.new_folder(out, "evaluate")
    chosen = [units.interval_ns(text) for text in intervals or DEFAULT_INTERVALS]
    found = tools.prepare(jdk)
    settings = Settings(
        found,
        folder,
        walker,
        jvm_args,
        seconds,
        planning.check_walkers([walker], walker_plugin, found),
        truth.build(found.jdk),
    )
    run_folder.check_room(folder)
    programs = [
        evaluate_runs.calibrated(Program(workload, role, threads), settings)
        for role, name, threads in (("busy", busy, 1), ("parallel", parallel, cores()))
        for workload in workloads.resolve([name], found.built_in, found.jdk, renaissance).values()
    ]
    first = seed if seed is not None else int(time.time())
    began = time.monotonic()
    data: dict[str, Any] = {
        **shared.header(),
        "jdk": {"version": found.jdk.version, "libjvm_build_id": found.build_id},
        "walker": walker,
        "repetitions": repetitions,
        "seconds": seconds,
        "seed": first,
        "took": 0.0,
        "programs": [
            {
                "role": one.role,
                "name": one.name,
                "threads": one.threads,
                "iterations": one.iterations,
            }
            for one in programs
        ],
    }

    def keep(measured: list[Measured]) -> None:
        data["took"] = round(time.monotonic() - began, 1)
        _write(folder, data, measured)

    planned = evaluate_runs.plan(programs, chosen, repetitions, first)
    measured, interrupted = evaluate_runs.measure(planned, settings, keep)
    if not measured:
        raise FramestormError("interrupted before the first run had ended")
    code = _conclude(data, measured, folder, docs=docs and not interrupted)
    if interrupted:
        FramestormError(f"interrupted: {len(measured)} of {len(planned)} runs only").show()
        return 2
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return code


def _write(folder: Path, data: dict[str, Any], runs: list[Measured]) -> None:
    files.write_json(folder / DATA, {**data, "runs": runs})


def _conclude(data: dict[str, Any], runs: list[Measured], folder: Path, docs: bool) -> int:
    """Table, page and picture; the exit code."""
    from framestorm_cli.experiments import evaluate_plot  # noqa: PLC0415 (matplotlib takes long to load)

    folder.mkdir(parents=True, exist_ok=True)
    made = rows(runs)
    _write(folder, data, runs)
    files.write_text(folder / PAGE, evaluate_table.page(made, data))
    title = f"JDK {data['jdk']['version']}, {data['walker']}, {data['machine']['cores']} cores"
    evaluate_plot.draw(made, folder / evaluate_table.PICTURE, title)
    click.echo(evaluate_table.figures(made))
    for name in (DATA, PAGE, evaluate_table.PICTURE):
        click.echo(paths.shown(folder / name))
    if docs:
        stem = paths.CHECKOUT / "docs" / "measurements" / evaluate_table.docs_stem(data)
        page, picture = stem.with_suffix(".md"), stem.with_suffix(".png")
        files.write_text(page, evaluate_table.page(made, data, picture.name))
        shutil.copyfile(folder / evaluate_table.PICTURE, picture)
        steps.say(f"{paths.shown(page)} and {paths.shown(picture)} are written")
    problems = [_problem(row) for row in made if not row.whole]
    for problem in problems:
        FramestormError(problem).show()
    return 2 if problems else 0


def _problem(row: Row) -> str:
    at = f" {units.interval_text(row.interval_ns)}" if row.condition != NONE else ""
    why = ", ".join(sorted({run.failed for run in row.runs}))
    return f"no run of {row.workload} with {row.condition}{at} did its work: {why}"
