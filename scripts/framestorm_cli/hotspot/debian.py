"""OpenJDK's source from a Debian archive, through the machine's own mirror.

A private apt configuration: nothing of the machine's is changed, and the suite that has the sources
need not be one the machine installs from. Where to download is what the machine's apt says. A pinned
tarball is checked by its pin. Of others apt checks what comes down the chain (InRelease by the archive's
signature, Sources by InRelease, the tarball by Sources) and is told to refuse anything else.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from framestorm_cli.base import files, packages, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot.errors import writing

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
KEYRING_PACKAGE = "debian-archive-keyring"
PREFIX = "debian:"  # of a --source
# Which suite has which sources. A Debian release has one or two OpenJDK releases.
SUITES = {"openjdk-25": "trixie", "openjdk-26": "sid"}
_UNSTABLE = ("sid",)  # has no security archive
_DEFAULT = "http://deb.debian.org/debian"
_APT_HELPER = "/usr/lib/apt/apt-helper"


@dataclass(frozen=True)
class Download:
    """A source tarball whose checksum is the signed archive's."""

    path: Path
    sha256: str
    version: str  # Debian's, "25.0.3+9-2~deb13u1"


@dataclass(frozen=True)
class _Listed:
    version: str
    name: str
    sha256: str


# What the additions, the coverage floors and the known crashes were made with: asked for first. A mirror
# may list a newer one that it does not have yet, and have this one when it lists it no more.
PINNED = {
    "openjdk-25": _Listed(
        "25.0.3+9-2~deb13u1",
        "openjdk-25_25.0.3+9.orig.tar.xz",
        "2dd6c441b49705480db1ebfcd03f43d5dcb7f1d4290e98c1fa6eeefae50cfa07",
    ),
    "openjdk-26": _Listed(
        "26.0.2.1+1-1",
        "openjdk-26_26.0.2.1+1.orig.tar.xz",
        "b9a893567232edf475e1511ce2de897a00bc3d775f2e46269f492164150f0d76",
    ),
}


def mirrors() -> tuple[str, str]:
    """The machine's Debian mirror and its mirror of the security archive.

    apt reads its own configuration, so both of its formats are understood, and says what it would
    download; nothing is. A machine that is no Debian gets the archive itself.
    """
    listed = steps.captured(["apt-get", "update", "--print-uris", "-o", "Debug::NoLocking=1"])
    if listed.returncode != 0:
        raise FramestormError(f"apt-get cannot read the machine's sources: {listed.stderr.strip()}")
    return choose_mirrors(listed.stdout)


def choose_mirrors(lines: str) -> tuple[str, str]:
    """Debian and security mirror among apt's lines of `'<mirror>/dists/<suite>/InRelease' ...`."""
    main, security = "", ""
    for uri, suite in re.findall(r"^'(\S+?)/+dists/([^/']+)/InRelease'", lines, re.MULTILINE):
        if uri.endswith("debian-security"):
            security = security or uri
        elif uri.endswith("/debian") and not suite.endswith("-backports"):
            main = main or uri
    main = main or _DEFAULT
    return main, security or f"{main.removesuffix('/debian')}/debian-security"


def configuration(folder: Path, suite: str) -> list[str]:
    """Writes a private apt configuration below `folder`; returns the options that select it."""
    main, security = mirrors()
    lists, cache, parts = folder / "lists", folder / "cache", folder / "parts"
    for path in (lists / "partial", cache / "archives" / "partial", parts):
        path.mkdir(parents=True, exist_ok=True)
    archives = [(main, suite)]
    if suite not in _UNSTABLE:
        archives.append((security, f"{suite}-security"))
    sources = folder / "sources.list"
    sources.write_text(
        "".join(f"deb-src [signed-by={KEYRING}] {uri} {name} main\n" for uri, name in archives),
        encoding="utf-8",
    )
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": parts,
        "Dir::State::Lists": lists,
        "Dir::Cache": cache,
        "Debug::NoLocking": "1",
        "Acquire::GzipIndexes": "false",
        "Acquire::Languages": "none",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::AllowWeakRepositories": "false",
        "APT::Get::AllowUnauthenticated": "false",
        # An administrator's sandbox user cannot write into somebody's cache folder.
        "APT::Sandbox::User": "root",
    }
    return [argument for key, value in options.items() for argument in ("-o", f"{key}={value}")]


