"""The catalogue of walker bugs and the planted ones agree; their edits fit the source they are for."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from framestorm_cli.base import paths
from framestorm_cli.hotspot import additions
from framestorm_cli.jdks import store

HOTSPOT = paths.CHECKOUT / "harness" / "hotspot"
PLANTED = HOTSPOT / "planted"
KEYS = {"origin", "year", "class", "title", "walkers", "targets", "functions", "shows", "edit"}
SHOWS = {"crash", "sanitizer", "hang", "unsafe-call", "wrong-trace", "contract", "memory"}
NAMES = json.loads((paths.SCRIPTS / "framestorm_cli" / "testdata" / "names.json").read_text())


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


ADDITIONS = additions.load()
CATALOGUE = read(PLANTED / "catalogue.toml")
ENTRIES: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in CATALOGUE["entry"]}
BUGS = {path.stem: read(path) for path in sorted((PLANTED / "bugs").glob("*.toml"))}


@cache
def jdk_source() -> Path | None:
    """The source of a JDK that the additions are for, when one was built here."""
    releases = read(HOTSPOT / "edits.toml")["jdk"]
    for numbers in (store.folder() / "trees").glob("*/source/make/conf/version-numbers.conf"):
        feature = re.search(r"^DEFAULT_VERSION_FEATURE=(\d+)", numbers.read_text(), re.MULTILINE)
        if feature is not None and int(feature[1]) in releases:
            return numbers.parents[2]
    return None


def text_of(file: str) -> str | None:
    """With framestorm's additions; what else was last built in that tree may still stand there."""
    added = HOTSPOT / "additions" / file
    source = jdk_source()
    if added.exists():
        return added.read_text(encoding="utf-8")
    if source is None:
        return None
    return additions.PatchedTree(source, source.parent / "originals").edited(file, ADDITIONS)


def test_each_entry_is_complete() -> None:
    assert len(ENTRIES) == len(CATALOGUE["entry"]), "an id is listed twice"
    for name, entry in ENTRIES.items():
        assert set(entry) - {"planted", "not"} == {"id", "year", "class", "title"}, name
        assert ("planted" in entry) != ("not" in entry), name
        assert entry.get("planted") or entry.get("not"), name
        assert entry["class"] in CATALOGUE["classes"], name
        assert 2015 <= entry["year"] <= 2026, name
        assert re.fullmatch(r"JDK-\d{7}|(AP|DD)(#\d+|@[0-9a-f]{8})", name), name


def test_what_is_planted_and_what_is_listed_as_planted_are_the_same() -> None:
    listed = {(bug, name) for name, entry in ENTRIES.items() for bug in entry.get("planted", ())}
    planted = {(bug, origin) for bug, table in BUGS.items() for origin in table["origin"]}
    assert listed == planted


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_described_by_known_words(bug: str) -> None:
    table = BUGS[bug]
    assert set(table) == KEYS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", bug)
    assert table["origin"]
    assert table["class"] in CATALOGUE["classes"]
    assert table["shows"]
    assert set(table["shows"]) <= SHOWS
    assert table["walkers"]
    walks = {target["name"]: set(target["walkers"]) for target in NAMES["targets"]}
    assert set(table["walkers"]) <= set(NAMES["walkers"])
    for target in table["targets"]:
        assert walks[target] & set(table["walkers"]), f"{target} has none of the walkers"
    if table["shows"] != ["wrong-trace"]:
        assert table["functions"] or not {"crash", "sanitizer"} & set(table["shows"])


@pytest.mark.parametrize("bug", BUGS)
def test_each_edit_has_one_place_and_the_bug_a_canary(bug: str) -> None:
    edits = BUGS[bug]["edit"]
    assert any("FRAMESTORM_CANARY(" in edit["insert"] for edit in edits)
    edited: dict[str, str] = {}
    for edit in edits:
        assert set(edit) == {"file", "anchor", "where", "insert"}
        assert edit["where"] in ("before", "after", "replace")
        text = edited.get(edit["file"]) or text_of(edit["file"])
        if text is None:
            continue  # HotSpot's own, and no source here
        matches = list(re.finditer(edit["anchor"], text, re.MULTILINE))
        assert len(matches) == 1, edit["anchor"]
        start, end = matches[0].span()
        if edit["where"] == "before":
            end = start
        elif edit["where"] == "after":
            start = end
        edited[edit["file"]] = text[:start] + edit["insert"] + text[end:]
