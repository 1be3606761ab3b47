"""flames.folded as a tree small enough for a page."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base import files

FOLDED = "flames.folded"
LEAST_SHARE = 0.001  # of a cell's samples: what is narrower cannot be seen
MOST_DEPTH = 160
MOST_NODES = 2500  # of a cell


@dataclass
class Node:
    count: int = 0
    children: dict[str, "Node"] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """One frame: `start` and `count` in samples."""

    depth: int
    name: str
    start: int
    count: int


def parse(lines: Iterable[str]) -> list[tuple[list[str], int]]:
    """Stacks, outermost first, with their counts; a torn last line is left out."""
    stacks = []
    for line in lines:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if stack and count.isdigit() and line.endswith("\n"):
            stacks.append((stack.split(";"), int(count)))
    return stacks


def read(path: Path) -> list[tuple[list[str], int]]:
    """Empty when there is no such file."""
    return parse(files.read_text(path).splitlines(keepends=True))


def boxes(stacks: list[tuple[list[str], int]]) -> list[Box]:
    """Boxes from the outermost in, the widest first beside each other; the first is all samples."""
    root = Node()
    for stack, count in stacks:
        root.count += count
        node = root
        for name in stack[:MOST_DEPTH]:
            node = node.children.setdefault(name, Node())
            node.count += count
    if not root.count:
        return []
    least = max(1.0, root.count * LEAST_SHARE)
    while len(found := _boxes(root, least)) > MOST_NODES:
        least *= 1.5
    return found


def _boxes(root: Node, least: float) -> list[Box]:
    found = []
    # Not recursive: stacks are deep.
    waiting = [(0, "all", 0, root)]
    while waiting:
        depth, name, start, node = waiting.pop()
        found.append(Box(depth, name, start, node.count))
        ordered = sorted(node.children.items(), key=lambda item: (-item[1].count, item[0]))
        for child, below in ordered:
            if below.count >= least:
                waiting.append((depth + 1, child, start, below))
            start += below.count
    return found
