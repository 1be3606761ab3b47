"""The coverage as pages: an index of files, functions and scenarios, and one page per source file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import files
from framestorm_cli.coverage.measuring import Measured
from framestorm_cli.coverage.tables import SourceFile, Tables
from framestorm_cli.reports import templates


@dataclass(frozen=True)
class Line:
    number: int
    text: str
    state: str  # "reached", "missed", "" for a line without an edge
    scenarios: str


def write(measured: Measured, tables: Tables, out: Path, title: str, sources: Path | None) -> Path:
    """Writes index.html and its pages below `out`; returns the index. `sources`: the JDK's source
    tree, where there is one to show the text of the lines from."""
    environment = templates.environment("framestorm_cli.coverage")
    pages = out / "files"
    pages.mkdir(parents=True, exist_ok=True)
    names = {file.source: page_name(file.source) for file in tables.files}
    for file in tables.files:
        page = environment.get_template("file.html").render(
            title=title, file=file, lines=_lines(file, sources)
        )
        (pages / names[file.source]).write_text(page, encoding="utf-8")
    index = out / "index.html"
    index.write_text(
        environment.get_template("index.html").render(
            title=title, measured=measured, tables=tables, pages=names
        ),
        encoding="utf-8",
    )
    return index


def page_name(source: str) -> str:
    """Unique and readable: files of the same name differ in their folders."""
    return f"{Path(source).name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}.html"


def _lines(file: SourceFile, sources: Path | None) -> list[Line]:
    """The whole source where it is there, else only the lines that have edges."""
    texts = files.read_text(sources / file.source).splitlines() if sources is not None else []
    if not texts:
        return [_line(file, number, "") for number in sorted(file.lines)]
    return [_line(file, number, text) for number, text in enumerate(texts, 1)]


def _line(file: SourceFile, number: int, text: str) -> Line:
    scenarios = file.lines.get(number)
    state = "" if scenarios is None else "reached" if scenarios else "missed"
    return Line(number, text, state, ", ".join(sorted(scenarios or ())))
