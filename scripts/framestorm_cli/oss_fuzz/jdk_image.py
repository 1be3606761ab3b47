"""The JDK of a bundle: what a JVM with the victims in it reads, and nothing else."""

import os
import shutil
import subprocess
from pathlib import Path

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import whole_folder
from framestorm_cli.binaries import elf
from framestorm_cli.hotspot import building, sources
from framestorm_cli.hotspot.building import Request
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.oss_fuzz.settings import Settings

# Files and folders of lib/ that java.base and libjvm want.
_LIB = (
    "jvm.cfg",
    "modules",
    "security",
    "server",
    "tzdb.dat",
    "libjava.so",
    "libjimage.so",
    "libjli.so",
    "libjsvml.so",
    "libnet.so",
    "libnio.so",
    "libsimdsort.so",
    "libsyslookup.so",
    "libverify.so",
    "libzip.so",
)
_TOP = ("conf", "release", "NOTICE")
_FORMAT = "1"  # of what trimmed() makes
_OBJCOPY = "llvm-objcopy-19"


def choose(settings: Settings) -> Jdk:
    """The JDK under test; built first when there is none. Raises FramestormError."""
    if settings.jdk:
        jdk = jdks.validate(Path(settings.jdk))
    else:
        # Not `instrumented:VARIANT`, which is whatever somebody built last.
        source = settings.jdk_source or sources.DEFAULT
        jdk = jdks.validate(building.ensure(Request(source, None, settings.variant)))
    if jdk.has_asan != (settings.sanitizer == "address"):
        has = "has" if jdk.has_asan else "does not have"
        raise FramestormError(
            f"{jdk.home} {has} ASan: with SANITIZER={settings.sanitizer} it is the variant "
            f"{settings.variant} that fits (`framestorm jdk build --variant {settings.variant}`)"
        )
    return jdk


def trimmed(jdk: Jdk) -> Path:
    """A copy of what the victims use of a JDK, in the cache; nobody writes into it.

    Its libjvm keeps symbols and line tables, the latter compressed: they are three quarters of it.
    """
    stamp = jdk.libjvm.stat()
    folder = paths.cache() / "bundle-jdks" / f"{jdk.home.name}-{stamp.st_mtime_ns:x}-{_FORMAT}"
    if folder.exists():
        os.utime(folder)
        return folder
    with steps.locked("bundle-jdks", "copying a JDK"):
        if folder.exists():
            return folder
        steps.say(f"copying what the victims use of {jdk.home}")
        _keep_newest(folder.parent)
        with whole_folder(folder) as scratch:
            _copy(jdk.home, scratch)
            _compress(scratch / "lib" / "server" / "libjvm.so")
    return folder


def _copy(home: Path, into: Path) -> None:
    (into / "lib").mkdir(parents=True)
    # With their times, which the archives of shared classes know.
    for source in (*(home / name for name in _TOP), *(home / "lib" / name for name in _LIB)):
        if source.is_dir():
            shutil.copytree(source, into / source.relative_to(home))
        elif source.exists():
            shutil.copy2(source, into / source.relative_to(home))
    for name in ("modules", "libjava.so", "server/libjvm.so"):
        if not (into / "lib" / name).exists():
            raise FramestormError(f"{home} has no lib/{name}: is the JDK whole?")


def _compress(library: Path) -> None:
    if shutil.which(_OBJCOPY) is None:
        raise FramestormError(f"{_OBJCOPY} is missing: `apt-get install llvm-19`")
    times = library.stat()
    subprocess.run([_OBJCOPY, "--compress-debug-sections=zlib", str(library)], check=True)
    os.utime(library, ns=(times.st_atime_ns, times.st_mtime_ns))


def _keep_newest(folder: Path, count: int = 3) -> None:
    if not folder.is_dir():
        return
    for old in sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)[count:]:
        shutil.rmtree(old, ignore_errors=True)


def use_runtime(libjvm: Path, runtime: str) -> None:
    """Makes libjvm ask for ASan's runtime by the name that the targets have it under: compilers differ
    in that, and there must be one in a process."""
    own = [name for name in elf.needed(libjvm) if "clang_rt.asan" in name]
    if own and own != [runtime]:
        subprocess.run(["patchelf", "--replace-needed", own[0], runtime, str(libjvm)], check=True)
