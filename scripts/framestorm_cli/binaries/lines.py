"""Source lines and inlined functions of places, where their module has line tables.

By llvm-symbolizer, which also finds tables that stand in a file of their own (.gnu_debuglink). Without
it, or without tables, nothing is known.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.binaries import elf
from framestorm_cli.binaries.symbols import Frame

_TIMEOUT = 120  # seconds; a sanitized libjvm's tables are read in less than 10
_PARTS = 2  # of a source file's path


def of_stack(
    frames: Sequence[Frame], modules: Mapping[str, str], *, first_is_return: bool
) -> list[list[str]]:
    """For each frame "function at file:line", what is inlined there first; empty where nothing is known."""
    found: list[list[str]] = [[] for _ in frames]
    asked: dict[Path, list[int]] = {}
    for index, frame in enumerate(frames):
        if frame.offset is not None and frame.module in modules:
            asked.setdefault(Path(modules[frame.module]), []).append(index)
    for path, indices in asked.items():
        # The call is in the bytes before a return address.
        offsets = [
            (frames[index].offset or 0) - (1 if index > 0 or first_is_return else 0)
            for index in indices
        ]
        for index, said in zip(indices, _of_module(path, offsets), strict=False):
            found[index] = said
    return found


def _of_module(path: Path, offsets: list[int]) -> list[list[str]]:
    tool = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
    try:
        if tool is None or not elf.may_have_lines(path):
            return []
        base = elf.identify(path).base
    except elf.NotElfError:
        return []
    asked = [f"0x{base + offset:x}" for offset in offsets]
    try:
        command = [tool, "--output-style=JSON", f"--obj={path}", *asked]
        done = steps.captured(command, timeout=_TIMEOUT)
        answers = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return []
    return [_lines(answer.get("Symbol") or []) for answer in answers]


def _lines(symbols: list[dict[str, object]]) -> list[str]:
    """Innermost first; nothing where there is no line."""
    if not any(symbol.get("Line") for symbol in symbols):
        return []
    return [
        f"{symbol.get('FunctionName') or '?'} at "
        f"{'/'.join(Path(str(symbol.get('FileName') or '?')).parts[-_PARTS:])}:{symbol.get('Line') or '?'}"
        + (", inlined" if index + 1 < len(symbols) else "")
        for index, symbol in enumerate(symbols)
    ]
