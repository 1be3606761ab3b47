import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm_cli.base import packages
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import debian

DEB822 = """\
Types: deb deb-src
# a comment
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main contrib

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb [arch=amd64] http://vendor.example/apt stable main
deb http://mirror.example/debian bookworm main contrib
deb http://mirror.example/debian-security bookworm-security main
"""
SOURCES = """\
Package: openjdk-25
Version: 25.0.1+8-1
Files:
 00000000000000000000000000000000 9 openjdk-25_25.0.1+8.orig.tar.xz
Checksums-Sha256:
 {a} 5158 openjdk-25_25.0.1+8-1.dsc
 {b} 9 openjdk-25_25.0.1+8.orig.tar.xz
Homepage: https://openjdk.java.net/

Package: openjdk-25
Version: 25.0.10+9-2~deb13u1
Checksums-Sha256:
 {c} 613408 openjdk-25_25.0.10+9.orig-googletest.tar.xz
 {d} 74084132 openjdk-25_25.0.10+9.orig.tar.xz
""".format(a="a" * 64, b="b" * 64, c="c" * 64, d="d" * 64)


@pytest.mark.parametrize(("name", "text"), [("debian.sources", DEB822), ("sources.list", ONE_LINE)])
def test_the_mirror_is_the_machines_in_both_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / name.replace("sources.list", "one.list")).write_text(text)
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{parts}";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    assert debian.mirrors() == (
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    )


def test_sources_that_apt_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "bad.list").write_text("deb nonsense\n")
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{parts}";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    with pytest.raises(FramestormError, match="cannot read the machine's sources"):
        debian.mirrors()


_ARCHIVE = ("http://deb.debian.org/debian", "http://deb.debian.org/debian-security")


def listing(*releases: str) -> str:
    return "".join(f"'{release}/InRelease' some_file 0 \n" for release in releases)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", _ARCHIVE),
        (listing("http://m/ubuntu/dists/noble"), _ARCHIVE),
        (listing("http://m/debian/dists/sid"), ("http://m/debian", "http://m/debian-security")),
        (
            listing("http://m/debian/dists/x-backports", "http://n/debian/dists/x"),
            ("http://n/debian", "http://n/debian-security"),
        ),
        (
            listing("http://s/debian-security/dists/x-security", "http://m/debian/dists/x"),
            ("http://m/debian", "http://s/debian-security"),
        ),
    ],
)
def test_choice_of_the_mirror(lines: str, expected: tuple[str, str]) -> None:
    assert debian.choose_mirrors(lines) == expected


def test_upstream_tarballs_newest_first() -> None:
    found = debian.parse_sources(SOURCES)
    assert [(e.version, e.name, e.sha256[0]) for e in found] == [
        ("25.0.10+9-2~deb13u1", "openjdk-25_25.0.10+9.orig.tar.xz", "d"),
        ("25.0.1+8-1", "openjdk-25_25.0.1+8.orig.tar.xz", "b"),
    ]


def test_a_configuration_of_its_own_that_refuses_unsigned_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "mirrors", lambda: ("http://m/debian", "http://s/debian-security"))
    options = debian.configuration(tmp_path, "trixie")
    assert (tmp_path / "sources.list").read_text().splitlines() == [
        f"deb-src [signed-by={debian.KEYRING}] http://m/debian trixie main",
        f"deb-src [signed-by={debian.KEYRING}] http://s/debian-security trixie-security main",
    ]
    assert "Acquire::AllowInsecureRepositories=false" in options
    debian.configuration(tmp_path, "sid")  # which has no security archive
    assert (tmp_path / "sources.list").read_text().splitlines() == [
        f"deb-src [signed-by={debian.KEYRING}] http://m/debian sid main"
    ]
    assert f"Dir::State::Lists={tmp_path / 'lists'}" in options


