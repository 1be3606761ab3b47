"""The Markdown pages: links lead somewhere, lines are short, commands exist."""

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from framestorm_cli import main
from framestorm_cli.base import paths

LONGEST_LINE = 120
_PARSER = MarkdownIt("commonmark").enable("table")


def _tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    done = subprocess.run(command, cwd=paths.CHECKOUT, capture_output=True, text=True, check=True)
    found = [paths.CHECKOUT / name for name in done.stdout.split("\0") if name]
    return sorted(path for path in found if path.is_file())


PAGES = _tracked("*.md")
_each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(paths.CHECKOUT))
)


@cache
def _tokens(page: Path) -> list[Token]:
    return _PARSER.parse(page.read_text(encoding="utf-8"))


def _inline(page: Path) -> Iterator[Token]:
    for token in _tokens(page):
        yield from token.children or []


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings."""
    tokens = _tokens(page)
    seen: Counter[str] = Counter()
    found = set()
    for opening, text in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        words = "".join(child.content for child in text.children or [])
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def _links(page: Path) -> Iterator[str]:
    for token in _inline(page):
        link = token.attrGet("href") if token.type == "link_open" else token.attrGet("src")
        if link and not re.match(r"[a-z]+:", str(link)):
            yield unquote(str(link))


def _broken(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        return True
    return bool(anchor) and (target.suffix != ".md" or anchor not in _anchors(target))


def _code(page: Path) -> Iterator[str]:
    """Each line of the page's blocks of code, continued lines joined, and each code span."""
    for token in _tokens(page):
        if token.type in ("fence", "code_block"):
            yield from re.sub(r"\\\n\s*", " ", token.content).splitlines()
    yield from (token.content for token in _inline(page) if token.type == "code_inline")


def _unknown(line: str) -> list[str]:
    """What a call of scripts/framestorm in this line names and the command line does not have."""
    unknown = []
    for call in re.findall(r"scripts/framestorm(?: ([^;|)]*))?", line):
        command: click.Command = main.framestorm
        words = shlex.split(call, comments=True)
        words = words[: words.index("--")] if "--" in words else words
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            name = words.pop(0)
            if name not in command.commands:
                if re.fullmatch(r"[a-z-]+", name):
                    unknown.append(name)
                words = []
                break
            command = command.commands[name]
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        unknown += [option for option in options if option not in known | {"--help"}]
    return unknown


def test_there_are_pages() -> None:
    assert paths.CHECKOUT / "README.md" in PAGES
    assert {page.parent.name for page in PAGES} >= {"guide", "reference", "measurements"}


@_each_page
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in _links(page) if _broken(page, link)] == []


@_each_page
def test_lines_of_prose_are_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    for token in _tokens(page):
        if token.map and token.type in ("fence", "code_block", "table_open"):
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    assert [line for line in lines if len(line) > LONGEST_LINE] == []


@_each_page
def test_commands_exist(page: Path) -> None:
    assert [(line, unknown) for line in _code(page) if (unknown := _unknown(line))] == []


def test_code_names_pages_that_exist() -> None:
    named = set()
    for file in _tracked("*.py", "*.cpp", "*.h", "*.java", "*.toml", "*.yml", "*.yaml", "*.sh"):
        text = file.read_text(encoding="utf-8")
        named |= set(re.findall(r"\bdocs/(?:[a-z-]+/)*[a-z-]+\.(?:md|schema\.json)", text))
    assert named
    assert sorted(name for name in named if not (paths.CHECKOUT / name).is_file()) == []


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[x](nowhere.md)", ["nowhere.md"]),
        ("# A `b` c\n## A b c\n[x](#a-b-c) [y](#a-b-c-1) [z](#a-b-c-2)", ["#a-b-c-2"]),
        ("![x](picture.png) [y](https://example.org/z)", ["picture.png"]),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, text: str, links: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert [link for link in _links(page) if _broken(page, link)] == links


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("scripts/framestorm fuzz --seconds 1  # --not-an-option", []),
        ("scripts/framestorm fuzz --second 1", ["--second"]),
        ("JDK=$(scripts/framestorm jdk paths plain)", ["paths"]),
        ("scripts/framestorm fuss", ["fuss"]),
    ],
)
def test_an_unknown_command_is_found(line: str, unknown: list[str]) -> None:
    assert _unknown(line) == unknown
