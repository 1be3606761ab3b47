"""Mutants: each check deleted, each bound off by one, each comparison turned, in the walkers' functions; or,
in another libjvm, each statement deleted.

All mutants of a file stand in one text: `framestorm_mutant` says which is in force, the environment's
FRAMESTORM_MUTANT which that is, so that one libjvm has all of them and a run is as short as its JVM's start.

clang's syntax tree says where conditions and their operands are. What comes out of a macro is left alone.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from clang import cindex
from clang.cindex import Cursor, CursorKind

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect.catalogue import FOLDER, INCLUDE, canary_files

_INCLUDED = FOLDER / "canary" / "src" / "hotspot" / "share"
_MUTANT = re.compile(r"FRAMESTORM_MUTANT(?:_IF)?\((\d+)[,)]")
DELETED, OFF_BY_ONE, TURNED = "check deleted", "off by one", "comparison turned"
STATEMENT, NOTHING = "statement deleted", ";"
_OFF_BY_ONE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_FUNCTIONS = frozenset(
    (
        CursorKind.FUNCTION_DECL,
        CursorKind.CXX_METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.FUNCTION_TEMPLATE,
    )
)
_LEAVES = frozenset(
    (CursorKind.RETURN_STMT, CursorKind.BREAK_STMT, CursorKind.CONTINUE_STMT, CursorKind.GOTO_STMT)
)
# Expressions that are a statement for what they do.
_DOING = frozenset(
    (
        CursorKind.BINARY_OPERATOR,
        CursorKind.COMPOUND_ASSIGNMENT_OPERATOR,
        CursorKind.UNARY_OPERATOR,
        CursorKind.CALL_EXPR,
    )
)


@dataclass(frozen=True)
class Mutant:
    """`number`: from 1, in the whole library. `file`: below the source tree."""

    number: int
    file: str
    line: int
    function: str
    rule: str
    was: str
    becomes: str

    @property
    def id(self) -> str:
        return f"mutant-{self.number:04d}"


@dataclass(frozen=True)
class _Site:
    """An expression [start, end) of the text: a guarding condition, an operator with its operands, or a
    statement without its semicolon."""

    start: int
    end: int
    function: str
    operator: str = ""  # none: a guarding condition, or a statement
    left: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)
    is_statement: bool = False


class Mutator:
    """Numbers mutants over several files. `functions`: qualified names of those to mutate. `statements`:
    these are deleted, instead of checks and comparisons changed."""

    def __init__(self, functions: AbstractSet[str], *, statements: bool = False) -> None:
        self._functions = functions
        self._sites_in = _statements_in if statements else _checks_in
        self.mutants: list[Mutant] = []

    def mutated(self, path: Path, name: str, arguments: Sequence[str]) -> str | None:
        """The text of a file with all its mutants; None when it has none. `name`: below the source tree;
        `arguments`: the compiler's. Raises FramestormError when it does not compile."""
        unit = _parsed(path, arguments)
        if errors := _errors(unit):
            raise FramestormError(f"{path} does not compile: {errors[0][1]}")
        source = path.read_bytes()
        sites = sorted(
            set(self._sites(unit.cursor, str(path), source)),
            key=lambda site: (site.start, -site.end, bool(site.operator)),
        )
        while sites:
            text = _Text(source, name, sites, len(self.mutants))
            written = INCLUDE + text.render(0, len(source), 0).decode()
            # An expression that has to be constant, say: what does not compile is no mutant.
            unit = _parsed(path, arguments, written)
            failed = {n for line, _ in _errors(unit) for n in _numbers_near(written, line)}
            if not failed:
                self.mutants += text.mutants
                return written
            sites = [site for site in sites if not failed & text.numbers_of(site)]
        return None

    def _sites(self, cursor: Cursor, path: str, source: bytes) -> Iterator[_Site]:
        for child in cursor.get_children():
            file = child.location.file
            if file is None or file.name != path:
                continue
            if child.kind in _FUNCTIONS and child.is_definition():
                name = _qualified(child)
                if name in self._functions:
                    yield from self._sites_in(child, name, source)
            else:
                yield from self._sites(child, path, source)


def _statements_in(cursor: Cursor, function: str, source: bytes) -> Iterator[_Site]:
    for block in cursor.walk_preorder():
        for child in _statements_of(block):
            place = _extent(child, source)
            if place and _without_cleanups(child).kind in _DOING:
                yield _Site(*place, function, is_statement=True)


