"""Function, file and line of each edge, by llvm-symbolizer; kept per build of libjvm."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files, paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf

_SYMBOLIZERS = ("llvm-symbolizer-19", "llvm-symbolizer")
_CACHE_FORMAT = 1


@dataclass(frozen=True)
class Place:
    function: str  # demangled, without its parameters
    file: str  # as compiled: an absolute path
    line: int  # 0: unknown

    @property
    def source(self) -> str:
        """The file from src/hotspot on."""
        _, found, rest = self.file.partition("/src/hotspot/")
        return f"src/hotspot/{rest}" if found else self.file


def places_of(libjvm: Path, pcs: Sequence[int]) -> list[Place]:
    """One per pc, in order: the innermost inlined function. Raises FramestormError."""
    cache = paths.cache() / "symbols" / f"{elf.identify(libjvm).build_id or 'none'}-edges.json"
    known = _read(cache)
    absent = [pc for pc in pcs if str(pc) not in known]
    if absent:
        for pc, place in zip(absent, _symbolize(libjvm, absent), strict=True):
            known[str(pc)] = (place.function, place.file, place.line)
        cache.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(cache, {"format": _CACHE_FORMAT, "places": known})
    return [Place(*known[str(pc)]) for pc in pcs]


def _read(cache: Path) -> dict[str, tuple[str, str, int]]:
    try:
        data = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if data.get("format") != _CACHE_FORMAT:
        return {}
    return {pc: (place[0], place[1], place[2]) for pc, place in data["places"].items()}


def _symbolize(libjvm: Path, pcs: Sequence[int]) -> list[Place]:
    program = next((path for name in _SYMBOLIZERS if (path := shutil.which(name))), None)
    if program is None:
        raise FramestormError("llvm-symbolizer is missing: install the package llvm-19")
    done = steps.captured(
        [program, "--output-style=JSON", "--relative-address", f"--obj={libjvm}"],
        input="".join(f"0x{pc:x}\n" for pc in pcs),
    )
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(pcs):
        raise FramestormError(
            f"{program} answered {len(answers)} of {len(pcs)} addresses: {done.stderr[-500:]}"
        )
    return [_innermost(json.loads(answer)) for answer in answers]


def _innermost(answer: dict[str, list[dict[str, object]]]) -> Place:
    frames = answer.get("Symbol") or [{}]
    frame = frames[0]
    return Place(
        without_parameters(str(frame.get("FunctionName") or "?")),
        str(frame.get("FileName") or "?"),
        int(str(frame.get("Line") or 0)),
    )


def without_parameters(name: str) -> str:
    """ "frame::sender(RegisterMap*) const" -> "frame::sender"."""
    depth = 0
    # From the end: the parameter list is the last balanced pair; "operator()" keeps its own.
    for index in range(len(name) - 1, -1, -1):
        if name[index] == ")":
            depth += 1
        elif name[index] == "(":
            depth -= 1
            if depth == 0 and not name[:index].endswith("operator"):
                return name[:index]
    return name