def fetch(package: str, folder: Path) -> Download:
    """The package's source tarball: the one in `folder` if any, else the pinned one, else the newest that
    the mirror has."""
    if package not in SUITES:
        raise FramestormError(f"debian:{package} is not known; known: {', '.join(sorted(SUITES))}")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        record = folder / f"{package}.json"
        with steps.locked(f"{package}-source", f"downloading {package}"):
            there = _recorded(record)
            if there is not None:
                return there
            packages.ensure((KEYRING_PACKAGE,))
            found = _download_pinned(package, folder) or _download(package, folder)
            what = {"name": found.path.name, "sha256": found.sha256, "version": found.version}
            record.write_text(json.dumps(what), encoding="utf-8")
    return found


def _recorded(record: Path) -> Download | None:
    """A tarball that was downloaded and checked before; its size and content are checked again."""
    try:
        entry = json.loads(record.read_text(encoding="utf-8"))
        path = record.with_name(entry["name"])
        if files.sha256(path) == entry["sha256"]:
            return Download(path, entry["sha256"], entry["version"])
    except (OSError, ValueError, KeyError):
        pass
    return None


def _download_pinned(package: str, folder: Path) -> Download | None:
    """None when nothing is pinned, or the mirror has it no more."""
    pinned = PINNED.get(package)
    if pinned is None:
        return None
    steps.say(f"downloading {pinned.name}")
    path = folder / pinned.name
    main, _ = mirrors()
    uri = f"{main}/pool/main/{package[0]}/{package}/{quote(pinned.name)}"
    command = [_APT_HELPER, "-o", "APT::Sandbox::User=root", "download-file", uri]
    with (folder / "apt-source.log").open("wb") as log:
        done = subprocess.run(
            [*command, str(path), f"SHA256:{pinned.sha256}"], stdout=log, stderr=log, check=False
        )
    # What is not as pinned is kept by apt-helper under another name.
    path.with_name(f"{path.name}.FAILED").unlink(missing_ok=True)
    return Download(path, pinned.sha256, pinned.version) if done.returncode == 0 else None


def _download(package: str, folder: Path) -> Download:
    apt = folder / "apt"
    options = configuration(apt, SUITES[package])
    steps.run_logged(
        ["apt-get", *options, "update"],
        what=f"reading the source lists of Debian {SUITES[package]}",
        log_name="jdk-apt-update",
        advice="Check the machine's apt sources and its network, or give --source TARBALL or DIR.",
    )
    shown = steps.captured(["apt-cache", *options, "showsrc", "--only-source", package])
    listed = parse_sources(shown.stdout)
    if not listed:
        raise FramestormError(
            f"the mirror's {SUITES[package]} has no source package {package}: give --source TARBALL or DIR"
        )
    for entry in listed:
        # Other files of the package may be missing on a partial mirror, so the exit code says little.
        with (folder / "apt-source.log").open("wb") as log:
            steps.say(f"downloading {entry.name}")
            command = ["source", "--tar-only", "--download-only", f"{package}={entry.version}"]
            subprocess.run(
                ["apt-get", *options, *command], cwd=folder, stdout=log, stderr=log, check=False
            )
        path = folder / entry.name
        if not path.exists():
            continue
        if files.sha256(path) != entry.sha256:  # apt leaves what a broken connection brought
            path.unlink()
            raise FramestormError(
                f"{entry.name} is not what the signed source list says (SHA-256 differs): the mirror or "
                "the connection is not to be trusted"
            )
        return Download(path, entry.sha256, entry.version)
    raise FramestormError(
        f"the mirror has none of {', '.join(entry.name for entry in listed)}; last lines of "
        f"{folder / 'apt-source.log'}:\n{steps.tail(folder / 'apt-source.log', 8)}"
    )


def parse_sources(text: str) -> list[_Listed]:
    """The upstream tarballs in `apt-cache showsrc` output, newest version first."""
    found = []
    for paragraph in text.split("\n\n"):
        version = re.search(r"^Version: (.+)$", paragraph, re.MULTILINE)
        sums = re.search(r"^Checksums-Sha256:\s*\n((?: .+\n?)+)", paragraph, re.MULTILINE)
        if version is None or sums is None:
            continue
        tarball = re.search(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)$", sums[1], re.MULTILINE)
        if tarball is not None:
            found.append(_Listed(version[1], tarball[2], tarball[1]))
    return sorted(
        found, key=lambda e: [int(n) for n in re.findall(r"\d+", e.version)], reverse=True
    )