def _statements_of(block: Cursor) -> Sequence[Cursor]:
    children = list(block.get_children())
    if block.kind == CursorKind.IF_STMT:
        declares = children[0].kind in (CursorKind.DECL_STMT, CursorKind.VAR_DECL)
        return children[2:] if declares else children[1:]
    return children if block.kind == CursorKind.COMPOUND_STMT else ()


def _without_cleanups(expression: Cursor) -> Cursor:
    """What clang has below the destructors of temporaries."""
    while expression.kind == CursorKind.UNEXPOSED_EXPR:
        children = list(expression.get_children())
        if len(children) != 1:
            break
        (expression,) = children
    return expression


def _checks_in(cursor: Cursor, function: str, source: bytes) -> Iterator[_Site]:
    for child in cursor.walk_preorder():
        if child.kind == CursorKind.IF_STMT:
            parts = list(child.get_children())
            condition = _extent(parts[0], source)
            if condition and parts[0].kind.is_expression() and _leaves(parts[1]):
                yield _Site(*condition, function)
        elif child.kind == CursorKind.BINARY_OPERATOR:
            whole = _extent(child, source)
            operands = [part for one in child.get_children() if (part := _extent(one, source))]
            if whole is None or len(operands) != 2:
                continue
            left, right = operands
            operator = source[left[1] : right[0]].strip().decode(errors="replace")
            known = operator in _TURNED or operator in ("&&", "||")
            if known and (whole[0], whole[1]) == (left[0], right[1]):
                yield _Site(*whole, function, operator, left, right)


def _extent(cursor: Cursor, source: bytes) -> tuple[int, int] | None:
    """Where its text is; None when that is no text of its own, as in a macro."""
    start, end = cursor.extent.start.offset, cursor.extent.end.offset
    text = source[start:end]
    balanced = text.count(b"(") == text.count(b")") and text.count(b"{") == text.count(b"}")
    return (start, end) if text.strip() and balanced and b"#" not in text else None


def _leaves(statement: Cursor) -> bool:
    """Whether a branch ends the function or the loop: its condition is a check."""
    if statement.kind == CursorKind.COMPOUND_STMT:
        inner = list(statement.get_children())
        return bool(inner) and inner[-1].kind in _LEAVES
    return statement.kind in _LEAVES


def _qualified(cursor: Cursor) -> str:
    """As symbols have it: `(anonymous namespace)::walk_java`, `frame::sender`."""
    parts = [cursor.spelling]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind != CursorKind.TRANSLATION_UNIT:
        named = parent.spelling if parent.kind != CursorKind.NAMESPACE or parent.spelling else ""
        anonymous = not named or named.startswith("(anonymous")
        parts.append("(anonymous namespace)" if anonymous else named)
        parent = parent.semantic_parent
    return "::".join(reversed(parts))


