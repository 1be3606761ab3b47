"""From edges to functions, files and lines; and the floor that CI holds them to."""

import json
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.coverage.measuring import Measured
from framestorm_cli.coverage.places import Place

_ADDITIONS = paths.CHECKOUT / "harness/hotspot/additions"
_WALKER_FILES = _ADDITIONS / "make/hotspot/lib/framestorm_walker_files.gmk"


@dataclass
class Function:
    name: str
    source: str
    line: int  # the first one that has an edge
    edges: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    scenarios: dict[str, int] = field(default_factory=dict)  # edges reached

    @property
    def share(self) -> float:
        return len(self.reached) / len(self.edges)


@dataclass
class SourceFile:
    source: str  # from src/hotspot on
    lines: dict[int, set[str]] = field(default_factory=dict)  # the scenarios that reach each
    functions: list[Function] = field(default_factory=list)

    @property
    def reached_lines(self) -> int:
        return sum(1 for scenarios in self.lines.values() if scenarios)


@dataclass
class Tables:
    files: list[SourceFile]  # by source
    functions: list[Function]  # by source and line

    @property
    def never_reached(self) -> list[Function]:
        return [function for function in self.functions if not function.reached]


def walker_stems() -> frozenset[str]:
    """The names, without extension and platform, of the files that are compiled with counters, and of
    the added walkers' headers, which are compiled with one of these."""
    names = re.findall(
        r"^    (\w+)\.cpp \\$", _WALKER_FILES.read_text(encoding="utf-8"), re.MULTILINE
    )
    headers = [file.name for file in (_ADDITIONS / "src").rglob("async*.hpp")]
    return frozenset(stem_of(name) for name in [*names, *headers])


def stem_of(file: str) -> str:
    """ "frame_x86.inline.hpp" -> "frame"."""
    return re.sub(r"(?:_linux)?(?:_x86|_aarch64|_posix)?$", "", Path(file).name.partition(".")[0])


def tables_of(measured: Measured, places: Sequence[Place], stems: frozenset[str]) -> Tables:
    """Functions of the walkers' files and of their headers only: what else is inlined there (the C++
    library, allocation, barriers) is not theirs."""
    by_edge = defaultdict(set)
    for scenario, reached in measured.scenarios.items():
        for index in reached:
            by_edge[index].add(scenario)
    functions: dict[tuple[str, str], Function] = {}
    files: dict[str, SourceFile] = {}
    for index, place in enumerate(places):
        if not place.source.startswith("src/hotspot/") or stem_of(place.source) not in stems:
            continue
        key = (place.source, place.function)
        function = functions.setdefault(key, Function(place.function, place.source, place.line))
        if place.line:
            function.line = min(function.line or place.line, place.line)
        function.edges.add(index)
        scenarios = by_edge.get(index, set())
        if scenarios:
            function.reached.add(index)
        for scenario in scenarios:
            function.scenarios[scenario] = function.scenarios.get(scenario, 0) + 1
        file = files.setdefault(place.source, SourceFile(place.source))
        if place.line:
            file.lines.setdefault(place.line, set()).update(scenarios)
    ordered = sorted(functions.values(), key=lambda one: (one.source, one.line, one.name))
    for function in ordered:
        files[function.source].functions.append(function)
    return Tables(sorted(files.values(), key=lambda file: file.source), ordered)


def as_json(measured: Measured, tables: Tables) -> Any:
    return {
        "libjvm": str(measured.libjvm),
        "edges": len(measured.edges),
        "edges_reached": len(measured.reached),
        "repeatability": measured.repeatability,
        "inputs": len(measured.inputs),
        "inputs_walked": sum(one.walked for one in measured.inputs),
        "scenarios": {name: len(edges) for name, edges in sorted(measured.scenarios.items())},
        "functions": [
            {
                "name": one.name,
                "source": one.source,
                "line": one.line,
                "edges": len(one.edges),
                "reached": len(one.reached),
                "scenarios": dict(sorted(one.scenarios.items())),
            }
            for one in tables.functions
        ],
        "lines": {
            file.source: {str(line): sorted(names) for line, names in sorted(file.lines.items())}
            for file in tables.files
        },
        "never_reached": [f"{one.source}:{one.line} {one.name}" for one in tables.never_reached],
    }


# The floor ------------------------------------------------------------------------------------------

# A measurement differs a little from the next: the victims halt elsewhere. Of a function with a handful
# of edges one is more than that margin.
MARGIN = 0.15
_SPARE_EDGES = 1
# Below this share a function is a header's, inlined everywhere and reached in one place.
LEAST = 0.05


def floor_of(tables: Tables) -> dict[str, float]:
    """For each function that is reached in earnest: its share less the margin."""
    return {
        name: math.floor(100 * reached / edges * (1 - MARGIN)) / 100
        for name, (reached, edges) in sorted(_counts(tables).items())
        if reached / edges >= LEAST
    }


def read_floor(path: Path) -> dict[str, float]:
    """Raises FramestormError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): float(share) for name, share in data["functions"].items()}
    except OSError as error:
        raise FramestormError(f"cannot read the floor {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FramestormError(
            f'{path} is no floor: JSON with "functions": {{name: share}} is expected'
        ) from error


def fallen(tables: Tables, floor: dict[str, float]) -> list[str]:
    """One line for each function below its floor, and for each that is not there any more."""
    counts = _counts(tables)
    lines = []
    for name, share in sorted(floor.items()):
        if name not in counts:
            lines.append(f"{name}: not in this libjvm's coverage any more (floor {share:.0%})")
            continue
        reached, edges = counts[name]
        if reached == 0 or reached + _SPARE_EDGES < share * edges:
            lines.append(f"{name}: {reached} of its {edges} edges, the floor is {share:.0%}")
    return lines


def _counts(tables: Tables) -> dict[str, tuple[int, int]]:
    """Edges reached and all edges, by name: overloads, and copies in several files, are one."""
    counts: dict[str, tuple[int, int]] = {}
    for function in tables.functions:
        reached, edges = counts.get(function.name, (0, 0))
        counts[function.name] = (
            reached + len(function.reached),
            edges + len(function.edges),
        )
    return counts
