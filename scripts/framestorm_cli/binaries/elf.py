"""What framestorm reads out of shared objects: identity, exported names, function symbols."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import GNUHashSection
from elftools.elf.sections import NoteSection, SymbolTableSection

_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, shndx, value, size
_STT_FUNC = 2
_STT_GNU_IFUNC = 10


class NotElfError(Exception):
    """The file cannot be read as a 64-bit little-endian ELF file."""


@dataclass(frozen=True)
class Identity:
    machine: str  # "EM_X86_64"
    build_id: str  # hex; empty when the file has none
    base: int  # virtual address of the first loaded page: file offsets of "module+0x" start there


@dataclass(frozen=True)
class Symbol:
    start: int  # offset from the load base
    size: int
    name: str  # as in the file, mangled


def _open(path: Path) -> ELFFile:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise NotElfError(f"{path}: {error.strerror}") from error
    try:
        file = ELFFile(stream)
    except ELFError as error:
        stream.close()
        raise NotElfError(f"{path}: {error}") from error
    if file.elfclass != 64 or not file.little_endian:
        stream.close()
        raise NotElfError(f"{path} is not a 64-bit little-endian file")
    return file


@contextmanager
def _reading(path: Path) -> Iterator[ELFFile]:
    """The open file. Raises NotElfError, also when it turns out to be cut off further in."""
    file = _open(path)
    with file.stream:
        try:
            yield file
        except (ELFError, ConstructError, struct.error, UnicodeDecodeError) as error:
            raise NotElfError(f"{path} is damaged: {error}") from error


def _base(file: ELFFile) -> int:
    loads = [s["p_vaddr"] for s in file.iter_segments() if s["p_type"] == "PT_LOAD"]
    return int(min(loads, default=0)) & ~0xFFF


def identify(path: Path) -> Identity:
    """Machine, build id and load base. Raises NotElfError."""
    with _reading(path) as file:
        build_id = ""
        section = file.get_section_by_name(".note.gnu.build-id")
        if isinstance(section, NoteSection):
            build_id = next((str(n["n_desc"]) for n in section.iter_notes()), "")
        return Identity(file["e_machine"], build_id, _base(file))


def may_have_lines(path: Path) -> bool:
    """Whether it has line tables, or names a file that has. Raises NotElfError."""
    with _reading(path) as file:
        sections = (".debug_line", ".gnu_debuglink")
        return any(file.get_section_by_name(name) is not None for name in sections)


def exports(path: Path, name: str) -> bool:
    """Whether a dynamic symbol of that name is defined. Raises NotElfError."""
    with _reading(path) as file:
        table = file.get_section_by_name(".gnu.hash")
        if isinstance(table, GNUHashSection):
            found = table.get_symbol(name)
            return found is not None and found["st_shndx"] != "SHN_UNDEF"
        dynamic = file.get_section_by_name(".dynsym")
        if not isinstance(dynamic, SymbolTableSection):
            return False
        symbols = dynamic.get_symbol_by_name(name) or ()
        return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in symbols)


def functions(path: Path) -> list[Symbol]:
    """Function symbols by address: .symtab, or .dynsym of a stripped file. Raises NotElfError.

    Parsed by hand: pyelftools needs seconds for libjvm's seventy thousand.
    """
    with _reading(path) as file:
        base = _base(file)
        section = file.get_section_by_name(".symtab") or file.get_section_by_name(".dynsym")
        if section is None:
            return []
        strings = file.get_section(section["sh_link"]).data()
        seen: dict[int, Symbol] = {}
        for name, info, _, shndx, value, size in _SYMBOL.iter_unpack(section.data()):
            if info & 0xF not in (_STT_FUNC, _STT_GNU_IFUNC) or shndx == 0:
                continue
            text = strings[name : strings.index(b"\0", name)].decode(errors="replace")
            start = value - base
            if text and (start not in seen or seen[start].size < size):
                seen[start] = Symbol(start, size, text)
        return [seen[start] for start in sorted(seen)]


def file_offset(path: Path, offset: int) -> int:
    """Where in the file the code at `offset` from the load base stands. Raises NotElfError."""
    with _reading(path) as file:
        base = _base(file)
        for segment in file.iter_segments():
            start = segment["p_vaddr"] - base
            if segment["p_type"] == "PT_LOAD" and start <= offset < start + segment["p_filesz"]:
                return int(offset - start + segment["p_offset"])
    raise NotElfError(f"{path} has nothing at 0x{offset:x}")


def needed(path: Path) -> list[str]:
    """The libraries a program or library asks for, in its order. Raises NotElfError."""
    with _reading(path) as file:
        dynamic = file.get_section_by_name(".dynamic")
        if not isinstance(dynamic, DynamicSection):
            return []
        tags: list[Any] = list(dynamic.iter_tags("DT_NEEDED"))
        return [str(tag.needed) for tag in tags]
