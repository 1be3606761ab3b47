"""Walks a corpus in an instrumented JVM and adds up what each input and each scenario reached."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import decode
from framestorm_cli.native import processes
from framestorm_cli.native.toolchain import NATIVE, Toolchain

# A walk can end its process (a lock held, HotSpot's error reporting); the others go on in a new one.
_MOST_PROCESSES = 60


@dataclass
class Edge:
    pc: int  # from libjvm's load address
    entry: bool  # of a function


@dataclass
class Input:
    file: Path
    scenario: str
    walked: bool = False
    edges: int = 0
    added: int = 0  # features (edge, power of two of its count) that no input before it had
    added_in_scenario: int = 0  # ... no input of its scenario
    compared: int = 0  # counters that one of two walks of the input left nonzero
    identical: int = 0


@dataclass
class _Answer:
    """coverage.json of one process."""

    edges: list[Edge]
    scenarios: dict[str, set[int]]
    inputs: list[Input]
    not_reusable: bool


@dataclass
class Measured:
    libjvm: Path
    edges: list[Edge] = field(default_factory=list)
    scenarios: dict[str, set[int]] = field(default_factory=dict)  # indices of edges
    inputs: list[Input] = field(default_factory=list)

    @property
    def reached(self) -> set[int]:
        return set().union(*self.scenarios.values()) if self.scenarios else set()

    @property
    def repeatability(self) -> float | None:
        """Share of counters that were the same when an input was walked twice."""
        compared = sum(one.compared for one in self.inputs)
        return sum(one.identical for one in self.inputs) / compared if compared else None


def measure(
    tools: Toolchain,
    files: Sequence[Path],
    out: Path,
    *,
    halts: int,
    jvm_args: Sequence[str] = (),
    watch: Callable[[int], None] = lambda _: None,
) -> Measured:
    """Walks the files in their order. `watch` is told how many are done after each process.

    Raises FramestormError when the JVM has no counters, or a process dies.
    """
    measured = Measured(tools.jdk.libjvm)
    left = list(files)
    for number in range(_MOST_PROCESSES):
        folder = out / "work" / f"{number:03d}"
        answer = _one_process(tools, left, folder, halts, jvm_args)
        _take_in(measured, answer)
        done = {one.file for one in measured.inputs if one.walked}
        still = [file for file in left if file not in done]
        watch(len(files) - len(still))
        if not answer.not_reusable or len(still) == len(left):
            measured.inputs += [one for one in answer.inputs if not one.walked]
            return measured
        left = still
    raise FramestormError(
        f"{_MOST_PROCESSES} processes ended after a walk each; see {out / 'work'}"
    )


def _one_process(
    tools: Toolchain, files: Sequence[Path], folder: Path, halts: int, jvm_args: Sequence[str]
) -> _Answer:
    folder.mkdir(parents=True)
    listing = folder / "inputs.txt"
    listing.write_text("".join(f"{file.resolve()}\n" for file in files), encoding="utf-8")
    command = [str(tools.program(NATIVE)), "coverage"]
    command += processes.jvm_arguments(tools, folder, jvm_args)
    command += ["--list", str(listing.resolve()), "--halts", str(halts)]
    process = processes.start(command, folder.resolve())
    try:
        code = process.wait()
    finally:
        processes.end(process)
    log = folder / "log.txt"
    if code not in (0, processes.EXIT_NOT_REUSABLE):
        words = processes.own_words(log) or f"see {log}"
        how = processes.how_ended(code)
        raise FramestormError(
            words if code == processes.EXIT_SETUP else f"measuring coverage died ({how}): {words}"
        )
    return decode((folder / "coverage.json").read_bytes(), _Answer)


def _take_in(measured: Measured, answer: _Answer) -> None:
    if measured.edges and measured.edges != answer.edges:
        raise FramestormError(f"{measured.libjvm} changed while its coverage was measured")
    measured.edges = answer.edges
    for scenario, reached in answer.scenarios.items():
        measured.scenarios.setdefault(scenario, set()).update(reached)
    measured.inputs += [one for one in answer.inputs if one.walked]


def content_name(file: Path) -> str:
    """By content, so that corpora of several machines can be put together."""
    return hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest() + file.suffix


def files_of(corpus: Sequence[Path]) -> list[Path]:
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


def measure_saying_so(
    tools: Toolchain, files: Sequence[Path], folder: Path, halts: int, jvm_args: Sequence[str]
) -> Measured:
    steps.say(f"walking {len(files):,} inputs at {halts} halts each")
    return measure(
        tools,
        files,
        folder,
        halts=halts,
        jvm_args=jvm_args,
        watch=lambda done: steps.say(f"{done:,} of {len(files):,} walked"),
    )
