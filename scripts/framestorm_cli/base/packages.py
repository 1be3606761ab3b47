"""Debian packages the build needs, installed when missing."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError

BUILD_PACKAGES = (
    "clang-19",
    "libclang-rt-19-dev",
    "clang-format-19",
    "clang-tidy-19",
    "lld-19",
    "llvm-19",
    "ninja-build",
    "cmake",
    "pkg-config",
    "libelf-dev",
    "libgtest-dev",
    "libgmock-dev",
    "libcli11-dev",
    "nlohmann-json3-dev",
    "gdb",  # stacks of hung cells, cores
)
JDK_PACKAGE = "openjdk-17-jdk-headless"

# What to look for on a system without dpkg, where packages have other names.
PROGRAMS = ("clang++-19", "lld-19", "llvm-cxxfilt-19", "ninja", "cmake", "pkg-config")


def missing(packages: Sequence[str] = BUILD_PACKAGES) -> list[str]:
    """Which of the packages are not installed. Without dpkg: which programs are not on PATH."""
    if shutil.which("dpkg-query") is None:
        return [program for program in PROGRAMS if shutil.which(program) is None]
    listed = steps.captured(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages]
    )
    installed = {
        line.split()[0] for line in listed.stdout.splitlines() if line.endswith(" installed")
    }
    return [package for package in packages if package not in installed]


def install(wanted: Sequence[str]) -> None:
    """Installs packages through apt-get, as root or by sudo. Raises FramestormError."""
    by_hand = f"apt-get install {' '.join(wanted)}"
    if shutil.which("apt-get") is None:
        raise FramestormError(
            f"missing: {' '.join(wanted)}; there is no apt-get here, so install them by hand"
        )
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]
    if os.geteuid() != 0:
        why = ""
        if shutil.which("sudo") is None:
            why = "neither root nor sudo here"
        elif subprocess.run(["sudo", "-v"], check=False).returncode != 0:
            why = "sudo refused"
        if why:
            raise FramestormError(
                f"missing packages: {' '.join(wanted)}; {why}: have an administrator run `{by_hand}`"
            )
        apt.insert(0, "sudo")
    with steps.locked("packages", "installing packages"):
        still_missing = [p for p in wanted if p in missing(wanted)]
        if not still_missing:
            return
        steps.run_logged(
            [*apt, "update"],
            what="reading package lists",
            log_name="apt-update",
            advice="Check the machine's apt sources and its network.",
        )
        steps.run_logged(
            [*apt, "install", "-y", "--no-install-recommends", *still_missing],
            what=f"installing {' '.join(still_missing)}",
            log_name="apt-install",
            advice=f"framestorm needs Debian 12 or later; try `{by_hand}` by hand.",
        )


def ensure(packages: Sequence[str] = BUILD_PACKAGES) -> None:
    """Installs what is missing; costs one dpkg-query when nothing is."""
    wanted = missing(packages)
    if wanted:
        install(wanted)
