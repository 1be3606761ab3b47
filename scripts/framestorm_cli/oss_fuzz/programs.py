"""The targets of a bundle: compiled with OSS-Fuzz's compiler and flags, linked with its engine."""

import os
import subprocess
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.oss_fuzz.settings import Settings

# What every Linux has. All else that a program needs goes with it.
_EVERYWHERE = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux")
RUNTIME = "clang_rt.asan"


def build(settings: Settings, jdk: Jdk) -> Path:
    """Compiles what is out of date and returns the folder with the targets."""
    folder = settings.build_folder
    folder.mkdir(parents=True, exist_ok=True)
    # AFL++'s compiler adds its own instrumentation to what it compiles; the map is libjvm's.
    environment = {**os.environ, "AFL_NOOPT": "1"}
    configure = [
        *("cmake", "-S", str(paths.CHECKOUT), "-B", str(folder), "-G", "Ninja"),
        "-DCMAKE_BUILD_TYPE=",
        f"-DCMAKE_C_COMPILER={settings.cc}",
        f"-DCMAKE_CXX_COMPILER={settings.cxx}",
        f"-DCMAKE_C_FLAGS={settings.cflags}",
        f"-DCMAKE_CXX_FLAGS={settings.cxxflags}",
        "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld",
        f"-DFRAMESTORM_JNI_INCLUDE={toolchain.headers(jdk)}",
        f"-DFRAMESTORM_BUNDLE={settings.engine}",
        f"-DFRAMESTORM_BUNDLE_SANITIZER={settings.sanitizer}",
        f"-DFRAMESTORM_BUNDLE_LINK={settings.link}",
    ]
    name = folder.name
    with steps.locked(name, "building a bundle"):
        if not (folder / "build.ninja").exists():
            steps.run_logged(
                configure,
                what=f"configuring the targets for {settings.engine}",
                log_name=f"{name}-configure",
                advice="Are CC, CXX and their flags those of clang?",
                env=environment,
            )
        steps.run_logged(
            ["ninja", "-C", str(folder), "bundle"],
            what=f"building the targets for {settings.engine}, {settings.sanitizer}",
            log_name=f"{name}-build",
            advice="Fix the error named there.",
            env=environment,
        )
    return folder / "bin" / "bundle"


def libraries(program: Path) -> dict[str, Path]:
    """The shared libraries that a program needs beside those of every Linux, and those that they need:
    file name to where it is here. Raises FramestormError for one that is not found."""
    listed = steps.captured(["ldd", program])
    if listed.returncode != 0:
        raise FramestormError(f"ldd {program}: {listed.stderr.strip() or listed.stdout.strip()}")
    found: dict[str, Path] = {}
    for line in listed.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow or name.startswith(_EVERYWHERE):
            continue
        path = rest.partition(" (")[0]
        if path == "not found":
            raise FramestormError(f"{program} needs {name}, which is not here")
        found[name] = Path(path)
    return found


def asan_runtime(settings: Settings, program: Path) -> Path | None:
    """The runtime that a target was linked with; None without ASan."""
    names = [name for name in elf.needed(program) if RUNTIME in name]
    if not names:
        return None
    command = [settings.cxx, f"-print-file-name={names[0]}"]
    path = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if not path.is_absolute():
        raise FramestormError(f"{settings.cxx} has no {names[0]}, which {program} was linked with")
    return path
