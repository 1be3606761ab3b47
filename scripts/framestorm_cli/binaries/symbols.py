"""Function names for "libjvm.so+0x1234": .symtab of stock JDKs, demangled, cached per build id."""

import bisect
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files, paths, steps
from framestorm_cli.binaries import elf
from framestorm_cli.binaries.normalise import normalise

_PLACE = re.compile(r"^(?P<module>.+)\+(?P<offset>0x[0-9a-fA-F]+)$")
_CLONE_SUFFIX = re.compile(r"\.(?:part|constprop|isra|cold|lto_priv|llvm)(?:\.\d+)*")
_CACHE_FORMAT = 1


@dataclass(frozen=True)
class Frame:
    """One symbolised frame. `function` is empty where no symbol covers the place."""

    place: str  # as written: "libjvm.so+0x1234"
    module: str
    offset: int | None
    function: str  # demangled, with arguments
    into: int  # bytes into the function

    @property
    def name(self) -> str:
        """The normalised name signatures are made of; the module where there is no symbol."""
        return normalise(self.function) if self.function else f"[{self.module}]"

    def __str__(self) -> str:
        return f"{self.function}+0x{self.into:x}  ({self.place})" if self.function else self.place


class ModuleSymbols:
    """The functions of one module, by offset from its load base."""

    def __init__(self, rows: list[tuple[int, int, str]], build_id: str = "") -> None:
        self._rows = rows
        self._starts = [row[0] for row in rows]
        self.build_id = build_id

    def at(self, offset: int) -> tuple[str, int] | None:
        """The function that covers `offset`, and how far into it that is."""
        index = bisect.bisect_right(self._starts, offset) - 1
        if index < 0:
            return None
        start, size, name = self._rows[index]
        following = self._starts[index + 1] if index + 1 < len(self._starts) else start + size
        if offset >= (start + size if size else following):
            return None
        return name, offset - start

    def ranges(self, name: str) -> list[tuple[int, int]]:
        """Where functions with this normalised name are: overloads and split-off cold parts are
        several. Largest first."""
        last = name.rsplit("::", 1)[-1]
        found = [
            (start, start + size)
            for start, size, function in self._rows
            if last in function and size and normalise(function) == name
        ]
        return sorted(found, key=lambda r: r[0] - r[1])


def demangled(names: list[str]) -> list[str]:
    """As they are where no program demangles."""
    tool = (
        shutil.which("llvm-cxxfilt-19") or shutil.which("llvm-cxxfilt") or shutil.which("c++filt")
    )
    if tool is None:
        return names
    done = steps.captured([tool], input="\n".join(names) + "\n")
    lines = done.stdout.splitlines()
    return lines if done.returncode == 0 and len(lines) == len(names) else names


def load(path: Path) -> ModuleSymbols:
    """Symbols of a file, from the cache when its build id is known there. No symbols: empty."""
    try:
        identity = elf.identify(path)
    except elf.NotElfError:
        return ModuleSymbols([])
    cached = paths.cache() / "symbols" / f"{identity.build_id}.json"
    if identity.build_id:
        try:
            data = json.loads(cached.read_bytes())
            if data["format"] == _CACHE_FORMAT:
                return ModuleSymbols([tuple(row) for row in data["rows"]], identity.build_id)
        except (OSError, ValueError, KeyError):
            pass  # not there yet, or torn: read the file itself
    symbols = elf.functions(path)
    names = demangled([_CLONE_SUFFIX.sub("", symbol.name) for symbol in symbols])
    rows = [(s.start, s.size, name) for s, name in zip(symbols, names, strict=True)]
    if identity.build_id:
        cached.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(cached, json.dumps({"format": _CACHE_FORMAT, "rows": rows}))
    return ModuleSymbols(rows, identity.build_id)


class Symbolizer:
    """Turns places into frames. Keeps the symbols of every module it was asked about."""

    def __init__(self) -> None:
        self._loaded: dict[Path, ModuleSymbols] = {}

    def module(self, path: Path) -> ModuleSymbols:
        if path not in self._loaded:
            self._loaded[path] = load(path)
        return self._loaded[path]

    def frame(self, place: str, modules: dict[str, str], *, is_return: bool) -> Frame:
        """`is_return`: the place is a return address, so the call is in the bytes before it."""
        matched = _PLACE.match(place)
        if matched is None:
            return Frame(place, place, None, "", 0)
        module, offset = matched["module"], int(matched["offset"], 16)
        path = modules.get(module)
        if path is not None:
            found = self.module(Path(path)).at(offset - 1 if is_return else offset)
            if found is not None:
                return Frame(place, module, offset, found[0], found[1] + (1 if is_return else 0))
        return Frame(place, module, offset, "", 0)

    def stack(
        self, places: tuple[str, ...], modules: dict[str, str], *, first_is_return: bool
    ) -> list[Frame]:
        """A walker's stack, innermost first. A fault's first entry is the pc itself."""
        return [
            self.frame(place, modules, is_return=first_is_return or index > 0)
            for index, place in enumerate(places)
        ]
