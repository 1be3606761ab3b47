"""`framestorm coverage`, `framestorm corpus minimize` and `framestorm corpus check`."""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from framestorm_cli import fuzzing, native, paths, steps, toolchain
from framestorm_cli.coverage import measuring, places, tables
from framestorm_cli.errors import FramestormError
from framestorm_cli.fuzz_command import new_folder
from framestorm_cli.hotspot import store
from framestorm_cli.toolchain import NATIVE, Toolchain

_SHOWN = 15
_ADDS_NOTHING = "adds nothing to what its folder's others reach in its scenario"
# Seeds after known bugs are named after them (corpus/README.md).
_KNOWN_BUG = re.compile(r"(?:jdk|ap|dd)-\d+")
_INSTRUMENTED = Path("instrumented")
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
    from framestorm_cli.coverage import report

    files = _files(corpus)
    floor = tables.read_floor(check) if check else {}
    tools = toolchain.prepare(jdk or _INSTRUMENTED)
    folder = new_folder(out, "coverage")
    fuzzing.check_room(folder)
    measured = _measure(tools, files, folder, halts, jvm_args)
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
        _write_floor(write_floor, found)
    lines = tables.fallen(found, floor)
    for line in lines:
        click.echo(f"fell below its floor: {line}")
    if check and not lines:
        click.echo(
            f"all {len(floor)} functions of {paths.shown(check)} are at their floor or above"
        )
    return 1 if lines else 0


def minimize_command(
    *,
    corpus: tuple[Path, ...],
    into: Path,
    halts: int,
    out: Path | None,
    jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:
    if into.exists() and any(into.iterdir()):
        raise FramestormError(f"{into} is not empty: name a new folder, nothing is overwritten")
    # As libFuzzer's -merge=1: the smallest ones first, each is kept that adds something.
    files = sorted(_files(corpus), key=lambda file: (file.stat().st_size, file.name))
    tools = toolchain.prepare(jdk or _INSTRUMENTED)
    folder = new_folder(out, "corpus")
    fuzzing.check_room(folder)
    measured = _measure(tools, files, folder, halts, jvm_args)
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
    tools = toolchain.prepare(jdk or _INSTRUMENTED)
    names = ["unmutated", *json.loads(native.query([tools.program(NATIVE), "names"]))["scenarios"]]
    # By folder: each target has seeds of its own. The unmutated one and the scenarios own go first, then the
    # smallest: the others have to add something to these.
    folders: dict[Path, list[Path]] = {}
    for file in sorted(
        _files(corpus), key=lambda file: (file.stem not in names, file.stat().st_size, file.name)
    ):
        folders.setdefault(file.parent, []).append(file)
    folder = new_folder(out, "corpus")
    fuzzing.check_room(folder)
    bad: dict[Path, str] = {}
    for number, files in enumerate(folders.values()):
        illegal = _illegal(tools, files)
        bad.update(illegal)
        legal = [file for file in files if file not in illegal]
        if legal:
            measured = _measure(tools, legal, folder / str(number), halts, jvm_args)
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


def content_name(file: Path) -> str:
    """By content, so that corpora of several machines can be put together."""
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest() + file.suffix


def _files(corpus: Sequence[Path]) -> list[Path]:
    folders = list(corpus) or sorted(path for path in paths.SEEDS.iterdir() if path.is_dir())
    files: list[Path] = []
    for folder in folders:
        if folder.is_file():
            files.append(folder)
            continue
        if not folder.is_dir():
            raise FramestormError(f"{folder} does not exist: give a corpus folder or an artifact")
        found = sorted(path for path in folder.rglob("*") if path.suffix in (".txt", ".bin"))
        if not found:
            raise FramestormError(f"{folder} holds no input (*.txt, *.bin)")
        files += found
    return files


def _measure(
    tools: Toolchain, files: Sequence[Path], folder: Path, halts: int, jvm_args: Sequence[str]
) -> measuring.Measured:
    steps.say(f"walking {len(files):,} inputs at {halts} halts each")
    return measuring.measure(
        tools,
        files,
        folder,
        halts=halts,
        jvm_args=jvm_args,
        watch=lambda done: steps.say(f"{done:,} of {len(files):,} walked"),
    )


def _illegal(tools: Toolchain, files: Sequence[Path]) -> dict[Path, str]:
    program = tools.program(NATIVE)
    bad = {}
    for file in files:
        command = "encode" if file.suffix == ".txt" else "decode"
        try:
            native.filter_text(program, command, file.read_bytes())
        except FramestormError as error:
            bad[file] = f"is no legal input: {error.message}"
    return bad


def _write_floor(path: Path, found: tables.Tables) -> None:
    floor = tables.floor_of(found)
    path.write_text(json.dumps({"functions": floor}, indent=1) + "\n", encoding="utf-8")
    click.echo(f"floor of {len(floor)} functions written to {paths.shown(path)}")


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
