"""`framestorm corpus merge` and `corpus import`: corpora of several machines as one.

    DIR/<target>/<sha1>.bin   inputs of a target; DIR/<sha1>.bin those of no target in particular
    DIR/crashes/<sha1>.bin    artifacts, with text and sidecar; DIR/crashes/<id>/ as in corpus/crashes

Names are by content and nothing depends on the order of the folders, so that the same corpora give the
same result anywhere. Only inputs are pruned, never an artifact.
"""

import filecmp
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from framestorm_cli.base import paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import whole_folder
from framestorm_cli.corpus import stepped as stepping
from framestorm_cli.coverage import measuring
from framestorm_cli.coverage.measuring import content_name
from framestorm_cli.fuzz.found_inputs import SUFFIXES
from framestorm_cli.hotspot import choosing
from framestorm_cli.native import toolchain
from framestorm_cli.replay import replaying

CRASHES = "crashes"
# Folders whose files are artifacts, whatever stands beside them: of a run, of the stress agent.
_ARTIFACTS = frozenset({"artifacts", "samples", "buckets", CRASHES})
_NUMBERED = re.compile(r"^\d+-")


@dataclass
class Gathered:
    """`inputs`: by target ("" for none in particular) and name. `artifacts`: by name. `described`: crash
    folders by id."""

    inputs: dict[str, dict[str, Path]] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)
    described: dict[str, Path] = field(default_factory=dict)
    files: int = 0  # that were looked at

    @property
    def distinct(self) -> int:
        return sum(map(len, self.inputs.values()))


def gather(folders: Sequence[Path]) -> Gathered:
    """Everything below the folders, each content once. Raises FramestormError for one with nothing."""
    found = Gathered()
    for folder in folders:
        if not folder.is_dir():
            raise FramestormError(f"{folder} is not a folder")
        before = found.files
        for file in _files(folder):
            found.files += 1
            _take(file, folder, found)
        if found.files == before:
            raise FramestormError(f"{folder} holds no input and no artifact (*.bin, *.txt)")
    return found


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and file.is_file():
            # The text form of an artifact goes with it.
            if file.suffix == ".txt" and file.with_suffix(".bin").exists():
                continue
            if file.suffix == ".txt" and not _is_input_text(file):
                continue
            yield file


def _is_input_text(file: Path) -> bool:
    with file.open("rb") as text:
        return text.read(16) == b"framestorm-input"


def _take(file: Path, folder: Path, found: Gathered) -> None:
    inside = file.relative_to(folder).parts[:-1]
    if file.with_name("expected.json").exists():
        _describe(file.parent, found)
    elif file.suffix == ".bin" and (
        replaying.sidecar(file).exists()
        or _ARTIFACTS & {*inside, folder.name}
        or _set_aside((folder.name, *inside))
    ):
        _keep_artifact(file, found)
    else:
        target = _target((folder.name, *inside))
        found.inputs.setdefault(target, {}).setdefault(content_name(file), file)


def _keep_artifact(file: Path, found: Gathered) -> None:
    """Of two with the same content, one that says what it shows."""
    kept = found.artifacts.setdefault(content_name(file), file)
    if not replaying.sidecar(kept).exists() and replaying.sidecar(file).exists():
        found.artifacts[content_name(file)] = file


def _target(names: Sequence[str]) -> str:
    """By the innermost folder that is named after one: fuzz_stack, work/003-fuzz_stack."""
    for name in reversed(names):
        bare = _NUMBERED.sub("", name)
        if bare in paths.TARGETS:
            return bare
    return ""


def _set_aside(names: Sequence[str]) -> bool:
    """Inputs that a process died with before its first walk: kept, and never started from."""
    return any("-set-aside-" in name for name in names)


def _describe(folder: Path, found: Gathered) -> None:
    known = found.described.setdefault(folder.name, folder)
    same = filecmp.cmp(known / "input.bin", folder / "input.bin", shallow=False)
    if known != folder and not same:
        # Another crash of that name.
        content = content_name(folder / "input.bin").partition(".")[0]
        found.described[f"{folder.name}-{content[:12]}"] = folder


