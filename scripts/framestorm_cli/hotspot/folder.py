"""Makes a complete JDK folder: another JDK's files with the libjvm that was built."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.hotspot import additions
from framestorm_cli.hotspot.additions import Additions
from framestorm_cli.hotspot.running import environment

ASAN_RUNTIME = "libclang_rt.asan-x86_64.so"
# ASan wants to come first in a process, by name: this one counts as part of it, and is asked first.
ASAN_OPTIONS = "libclang_rt.asan-framestorm.so"
_OPTIONS_SOURCE = additions.FOLDER / "runtime" / "asan_options.c"
_OPTIONS_FLAGS = ("-shared", "-fPIC", "-O1", "-nostdlib", f"-Wl,-soname,{ASAN_OPTIONS}")
_LIBJVM = Path("lib") / "server" / "libjvm.so"
_HEADERS = "src/java.base/share/native/include/"


def options_source() -> bytes:
    """What the default options of the sanitizers are compiled from."""
    return _OPTIONS_SOURCE.read_bytes()


def copy_base(home: Path, base: Path, asan: str | None) -> None:
    """Copies a JDK without its libjvm and CDS archives; instrumented JDKs share these files.

    `asan` is the compiler whose ASan runtime the programs are to start with, if any.
    """

    def skip(folder: str, names: list[str]) -> set[str]:
        if Path(folder).relative_to(home) != _LIBJVM.parent:
            return set()
        return {name for name in names if name == _LIBJVM.name or name.endswith(".jsa")}

    scratch = base.with_name(f"{base.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(home, scratch, symlinks=True, ignore=skip)
    if asan is not None:
        add_asan(scratch, asan)
    scratch.rename(base)


def link_base(base: Path, into: Path) -> None:
    """Fills `into` with hard links to the base's files: no bytes are copied."""
    shutil.copytree(base, into, symlinks=True, copy_function=os.link)


_OWN_EXPORTS = ("AsyncGetCallTrace", "gHotSpotVMStructs")
_ADDED_EXPORTS = ("AsyncGetStackTrace", "framestorm_coverage")


def put_libjvm(library: Path, into: Path, *, with_additions: bool) -> None:
    """Puts a libjvm into the folder, after a look at what has to be in it."""
    wanted = (*_OWN_EXPORTS, *(_ADDED_EXPORTS if with_additions else ()))
    missing = [name for name in wanted if not elf.exports(library, name)]
    if missing:
        raise FramestormError(
            f"{library} does not export {', '.join(missing)}: the build went wrong"
        )
    target = into / _LIBJVM
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library, target)


def put_headers(added: Additions, into: Path) -> None:
    """Puts the headers of the added walkers where jni.h is."""
    for name, content in added.files.items():
        if not name.startswith(_HEADERS):
            continue
        target = into / "include" / Path(name).name
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)  # not through a hard link
        target.write_bytes(content)


def add_asan(into: Path, compiler: str) -> None:
    """Makes the folder's programs start with ASan's runtime, which stands in lib/ then.

    ASan has to be loaded before anything else. The launchers are given two more libraries to load
    first: the runtime's options, and the runtime. All by $ORIGIN, so the folder can be moved.
    """
    runtime = _runtime(compiler)
    lib = into / "lib"
    shutil.copy2(runtime, lib / ASAN_RUNTIME)
    _call(
        [compiler, *_OPTIONS_FLAGS, "-o", str(lib / ASAN_OPTIONS), str(_OPTIONS_SOURCE)],
    )
    for program in sorted((into / "bin").iterdir()):
        if not _is_launcher(program):
            continue
        needed = [ASAN_OPTIONS, ASAN_RUNTIME]
        # patchelf puts each before what is there.
        for name in reversed(needed):
            _call(["patchelf", "--add-needed", name, str(program)])
        _call(["patchelf", "--set-rpath", "$ORIGIN:$ORIGIN/../lib", str(program)])
        first = elf.needed(program)[:2]
        if first != needed:
            raise FramestormError(f"patchelf left {first} as the first libraries of {program.name}")


def _is_launcher(program: Path) -> bool:
    if program.is_symlink() or not program.is_file():
        return False
    try:
        return "libjli.so" in elf.needed(program)
    except elf.NotElfError:
        return False


def _runtime(compiler: str) -> Path:
    found = steps.captured([compiler, f"-print-file-name={ASAN_RUNTIME}"])
    path = Path(found.stdout.strip())
    if not path.is_absolute() or not path.exists():
        raise FramestormError(
            f"{compiler} has no {ASAN_RUNTIME}: install the package libclang-rt-19-dev"
        )
    return path


def finish(into: Path, log: Path) -> None:
    """Dumps the CDS archives and starts the JVM once. Raises FramestormError when it does not."""
    java = str(into / "bin" / "java")
    dumps = [[java, *flags, "-Xshare:dump"] for flags in ([], ["-XX:-UseCompressedOops"])]
    with ThreadPoolExecutor() as both:
        for output in both.map(_call, dumps):
            _append(log, output)
    _append(log, _call([java, "-Xshare:auto", "-version"]))


def _append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


def _call(command: list[str]) -> str:
    """Runs a short command; returns it with its output. Raises FramestormError when it fails."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise FramestormError(f"{command[0]} is not there: install it") from error
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-steps.TAIL_LINES :])
        raise FramestormError(f"`{' '.join(command)}` failed (exit {done.returncode}):\n{last}")
    return f"$ {' '.join(command)}\n{done.stdout}"
