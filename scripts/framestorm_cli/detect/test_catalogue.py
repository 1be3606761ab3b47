"""From bugs/<id>.toml to what is added to a JDK source tree."""

from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect import catalogue
from framestorm_cli.hotspot import additions
from framestorm_cli.hotspot.additions import Additions

BUG = """
origin = ["JDK-8315380"]
year = 2023
class = "bounds"
title = "a bound is not looked at"
walkers = ["asgct", "asgst"]
functions = ["frame::safe_for_sender"]
shows = ["crash"]
"""
EDIT = """
[[edit]]
file = "{file}"
anchor = '^  if \\(sp < base\\) return;$'
where = "replace"
insert = "{insert}"
"""
CHECKED = "void walk() {\n  if (sp < base) return;\n}\n"
ADDED = Additions({"ours.cpp": CHECKED.encode()}, ())


def bug(folder: Path, *edits: tuple[str, str]) -> catalogue.Bug:
    path = folder / "a-bug.toml"
    path.write_text(BUG + "".join(EDIT.format(file=file, insert=text) for file, text in edits))
    return catalogue.read(path)


def test_an_edit_replaces_what_its_anchor_matches_in_added_files_and_in_the_source(
    tmp_path: Path,
) -> None:
    canary = "  FRAMESTORM_CANARY(sp < base);"
    planted = bug(tmp_path, ("ours.cpp", canary), ("theirs.cpp", canary)).planted(ADDED)
    include = '#include "utilities/framestorm_canary.hpp"\n'
    assert planted.files["ours.cpp"].decode() == f"{include}void walk() {{\n{canary}\n}}\n"
    text = CHECKED
    for edit in planted.edits:
        assert edit.file == "theirs.cpp"
        text = edit.apply(text)
    assert text == f"{include}void walk() {{\n{canary}\n}}\n"
    assert "src/hotspot/share/utilities/framestorm_canary.cpp" in planted.files
    assert planted.digest() != ADDED.digest()


def test_a_bug_that_nothing_tells_of_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="a-bug has no FRAMESTORM_CANARY"):
        bug(tmp_path, ("ours.cpp", "")).planted(ADDED)


def test_an_edit_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    one = bug(tmp_path, ("ours.cpp", "FRAMESTORM_CANARY(true)"))
    with pytest.raises(FramestormError, match="matches 0 times"):
        one.planted(Additions({"ours.cpp": b"something else"}, ()))


def test_what_is_no_bug_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_text(BUG.replace("walkers", "wanderers"))
    with pytest.raises(FramestormError, match="wanderers"):
        catalogue.read(path)


def test_every_bug_can_be_read_and_fits_what_is_added() -> None:
    added = additions.load()
    every = catalogue.bugs()
    assert every
    for one in every.values():
        one.planted(added)


def test_names_choose() -> None:
    first, *_ = catalogue.bugs()
    assert [one.id for one in catalogue.chosen((first,))] == [first]
    with pytest.raises(FramestormError, match="no planted bug nonsense"):
        catalogue.chosen(("nonsense",))
