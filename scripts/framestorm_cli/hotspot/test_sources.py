import os
import subprocess
from pathlib import Path

import pytest

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import sources
from framestorm_cli.hotspot.additions import Additions, Edit, PatchedTree

NUMBERS = """
DEFAULT_VERSION_FEATURE=25
DEFAULT_VERSION_INTERIM=0
DEFAULT_VERSION_UPDATE=3
DEFAULT_VERSION_PATCH=0
DEFAULT_VERSION_DATE=2026-04-21
DEFAULT_VERSION_CLASSFILE_MAJOR=69  # "`$EXPR $DEFAULT_VERSION_FEATURE + 44`"
DEFAULT_ACCEPTABLE_BOOT_VERSIONS="24 25"
"""


def make_tree(folder: Path) -> Path:
    """The least that passes for an OpenJDK source tree."""
    for name in ("make/conf", "src/hotspot/share/prims", "src/java.base/share/classes"):
        (folder / name).mkdir(parents=True)
    (folder / "configure").write_text("#!/bin/sh\n")
    (folder / "make" / "conf" / "version-numbers.conf").write_text(NUMBERS)
    (folder / "src" / "hotspot" / "share" / "prims" / "forte.cpp").write_text("walk();\n")
    (folder / "make" / "jvm.gmk").write_text("setup\n")
    return folder


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "jdk")


@pytest.fixture
def tree(tmp_path: Path) -> PatchedTree:
    return PatchedTree(tmp_path / "tree" / "source", tmp_path / "tree" / "originals")


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_version_of_a_tree(user: Path) -> None:
    version = sources.version_of_tree(user)
    assert (version.numbers, version.boot, version.build) == ((25, 0, 3, 0), (24, 25), 0)
    assert str(version) == "25.0.3"


@pytest.mark.parametrize(
    ("name", "build"),
    [("openjdk-25-25.0.3+9", 9), ("jdk-17.0.19+10", 10), ("jdk-25+36", 36), ("jdk", 0)],
)
def test_build_number_in_a_name(name: str, build: int) -> None:
    assert sources.build_of_name(name) == build


def test_a_folder_that_is_no_source_tree(user: Path, tmp_path: Path) -> None:
    (user / "configure").unlink()
    with pytest.raises(
        FramestormError, match="is not an OpenJDK source tree: there is no configure"
    ):
        sources.resolve(str(user), tmp_path)


def test_version_numbers_that_say_nothing(user: Path, tmp_path: Path) -> None:
    (user / "make" / "conf" / "version-numbers.conf").write_text("nothing\n")
    with pytest.raises(FramestormError, match="does not say which version"):
        sources.resolve(str(user), tmp_path)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="no such file or folder"):
        sources.resolve(str(tmp_path / "nowhere"), tmp_path)


def test_an_unknown_debian_package(tmp_path: Path) -> None:
    with pytest.raises(FramestormError, match="debian:openjdk-9 is not known; known: openjdk-25"):
        sources.resolve("debian:openjdk-9", tmp_path)


def test_a_file_that_is_no_tarball(tmp_path: Path) -> None:
    (tmp_path / "jdk.tar").write_text("words")
    with pytest.raises(FramestormError, match="neither a folder nor a tarball"):
        sources.resolve(str(tmp_path / "jdk.tar"), tmp_path)


def test_a_tarball_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "a.txt").write_text("a")
    subprocess.run(["tar", "-cf", "w.tar.gz", "-z", "words"], cwd=tmp_path, check=True)
    with pytest.raises(FramestormError, match="is not a tarball of OpenJDK's source"):
        sources.resolve(str(tmp_path / "w.tar.gz"), tmp_path)


