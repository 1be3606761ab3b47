"""What experiments share: their data file, the runs that take turns, tables."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.machine import machine
from framestorm_cli.findings.records import Json

FORMAT = 1
_Planned = TypeVar("_Planned")
_Measured = TypeVar("_Measured")


def header() -> Json:
    """How the data of an experiment begin."""
    return {
        "format": FORMAT,
        "command": sys.argv[1:],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": msgspec.structs.asdict(machine()),
    }


def read(file: Path, name: str, kind: type[_Measured]) -> tuple[Json, list[_Measured]]:
    """The data and the runs of an earlier experiment (`name`: of its data file). Raises FramestormError."""
    try:
        data = msgspec.json.decode(file.read_bytes(), type=dict)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}")
        return data, msgspec.convert(data.pop("runs"), list[kind])  # type: ignore[valid-type]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FramestormError(f"{file} is no {name}: {error}") from error


def take_turns(
    planned: Sequence[_Planned],
    run: Callable[[_Planned], str],
    name: Callable[[_Planned], str] = str,
) -> str:
    """Makes every run. Ends at the first that says why nothing more can be run, and at Ctrl-C; returns
    why, else an empty text."""
    try:
        with steps.termination_interrupts():
            for number, one in enumerate(planned, start=1):
                steps.say(f"run {number} of {len(planned)}: {name(one)}")
                if stopped := run(one):
                    return stopped
    except KeyboardInterrupt:
        return "interrupted"
    return ""


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """A Markdown table; the last `numbers` columns stand to the right."""
    aligned = "|" + "---|" * (len(head) - numbers) + "---:|" * numbers
    return "\n".join([row(head), aligned, *map(row, rows)])
