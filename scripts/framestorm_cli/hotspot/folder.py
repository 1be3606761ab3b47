"""Makes a complete JDK folder: another JDK's files with the libjvm that was built."""

import os
import shutil
import subprocess
from pathlib import Path

from framestorm_cli import elf, steps
from framestorm_cli.errors import FramestormError
from framestorm_cli.hotspot import additions
from framestorm_cli.hotspot.running import environment

ASAN_RUNTIME = "libclang_rt.asan-x86_64.so"
# ASan wants to come first in a process, by name: this one counts as part of it, and is asked first.
ASAN_OPTIONS = "libclang_rt.asan-framestorm.so"
_OPTIONS_SOURCE = additions.FOLDER / "runtime" / "asan_options.c"
_OPTIONS_FLAGS = ("-shared", "-fPIC", "-O1", "-nostdlib", f"-Wl,-soname,{ASAN_OPTIONS}")
_LIBJVM = Path("lib") / "server" / "libjvm.so"


def options_source() -> bytes:
    """What the default options of the sanitizers are compiled from."""
    return _OPTIONS_SOURCE.read_bytes()


def copy_base(home: Path, base: Path) -> None:
    """Copies a JDK without its libjvm and CDS archives; instrumented JDKs share these files."""

    def skip(folder: str, names: list[str]) -> set[str]:
        if Path(folder).relative_to(home) != _LIBJVM.parent:
            return set()
        return {name for name in names if name == _LIBJVM.name or name.endswith(".jsa")}

    scratch = base.with_name(f"{base.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(home, scratch, symlinks=True, ignore=skip)
    scratch.rename(base)


def link_base(base: Path, into: Path) -> None:
    """Fills `into` with hard links to the base's files: no bytes are copied."""
    shutil.copytree(base, into, symlinks=True, copy_function=os.link)


def put_libjvm(library: Path, into: Path) -> None:
    """Puts a libjvm into the folder, after a look at what has to be in it."""
    missing = [
        name
        for name in ("AsyncGetCallTrace", "gHotSpotVMStructs", "framestorm_coverage")
        if not elf.exports(library, name)
    ]
    if missing:
        raise FramestormError(
            f"{library} does not export {', '.join(missing)}: the build went wrong"
        )
    target = into / _LIBJVM
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(library, target)


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
    _call(["patchelf", "--add-rpath", "$ORIGIN/..", str(into / _LIBJVM)])
    for program in sorted((into / "bin").iterdir()):
        if not _is_launcher(program):
            continue
        scratch = program.with_name(f"{program.name}.new")
        shutil.copy2(program, scratch)  # the file itself is shared with other JDK folders
        needed = [ASAN_OPTIONS, ASAN_RUNTIME]
        # patchelf puts each before what is there.
        for name in reversed(needed):
            _call(["patchelf", "--add-needed", name, str(scratch)])
        _call(["patchelf", "--set-rpath", "$ORIGIN:$ORIGIN/../lib", str(scratch)])
        first = elf.needed(scratch)[:2]
        if first != needed:
            raise FramestormError(f"patchelf left {first} as the first libraries of {program.name}")
        scratch.replace(program)


def _is_launcher(program: Path) -> bool:
    if program.is_symlink() or not program.is_file():
        return False
    try:
        return "libjli.so" in elf.needed(program)
    except elf.NotElfError:
        return False


def _runtime(compiler: str) -> Path:
    found = subprocess.run(
        [compiler, f"-print-file-name={ASAN_RUNTIME}"], capture_output=True, text=True, check=False
    )
    path = Path(found.stdout.strip())
    if not path.is_absolute() or not path.exists():
        raise FramestormError(
            f"{compiler} has no {ASAN_RUNTIME}: install the package libclang-rt-19-dev"
        )
    return path


def finish(into: Path, log: Path) -> None:
    """Dumps the CDS archives and starts the JVM once. Raises FramestormError when it does not."""
    java = str(into / "bin" / "java")
    for flags in ([], ["-XX:-UseCompressedOops"]):
        _call([java, *flags, "-Xshare:dump"], log)
    _call([java, "-Xshare:auto", "-version"], log)


def _call(command: list[str], log: Path | None = None) -> None:
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
    if log is not None:
        with log.open("a", encoding="utf-8") as text:
            text.write(f"$ {' '.join(command)}\n{done.stdout}")
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-steps.TAIL_LINES :])
        raise FramestormError(f"`{' '.join(command)}` failed (exit {done.returncode}):\n{last}")
