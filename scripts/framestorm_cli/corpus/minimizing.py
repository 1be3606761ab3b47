"""`framestorm corpus minimize` and `framestorm corpus check`."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from framestorm_cli.base import paths, run_folder
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.coverage import measuring
from framestorm_cli.coverage.measuring import content_name
from framestorm_cli.hotspot import choosing
from framestorm_cli.native import processes, toolchain, walkers
from framestorm_cli.native.toolchain import NATIVE, Toolchain

_ADDS_NOTHING = "adds nothing to what its folder's others reach in its scenario"
# Seeds after known bugs are named after them (corpus/README.md).
_KNOWN_BUG = re.compile(r"(?:jdk|ap|dd)-\d+")


def minimize_command(
    *,
    corpus: tuple[Path, ...],
    into: Path,
    halts: int,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    run_folder.check_new(into)
    # As libFuzzer's -merge=1: the smallest ones first, each is kept that adds something.
    files = sorted(measuring.files_of(corpus), key=lambda file: (file.stat().st_size, file.name))
    tools = toolchain.prepare(jdk or choosing.INSTRUMENTED)
    folder = run_folder.prepare(out, "corpus")
    measured = measuring.measure_saying_so(tools, files, folder, halts, jvm_args)
    kept = [one for one in measured.inputs if one.added]
    into.mkdir(parents=True, exist_ok=True)
    for one in kept:
        shutil.copyfile(one.file, into / content_name(one.file))
    click.echo(
        f"{len(kept)} of {len(files)} inputs reach all {len(measured.reached):,} edges: {paths.shown(into)}"
    )
    return 0


def check_command(
    *,
    corpus: tuple[Path, ...],
    halts: int,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    tools = toolchain.prepare(jdk or choosing.INSTRUMENTED)
    names = [
        "unmutated",
        *walkers.table(tools.program(NATIVE)).names["scenarios"],
    ]
    # By folder: each target has seeds of its own. The unmutated one and the scenarios own go first, then the
    # smallest: the others have to add something to these.
    folders: dict[Path, list[Path]] = {}
    for file in sorted(
        measuring.files_of(corpus),
        key=lambda file: (file.stem not in names, file.stat().st_size, file.name),
    ):
        folders.setdefault(file.parent, []).append(file)
    folder = run_folder.prepare(out, "corpus")
    bad: dict[Path, str] = {}
    for number, files in enumerate(folders.values()):
        illegal = _illegal(tools, files)
        bad.update(illegal)
        legal = [file for file in files if file not in illegal]
        if legal:
            measured = measuring.measure_saying_so(
                tools, legal, folder / str(number), halts, jvm_args
            )
            bad.update(_useless(measured, str(tools.jdk)))
    total = sum(len(files) for files in folders.values())
    kept = [
        file for file, why in bad.items() if why == _ADDS_NOTHING and _KNOWN_BUG.match(file.name)
    ]
    for file in kept:
        del bad[file]
    for file, why in bad.items():
        click.echo(f"{paths.shown(file)}: {why}")
    if kept:
        click.echo(f"{len(kept)} add nothing but are kept for the known bugs they are named after")
    good = total - len(bad) - len(kept)
    click.echo(f"{good} of {total} are legal, reach a walk and add coverage")
    return 1 if bad else 0


def _useless(measured: measuring.Measured, jdk: str) -> dict[Path, str]:
    bad = {}
    for one in measured.inputs:
        if not one.walked:
            bad[one.file] = f"reaches no walk: {one.scenario} has no victim on {jdk}"
        elif not one.edges:
            bad[one.file] = "its walk reaches no code of the walker"
        elif not one.added_in_scenario:
            bad[one.file] = _ADDS_NOTHING
    return bad


def _illegal(tools: Toolchain, files: Sequence[Path]) -> dict[Path, str]:
    program = tools.program(NATIVE)
    bad = {}
    for file in files:
        command = "encode" if file.suffix == ".txt" else "decode"
        try:
            processes.filter_text(program, command, file.read_bytes())
        except FramestormError as error:
            bad[file] = f"is no legal input: {error.message}"
    return bad