def merge_command(
    *, folders: tuple[Path, ...], into: Path, prune: bool, halts: int, jdk: Path | None,
    jvm_args: tuple[str, ...],
) -> int:  # fmt: skip
    """Exit code 0. Raises FramestormError when `into` holds something, or a folder holds nothing."""
    run_folder.check_new(into)
    found = gather(folders)
    dropped: set[Path] = set()
    if prune and found.distinct:
        tools = toolchain.prepare(jdk or choosing.INSTRUMENTED)
        with tempfile.TemporaryDirectory(prefix="framestorm-") as scratch:
            run_folder.check_room(Path(scratch))
            for target, inputs in sorted(found.inputs.items()):
                folder = Path(scratch) / (target or "any")
                dropped |= _useless(tools, list(inputs.values()), folder, halts, jvm_args)
    _write(found, into, dropped)
    kept = found.distinct - len(dropped)
    how = "reach together what all of them reach" if prune else "are distinct"
    click.echo(
        f"{kept:,} of {found.files:,} files {how}; {len(found.artifacts) + len(found.described):,} crash "
        f"artifacts, all kept: {paths.shown(into)}"
    )
    return 0


def _useless(
    tools: toolchain.Toolchain, files: list[Path], out: Path, halts: int, jvm_args: tuple[str, ...]
) -> set[Path]:
    """Inputs that add nothing to smaller ones. One that this JDK cannot walk is for another: it stays."""
    files.sort(key=lambda file: (file.stat().st_size, content_name(file)))
    steps.say(f"walking {len(files):,} inputs at {halts} halts each")
    measured = measuring.measure(tools, files, out, halts=halts, jvm_args=jvm_args)
    return {one.file for one in measured.inputs if one.walked and not one.added}


def import_command(*, runs: tuple[Path, ...], into: Path, most: int) -> int:
    """What runs of `stress` and `step` kept, as a corpus: unmutated samples, and halts at which a walker
    was not right, are inputs; findings of stress are artifacts."""
    run_folder.check_new(into)
    found = Gathered()
    for run in runs:
        for file in sorted(run.rglob("seeds/*.bin")):
            _add_input(file, found)
        # Those in buckets are copies of some that the agents kept, with the bucket's signature beside.
        for pattern in ("samples/*.bin", "buckets/*/sample-*.bin"):
            for file in sorted(run.rglob(pattern)):
                found.files += 1
                _keep_artifact(file, found)
    stepped = sorted(file for run in runs for file in run.rglob(stepping.STEP_JSON))
    with tempfile.TemporaryDirectory(prefix="framestorm-") as scratch:
        for file in stepping.write_inputs(stepped, most, Path(scratch)):
            _add_input(file, found)
        if not found.files and not stepped:
            raise FramestormError(
                f"{', '.join(map(str, runs))}: no seeds/*.bin, no samples/*.bin and no {stepping.STEP_JSON} "
                "below: is it the folder of a `framestorm stress` or `step` run?"
            )
        _write(found, into, set())
    click.echo(
        f"{found.distinct:,} inputs and {len(found.artifacts):,} artifacts of "
        f"{found.files:,} files: {paths.shown(into)} (`fuzz --corpus` starts from it)"
    )
    return 0


def _add_input(file: Path, found: Gathered) -> None:
    found.files += 1
    found.inputs.setdefault("", {}).setdefault(content_name(file), file)


def _write(found: Gathered, into: Path, dropped: set[Path]) -> None:
    """Into a folder beside it first: a merge that is interrupted leaves no half corpus."""
    try:
        with whole_folder(into) as scratch:
            for target, inputs in found.inputs.items():
                for name, file in inputs.items():
                    if file not in dropped:
                        _copy(file, scratch / target / name)
            for name, file in found.artifacts.items():
                target_path = scratch / CRASHES / name
                _copy(file, target_path)
                if replaying.sidecar(file).exists():
                    _copy(replaying.sidecar(file), replaying.sidecar(target_path))
                if file.with_suffix(".txt").exists():
                    _copy(file.with_suffix(".txt"), target_path.with_suffix(".txt"))
            for name, folder in found.described.items():
                shutil.copytree(folder, scratch / CRASHES / name)
            scratch.mkdir(parents=True, exist_ok=True)
            if into.exists():
                into.rmdir()
    except OSError as error:
        raise FramestormError(f"cannot write {into}: {error.strerror or error}") from error


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