class _Text:
    """Writes a file's text anew, innermost expressions first."""

    def __init__(self, source: bytes, name: str, sites: Sequence[_Site], numbered: int) -> None:
        """`numbered`: how many mutants other files have."""
        self._source = source
        self._name = name
        self._sites = sites
        self._numbered = numbered
        self._rendered: dict[int, bytes] = {}
        self._numbers: dict[_Site, set[int]] = {}
        self.mutants: list[Mutant] = []

    def numbers_of(self, site: _Site) -> set[int]:
        return self._numbers.get(site, set())

    def render(self, start: int, end: int, first: int) -> bytes:
        """[start, end) with the sites from the `first`-th on that lie within."""
        out = b""
        at, index = start, first
        while index < len(self._sites) and self._sites[index].start < end:
            site = self._sites[index]
            if site.start < at or site.end > end:
                index += 1
                continue
            out += self._source[at : site.start] + self._site(index)
            at = site.end
            index += 1
        return out + self._source[at:end]

    def _site(self, index: int) -> bytes:
        if index not in self._rendered:
            self._rendered[index] = self._write(index)
        return self._rendered[index]

    def _write(self, index: int) -> bytes:
        site = self._sites[index]
        if site.is_statement:
            inner = self.render(site.start, site.end, index + 1)
            return (
                _acts(self._add(site, STATEMENT, NOTHING)) + b" ? (void)0 : (void)(" + inner + b")"
            )
        if not site.operator:
            inner = self.render(site.start, site.end, index + 1)
            return b"((" + inner + b") && !" + _acts(self._add(site, DELETED, "false")) + b")"
        left = self.render(*site.left, index + 1)
        right = self.render(*site.right, index + 1)
        words = [self._words(*part) for part in (site.left, site.right)]
        if site.operator in ("&&", "||"):
            # Each operand is a check by itself.
            keep = b"|| " if site.operator == "&&" else b"&& !"
            operands = [
                b"((" + part + b") " + keep + _acts(self._add(site, DELETED, other)) + b")"
                for part, other in ((left, words[1]), (right, words[0]))
            ]
            return b"(" + operands[0] + f" {site.operator} ".encode() + operands[1] + b")"
        text = b"(" + left + b") " + site.operator.encode() + b" (" + right + b")"
        if other := _OFF_BY_ONE.get(site.operator):
            # It acts where the operands are equal, and counts as triggered there only.
            keep = b"|| " if other.endswith("=") else b"&& !"
            number = self._add(site, OFF_BY_ONE, f"{words[0]} {other} {words[1]}")
            # Operands are evaluated once: one may count, or read on.
            mutant = b"FRAMESTORM_MUTANT_IF(" + str(number).encode() + b", l == r)"
            both = b"[](auto l, auto r) { return (l " + site.operator.encode() + b" r) " + keep
            text = both + mutant + b"; }(" + left + b", " + right + b")"
        if other := _TURNED.get(site.operator):
            number = self._add(site, TURNED, f"{words[0]} {other} {words[1]}")
            turned = b"(" + left + b") " + other.encode() + b" (" + right + b")"
            text = _acts(number) + b" ? " + turned + b" : (" + text + b")"
        return b"(" + text + b")"

    def _add(self, site: _Site, rule: str, becomes: str) -> int:
        """Its number."""
        number = self._numbered + len(self.mutants) + 1
        self._numbers.setdefault(site, set()).add(number)
        line = self._source.count(b"\n", 0, site.start) + 1
        was = self._words(site.start, site.end)
        self.mutants.append(Mutant(number, self._name, line, site.function, rule, was, becomes))
        return number

    def _words(self, start: int, end: int) -> str:
        return " ".join(self._source[start:end].decode(errors="replace").split())


def _acts(number: int) -> bytes:
    return b"FRAMESTORM_MUTANT(%d)" % number


def _parsed(
    path: Path, arguments: Sequence[str], text: str | None = None
) -> cindex.TranslationUnit:
    """`text`: instead of the file's."""
    unsaved = [] if text is None else [(str(path), text)]
    return _index().parse(str(path), args=[f"-I{_INCLUDED}", *arguments], unsaved_files=unsaved)


def _errors(unit: cindex.TranslationUnit) -> list[tuple[int, str]]:
    """Line and text of each. Read at once: a diagnostic does not keep its unit alive."""
    return [
        (one.location.line, one.spelling)
        for one in unit.diagnostics
        if one.severity >= cindex.Diagnostic.Error
    ]


def _numbers_near(text: str, line: int) -> set[int]:
    """Of the mutants in a line, or the last ones before it: an expression may go over several."""
    lines = text.split("\n")
    for at in range(min(line, len(lines)) - 1, -1, -1):
        if found := _MUTANT.findall(lines[at]):
            return set(map(int, found))
    return set()


def rules() -> bytes:
    """Changes when what is made of a source does."""
    return Path(__file__).read_bytes() + b"".join(canary_files().values())


def arguments_of(command: str) -> list[str]:
    """What the compiler is told of a file, from the line that make keeps: without its output and its
    precompiled header, which another program cannot read."""
    words = shlex.split(command)
    first = next(at for at, word in enumerate(words) if re.search(r"clang\+\+(-\d+)?$", word))
    kept: list[str] = []
    rest = iter(words[first + 1 :])
    for word in rest:
        if word in ("-o", "-MF", "-include-pch"):
            next(rest, None)
        elif word not in ("-c", "-MMD", "-fpch-preprocess") and not re.search(
            r"^[^-].*\.cpp$", word
        ):
            kept.append(word)
    return kept


@cache
def _index() -> cindex.Index:
    folder = subprocess.run(
        ["llvm-config-19", "--libdir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    library = Path(folder) / "libclang-19.so.1"
    if not folder or not library.exists():
        raise FramestormError("libclang-19.so.1 is missing: install the package libclang1-19")
    cindex.Config.set_library_file(str(library))
    return cindex.Index.create()
