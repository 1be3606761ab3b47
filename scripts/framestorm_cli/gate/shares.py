"""Which target gets how much of the time: more for those whose seeds reach what the change touches.

The same measurement says whether the seeds still reach what they must (corpus/coverage-floor.json).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.coverage import measuring, places, tables
from framestorm_cli.coverage.measuring import Measured
from framestorm_cli.coverage.places import Place
from framestorm_cli.gate.changes import Changes
from framestorm_cli.native.toolchain import Toolchain

# The target that reaches most of what changed gets this many times the share of one that reaches nothing.
BOOST = 3.0
HALTS = 6  # as the floor was measured
_NEAR = 2  # lines: an edge stands at a line of its block, which may be the one before


@dataclass
class Reach:
    """`weights` by target, 1 and more. `touched`: functions that the change touches and that count."""

    weights: dict[str, float]
    touched: list[str] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)  # edges of these, by target
    edges: int = 0
    fallen: list[str] = field(default_factory=list)


def measure(
    tools: Toolchain,
    targets: Sequence[str],
    changes: Changes,
    floor: Mapping[str, float],
    out: Path,
    jobs: int,
) -> Reach:
    """Walks the seeds of each target. Raises FramestormError."""

    def one(target: str) -> Measured:
        files = sorted((paths.SEEDS / target).glob("*.txt"))
        return measuring.measure(tools, files, out / target, halts=HALTS)

    with ThreadPoolExecutor(jobs) as pool:
        measured = dict(zip(targets, pool.map(one, targets), strict=True))
    whole = merged(list(measured.values()))
    where = places.places_of(whole.libjvm, [edge.pc for edge in whole.edges])
    found = tables.tables_of(whole, where, tables.walker_stems())
    edges = touched_edges(where, changes)
    reach = of_edges({name: one.reached for name, one in measured.items()}, edges)
    reach.touched = sorted({where[index].function for index in edges})
    reach.edges = len(whole.reached)
    reach.fallen = tables.fallen(found, dict(floor))
    return reach


def merged(every: Sequence[Measured]) -> Measured:
    """Several measurements of one libjvm as one."""
    whole = Measured(every[0].libjvm, every[0].edges)
    for one in every:
        whole.inputs += one.inputs
        for scenario, reached in one.scenarios.items():
            whole.scenarios.setdefault(scenario, set()).update(reached)
    return whole


def touched_edges(where: Sequence[Place], changes: Changes) -> set[int]:
    """The edges of the functions that the changed lines are in; of a file where that cannot be said (a
    macro, a line that no code was made of), all of it."""
    by_function: dict[tuple[str, str], list[int]] = {}
    for index, place in enumerate(where):
        if place.source in changes.lines:
            by_function.setdefault((place.source, place.function), []).append(index)
    found: set[int] = set()
    for file, lines in changes.lines.items():
        own = {key: edges for key, edges in by_function.items() if key[0] == file}
        hit: set[int] = set()
        for edges in own.values():
            at = [where[index].line for index in edges if where[index].line]
            if lines and at and any(min(at) - _NEAR <= n <= max(at) + _NEAR for n in lines):
                hit.update(edges)
        found |= hit or {index for edges in own.values() for index in edges}
    return found


def of_edges(reached: Mapping[str, set[int]], touched: set[int]) -> Reach:
    """Weights by how many of the touched edges each target reaches."""
    counts = {target: len(edges & touched) for target, edges in reached.items()}
    most = max(counts.values(), default=0)
    weights = {t: 1 + (BOOST - 1) * count / most if most else 1.0 for t, count in counts.items()}
    return Reach(weights, reached=counts)


def equal(targets: Sequence[str]) -> Reach:
    return Reach(dict.fromkeys(targets, 1.0))
