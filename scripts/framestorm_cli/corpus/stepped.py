"""What `step` leaves for fuzzing: inputs that halt where a walker was not right."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from framestorm_cli.step import results
from framestorm_cli.step.results import Miss

STEP_JSON = "step.json"


def write_inputs(runs: Sequence[Path], most: int, into: Path) -> list[Path]:
    """Text files, one for each instruction of any of the runs (step.json), at most so many: of each walker,
    verdict, clause and section in turn. The same files for the same runs. Raises FramestormError."""
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for run in runs:
        for section, place, miss in _misses(run):
            group = (miss.walker, miss.verdict, miss.clause, section)
            groups.setdefault(group, {}).setdefault(place, miss.input)
    in_turn = zip_longest(*(groups[name].items() for name in sorted(groups)))
    chosen: dict[str, str] = {}
    for one in chain.from_iterable(in_turn):
        if one is not None and len(chosen) < most:
            chosen.setdefault(*one)
    files = []
    for number, text in enumerate(chosen.values()):
        files.append(into / f"{number}.txt")
        files[-1].write_text(text, encoding="utf-8")
    return files


def _misses(run: Path) -> Iterator[tuple[str, str, Miss]]:
    """Section, and the instruction by its code, its name and offset."""
    for blob in results.read(run).blobs:
        code = results.named(blob.kind, blob.name, blob.tier)
        for one in blob.instructions:
            for miss in one.misses:
                yield one.section, f"{code}+{one.offset}", miss
