import os
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import additions
from framestorm_cli.hotspot.additions import Additions, Edit, PatchedTree

MAKEFILE = "first\nsetup libjvm\nlast\n"
EDIT = Edit("make/jvm.gmk", r"^setup libjvm$", "before", "include ours\n")
OLD = 1_500_000_000


@pytest.fixture
def tree(tmp_path: Path) -> PatchedTree:
    source = tmp_path / "source"
    (source / "make").mkdir(parents=True)
    (source / "make" / "jvm.gmk").write_text(MAKEFILE)
    return PatchedTree(source, tmp_path / "originals")


def age(tree: PatchedTree) -> None:
    for path in tree.source.rglob("*"):
        os.utime(path, (OLD, OLD))


def changed(tree: PatchedTree) -> set[str]:
    """The files written since age()."""
    return {
        str(path.relative_to(tree.source))
        for path in tree.source.rglob("*")
        if path.is_file() and path.stat().st_mtime != OLD
    }


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("before", "first\ninclude ours\nsetup libjvm\nlast\n"),
        ("after", "first\nsetup libjvminclude ours\n\nlast\n"),
    ],
)
def test_text_goes_before_or_after_the_anchor(where: str, text: str) -> None:
    assert Edit("f", r"^setup libjvm$", where, "include ours\n").apply(MAKEFILE) == text


@pytest.mark.parametrize(("anchor", "times"), [("^setup gtest$", "0 times"), ("st$", "2 times")])
def test_an_anchor_that_does_not_match_once_names_the_place(
    tree: PatchedTree, anchor: str, times: str
) -> None:
    edit = Edit("make/jvm.gmk", anchor, "before", "x")
    with pytest.raises(FramestormError) as error:
        tree.apply(Additions({"src/new.cpp": b"new"}, (edit,)))
    assert "make/jvm.gmk" in error.value.message
    assert repr(anchor) in error.value.message
    assert times in error.value.message
    assert not (tree.source / "src" / "new.cpp").exists()  # nothing was written at all


def test_applying_again_writes_nothing(tree: PatchedTree) -> None:
    added = Additions({"src/new.cpp": b"new"}, (EDIT,))
    assert tree.apply(added) == ["make/jvm.gmk", "src/new.cpp"]
    assert "include ours" in (tree.source / "make" / "jvm.gmk").read_text()
    age(tree)
    assert tree.apply(added) == []
    assert changed(tree) == set()
    assert (tree.source / "make" / "jvm.gmk").read_text().count("include ours") == 1


def test_only_the_addition_that_changed_is_written(tree: PatchedTree) -> None:
    tree.apply(Additions({"src/a.cpp": b"a", "src/b.cpp": b"b"}, (EDIT,)))
    age(tree)
    assert tree.apply(Additions({"src/a.cpp": b"a", "src/b.cpp": b"B"}, (EDIT,))) == ["src/b.cpp"]
    assert changed(tree) == {"src/b.cpp"}


def test_a_changed_edit_starts_from_the_original(tree: PatchedTree) -> None:
    tree.apply(Additions({}, (EDIT,)))
    tree.apply(Additions({}, (Edit(EDIT.file, EDIT.anchor, "before", "other\n"),)))
    assert (tree.source / EDIT.file).read_text() == "first\nother\nsetup libjvm\nlast\n"


def test_two_edits_of_one_file(tree: PatchedTree) -> None:
    second = Edit(EDIT.file, "^include ours$", "before", "and ")
    tree.apply(Additions({}, (EDIT, second)))
    assert "and include ours" in (tree.source / EDIT.file).read_text()


def test_without_additions_the_tree_is_as_it_was(tree: PatchedTree) -> None:
    tree.apply(Additions({"src/new.cpp": b"new"}, (EDIT,)))
    assert tree.apply(Additions({}, ())) == ["make/jvm.gmk", "src/new.cpp"]
    assert (tree.source / EDIT.file).read_text() == MAKEFILE
    assert not (tree.source / "src" / "new.cpp").exists()
    assert tree.own() == set()


def test_a_file_of_the_source_is_never_overwritten(tree: PatchedTree) -> None:
    with pytest.raises(FramestormError, match=r"make/jvm\.gmk is in the JDK source already"):
        tree.apply(Additions({"make/jvm.gmk": b"ours"}, ()))
    assert (tree.source / "make" / "jvm.gmk").read_text() == MAKEFILE


def test_a_source_without_the_file_to_edit(tree: PatchedTree) -> None:
    with pytest.raises(FramestormError, match=r"has no make/other\.gmk"):
        tree.apply(Additions({}, (Edit("make/other.gmk", "x", "before", "y"),)))


def test_the_digest_tells_sets_of_additions_apart() -> None:
    sets = [
        Additions({"a": b"1"}, ()),
        Additions({"a": b"2"}, ()),
        Additions({"b": b"1"}, ()),
        Additions({"a": b"1"}, (EDIT,)),
        Additions({"a": b"1"}, (Edit(EDIT.file, EDIT.anchor, "after", EDIT.insert),)),
    ]
    assert len({added.digest() for added in sets}) == len(sets)
    assert Additions({"a": b"1"}, (EDIT,)).digest() == sets[3].digest()


@pytest.mark.parametrize(
    "text",
    [
        "[[edit]]\nfile = 'f'\nanchor = 'a'\ninsert = 'i'\n",
        "[[edit]]\nfile = 'f'\nanchor = 'a'\ninsert = 'i'\nwhere = 'beside'\n",
        "[[edit]]\nfile = 'f'\nanchor = '('\ninsert = 'i'\nwhere = 'after'\n",
        "[[edit\n",
        "jdk = 25\n",
    ],
)
def test_a_list_of_edits_that_is_wrong_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "edits.toml").write_text(text)
    with pytest.raises(FramestormError, match=r"edits\.toml"):
        additions.load(tmp_path)


def test_which_releases_they_are_for() -> None:
    assert Additions({}, (), (25,)).fit(25)
    assert not Additions({}, (), (25,)).fit(21)
    assert Additions({}, ()).fit(21)


def test_those_of_the_checkout() -> None:
    added = additions.load()
    assert added.jdk == (25,)
    assert "src/hotspot/share/prims/framestorm_coverage.cpp" in added.files
    assert "make/hotspot/lib/CompileJvm.gmk" in added.edited()


def test_the_coverage_callbacks_are_not_instrumented_themselves() -> None:
    listed = additions.load().files["make/hotspot/lib/framestorm_walker_files.gmk"].decode()
    assert "forte.cpp" in listed
    assert "    framestorm_coverage.cpp" not in listed