APT = """\
case "$*" in
*showsrc*) cat "$FAKE/showsrc" ;;
*--download-only*) printf "$CONTENT" > openjdk-25_25.0.3+9.orig.tar.xz; exit 100 ;;
esac
"""


@pytest.fixture
def fake_apt(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that fails for a file of the package that is missing, as partial mirrors make it."""
    folder = tmp_path / "fake"
    folder.mkdir()
    for name in ("apt-get", "apt-cache"):
        (folder / name).write_text(f"#!/bin/sh\n{APT}")
        (folder / name).chmod(0o755)
    digest = hashlib.sha256(b"tarball").hexdigest()
    name = "openjdk-25_25.0.3+9.orig.tar.xz"
    (folder / "showsrc").write_text(f"Version: 25.0.3+9-2\nChecksums-Sha256:\n {digest} 7 {name}\n")
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("CONTENT", "tarball")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "ensure", lambda *_: None)
    monkeypatch.setattr(debian, "PINNED", {})
    return folder


HELPER = """echo "$@" >> "$FAKE/asked"
for last; do :; done
printf "$CONTENT" > fetched
[ "$last" = "SHA256:$(sha256sum < fetched | cut -d' ' -f1)" ] || { mv fetched "$5.FAILED"; exit 100; }
mv fetched "$5"
"""


@pytest.fixture
def pinned(fake_apt: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    helper = fake_apt / "apt-helper"
    helper.write_text(f"#!/bin/sh\n{HELPER}")
    helper.chmod(0o755)
    monkeypatch.setattr(debian, "_APT_HELPER", str(helper))
    monkeypatch.setattr(debian, "mirrors", lambda: ("http://m/debian", "http://s/debian-security"))
    monkeypatch.chdir(fake_apt)
    one = debian.parse_sources(SOURCES)[0]
    digest = hashlib.sha256(b"pinned").hexdigest()
    monkeypatch.setattr(debian, "PINNED", {"openjdk-25": replace(one, sha256=digest)})
    return fake_apt


def test_the_pinned_tarball_is_taken_whatever_is_listed(
    tmp_path: Path, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTENT", "pinned")
    got = debian.fetch("openjdk-25", tmp_path / "downloads")
    assert (got.path.read_text(), got.version) == ("pinned", "25.0.10+9-2~deb13u1")
    asked = (pinned / "asked").read_text()
    assert "http://m/debian/pool/main/o/openjdk-25/openjdk-25_25.0.10%2B9.orig.tar.xz" in asked


def test_where_the_pinned_tarball_is_gone_the_newest_that_is_listed_is_taken(
    tmp_path: Path, pinned: Path
) -> None:
    got = debian.fetch("openjdk-25", tmp_path / "downloads")
    assert (got.path.read_text(), got.version) == ("tarball", "25.0.3+9-2")
    assert list((tmp_path / "downloads").glob("*.FAILED")) == []


def test_the_tarball_is_kept_and_not_downloaded_again(
    tmp_path: Path, fake_apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = debian.fetch("openjdk-25", tmp_path / "downloads")
    assert got.path.read_text() == "tarball"
    monkeypatch.setenv("PATH", "/nowhere")
    assert debian.fetch("openjdk-25", tmp_path / "downloads") == got


def test_a_tarball_that_the_list_does_not_vouch_for_is_removed(
    tmp_path: Path, fake_apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTENT", "tampered")
    with pytest.raises(FramestormError, match="SHA-256 differs"):
        debian.fetch("openjdk-25", tmp_path / "downloads")
    assert list((tmp_path / "downloads").glob("*.tar.xz")) == []


def test_a_kept_tarball_that_was_damaged_is_downloaded_again(
    tmp_path: Path, fake_apt: Path
) -> None:
    got = debian.fetch("openjdk-25", tmp_path / "downloads")
    got.path.write_text("cut o")
    assert debian.fetch("openjdk-25", tmp_path / "downloads").path.read_text() == "tarball"
