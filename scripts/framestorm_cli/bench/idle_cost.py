"""`framestorm idle-cost`: what the additions cost a JVM in which nobody profiles."""

import statistics
from pathlib import Path

import click
from rich import box

from framestorm_cli.base import files, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.live import results_console, results_table
from framestorm_cli.detect import libraries
from framestorm_cli.experiments import shared

DATA = "idle-cost.json"
_PROGRAM = Path(__file__).with_name("IdleCost.java")
WITH, WITHOUT = "with", "without"
_PATIENCE = 600.0  # seconds of one JVM

Round = dict[str, dict[str, float]]


def idle_cost_command(
    *, variant: str, rounds: int, scale: int, jvm_args: tuple[str, ...], out: Path | None
) -> int:
    """Builds the JDK of the variant without the additions' sources when there is none."""
    folder = run_folder.prepare(out, "idle-cost")
    homes = {WITH: libraries.control(variant), WITHOUT: libraries.without_additions(variant)}
    measured = measure(homes, folder, rounds, (*jvm_args, str(scale)))
    figures = figures_of(measured)
    record = {**shared.header(), "variant": variant, "rounds": measured, "figures": figures}
    files.write_json(folder / DATA, record)
    show(figures, len(measured))
    click.echo(paths.shown(folder / DATA))
    return 0


def measure(
    homes: dict[str, Path], folder: Path, rounds: int, arguments: tuple[str, ...]
) -> list[Round]:
    """One JVM at a time, each of the homes in each round, in turn first. Raises FramestormError."""
    *jvm_args, scale = arguments
    first = next(iter(homes.values()))
    _run([str(first / "bin" / "javac"), "-d", str(folder), str(_PROGRAM)])
    measured = []
    for number in range(rounds):
        steps.say(f"round {number + 1} of {rounds}")
        order = list(homes) if number % 2 == 0 else list(reversed(homes))
        made: Round = {}
        for name in order:
            java = str(homes[name] / "bin" / "java")
            text = _run([java, *jvm_args, "-cp", str(folder), _PROGRAM.stem, scale])
            made[name] = {what: float(ns) for what, ns in map(str.split, text.splitlines())}
        measured.append(made)
    return measured


def figures_of(rounds: list[Round]) -> dict[str, dict[str, float]]:
    """By what was done: the medians of both, and of their ratios of a round, with the quartiles. Raises
    FramestormError where one took no time that was counted."""
    figures = {}
    for what in rounds[0][WITH]:
        if not all(one[name][what] > 0 for one in rounds for name in (WITH, WITHOUT)):
            raise FramestormError(
                f"{what} took less than the 10 ms that processor time is counted in: give a larger --scale"
            )
        ratios = sorted(one[WITH][what] / one[WITHOUT][what] for one in rounds)
        figures[what] = {
            "with_ns": statistics.median(one[WITH][what] for one in rounds),
            "without_ns": statistics.median(one[WITHOUT][what] for one in rounds),
            "ratio": statistics.median(ratios),
            "low": ratios[len(ratios) // 4],
            "high": ratios[-1 - len(ratios) // 4],
        }
    return figures


def show(figures: dict[str, dict[str, float]], rounds: int) -> None:
    """The table."""
    titles = ("one", "with, us", "without, us", "ratio", "quartiles")
    table = results_table(titles, titles[:1], box=box.SIMPLE)
    for what, of in figures.items():
        table.add_row(
            what,
            f"{of['with_ns'] / 1000:,.2f}",
            f"{of['without_ns'] / 1000:,.2f}",
            f"{of['ratio']:.3f}",
            f"{of['low']:.3f} to {of['high']:.3f}",
        )
    click.echo(f"the additions while nobody profiles, {rounds} rounds")
    results_console().print(table)


def _run(command: list[str]) -> str:
    done = steps.captured(command, timeout=_PATIENCE)
    if done.returncode != 0:
        raise FramestormError(f"`{' '.join(command)}` failed: {done.stderr or done.stdout}")
    return done.stdout
