import os
import re
import shutil
from pathlib import Path

import pytest

from framestorm_cli.base import packages, paths
from framestorm_cli.base.errors import FramestormError


def test_what_is_not_installed_is_missing() -> None:
    assert packages.missing(["bash", "no-such-package-of-framestorm"]) == [
        "no-such-package-of-framestorm"
    ]
    assert packages.missing(["bash"]) == []


def test_without_dpkg_programs_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert packages.missing() == list(packages.PROGRAMS)


def test_neither_root_nor_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name == "sudo" else f"/usr/bin/{name}"
    )
    with pytest.raises(FramestormError) as error:
        packages.install(["clang-19"])
    assert "neither root nor sudo" in error.value.message
    assert "apt-get install clang-19" in error.value.message


def test_no_apt_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(FramestormError, match="no apt-get"):
        packages.install(["clang-19"])


def test_a_failing_apt_get_shows_its_log(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Unable to fetch some archives'\nexit 100\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(FramestormError) as error:
        packages.install(["no-such-package-of-framestorm"])
    assert "E: Unable to fetch some archives" in error.value.message
    assert "apt sources" in error.value.message


def test_nothing_is_installed_when_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("apt-get must not be called")

    monkeypatch.setattr(packages, "install", fail)
    packages.ensure(["bash"])


def test_whatever_the_build_looks_for_has_a_package() -> None:
    """`.ci/run` on a machine with nothing: what cmake finds here, it has to find there."""
    providers = {
        "Threads": "clang-19", "GTest": "libgtest-dev", "CLI11": "libcli11-dev",
        "nlohmann_json": "nlohmann-json3-dev", "PkgConfig": "pkg-config", "libelf": "libelf-dev",
    }  # fmt: skip
    wanted = set()
    for path in paths.CHECKOUT.rglob("CMakeLists.txt"):
        text = path.read_text(encoding="utf-8")
        wanted |= set(re.findall(r"find_package\((\w+)", text))
        wanted |= set(re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET (\w+)\)", text))
    assert "libelf" in wanted
    assert {providers[name] for name in wanted} <= set(packages.BUILD_PACKAGES)