def test_a_tarball_is_unpacked_once_and_without_the_tests(
    tmp_path: Path, tree: PatchedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_tree(tmp_path / "jdk-25.0.3+9")
    (folder / "test").mkdir()
    (folder / "test" / "T.java").write_text("")
    (folder / "src" / "test").mkdir()
    (folder / "src" / "test" / "kept").write_text("")
    subprocess.run(["tar", "-cf", "jdk.tar.xz", "-J", folder.name], cwd=tmp_path, check=True)
    source = sources.resolve(str(tmp_path / "jdk.tar.xz"), tmp_path)
    assert str(source.version) == "25.0.3+9"
    monkeypatch.setattr(sources, "read_version", None)
    assert sources.resolve(str(tmp_path / "jdk.tar.xz"), tmp_path) == source  # remembered
    tree.source.parent.mkdir()
    sources.bring(source, tree)
    assert (tree.source / "src" / "hotspot" / "share" / "prims" / "forte.cpp").exists()
    assert (tree.source / "src" / "test" / "kept").exists()
    assert not (tree.source / "test").exists()
    before = state_of(tree.source)
    sources.bring(source, tree)
    assert state_of(tree.source) == before


def test_a_users_tree_is_copied_with_its_times_and_only_read(user: Path, tree: PatchedTree) -> None:
    os.utime(user / "configure", (1_500_000_000, 1_500_000_000))
    (user / ".git").mkdir()
    (user / ".git" / "index").write_text("")
    (user / "build").mkdir()
    (user / "build" / "big").write_text("")
    before = state_of(user)
    assert sources.copy_changes(user, tree) == 4
    assert state_of(user) == before
    copied = {name: entry for name, entry in before.items() if not name.startswith((".", "build"))}
    assert state_of(tree.source) == copied
    assert sources.copy_changes(user, tree) == 0


def test_only_what_changed_is_copied(user: Path, tree: PatchedTree) -> None:
    sources.copy_changes(user, tree)
    forte = "src/hotspot/share/prims/forte.cpp"
    (user / forte).write_text("walk_more();\n")
    (user / "configure").unlink()
    others = {k: v for k, v in state_of(tree.source).items() if k not in (forte, "configure")}
    assert sources.copy_changes(user, tree) == 2
    now = state_of(tree.source)
    assert now.pop(forte)[0] == b"walk_more();\n"
    assert now == others


def test_a_file_replaced_by_an_older_one_is_new_to_make(user: Path, tree: PatchedTree) -> None:
    sources.copy_changes(user, tree)
    before = (tree.source / "configure").stat().st_mtime_ns
    (user / "configure").write_text("older\n")
    os.utime(user / "configure", (1_500_000_000, 1_500_000_000))
    assert sources.copy_changes(user, tree) == 1
    assert (tree.source / "configure").stat().st_mtime_ns >= before
    assert sources.copy_changes(user, tree) == 0


def test_a_fresh_checkout_of_the_same_files_changes_nothing(user: Path, tree: PatchedTree) -> None:
    sources.copy_changes(user, tree)
    before = state_of(tree.source)
    for path in user.rglob("*"):
        os.utime(path)
    assert sources.copy_changes(user, tree) == 0
    assert state_of(tree.source) == before
    (user / "configure").write_bytes((user / "configure").read_bytes()[::-1])
    assert sources.copy_changes(user, tree) == 1


def test_an_edited_file_keeps_its_edit_when_the_user_changes_it(
    user: Path, tree: PatchedTree
) -> None:
    added = Additions({"make/ours.gmk": b"ours"}, (Edit("make/jvm.gmk", "^setup$", "before", "+"),))
    sources.copy_changes(user, tree)
    tree.apply(added)
    assert sources.copy_changes(user, tree) == 0
    assert (tree.source / "make" / "jvm.gmk").read_text() == "+setup\n"
    assert (tree.source / "make" / "ours.gmk").exists()
    (user / "make" / "jvm.gmk").write_text("new\nsetup\n")
    assert sources.copy_changes(user, tree) == 1
    assert tree.apply(added) == ["make/jvm.gmk"]
    assert (tree.source / "make" / "jvm.gmk").read_text() == "new\n+setup\n"


def test_a_users_file_with_the_name_of_an_addition(user: Path, tree: PatchedTree) -> None:
    sources.copy_changes(user, tree)
    tree.apply(Additions({"make/ours.gmk": b"ours"}, ()))
    (user / "make" / "ours.gmk").write_text("theirs")
    with pytest.raises(FramestormError, match=r"make/ours\.gmk is in the JDK source"):
        sources.copy_changes(user, tree)


def test_content_changes_with_a_file_and_not_with_what_is_left_out(user: Path) -> None:
    before = sources.content_of_tree(user)
    (user / "test").mkdir()
    (user / "test" / "T.java").write_text("")
    assert sources.content_of_tree(user) == before
    (user / "make" / "jvm.gmk").write_text("other\n")
    assert sources.content_of_tree(user) != before
