"""JDKs with one planted bug each: the files of the instrumented JDK, and a libjvm of its own.

<cache>/jdk/planted/<variant>-<bug>-<key>: hard links to the JDK without a bug, and libjvm.so with its debug
sections compressed. All are built in the tree of the variant, where only what an edit touches is compiled.
"""

import shutil
import subprocess
from pathlib import Path

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.detect.catalogue import Bug
from framestorm_cli.hotspot import additions, building, folder
from framestorm_cli.hotspot.building import Request
from framestorm_cli.hotspot.errors import writing
from framestorm_cli.jdks import store

_LIBJVM = Path("lib") / "server" / "libjvm.so"
_OBJCOPY = "llvm-objcopy-19"


def control(variant: str) -> Path:
    """The JDK without a bug. Raises FramestormError."""
    return building.ensure(Request(variant=variant))


def planted(bug: Bug, variant: str) -> Path:
    """The JDK with this bug, built when it is not there. Raises FramestormError."""
    without = control(variant)
    with writing(store.folder()):
        build = building.build_of(Request(variant=variant), bug.planted(additions.load()))
        homes = store.folder() / "planted"
        home = homes / f"{variant}-{bug.id}-{build.key[:12]}"
        if home.exists():
            return home
        homes.mkdir(parents=True, exist_ok=True)
        steps.say(f"planting {bug.id} in {variant}")
        with build.locked() as lock:
            if not home.exists():
                for older in homes.glob(f"{variant}-{bug.id}-*"):
                    shutil.rmtree(older, ignore_errors=True)
                _assemble(without, build.library(lock), home)
    return home


def _assemble(without: Path, library: Path, home: Path) -> None:
    scratch = home.with_name(f".new-{home.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    folder.link_base(without, scratch)
    for name in (_LIBJVM, Path(store.RECORD)):  # a file of its own, not through the hard link
        (scratch / name).unlink()
    shutil.copyfile(without / store.RECORD, scratch / store.RECORD)
    _call(_OBJCOPY, "--compress-debug-sections=zstd", str(library), str(scratch / _LIBJVM))
    java = str(scratch / "bin" / "java")
    if subprocess.run(
        [java, "-Xshare:on", "-version"], capture_output=True, check=False
    ).returncode:
        # The archives know their libjvm by the time it was built at.
        for archive in (scratch / _LIBJVM.parent).glob("*.jsa"):
            archive.unlink()
        folder.finish(scratch, store.folder() / "logs" / "planted.log")
    scratch.rename(home)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FramestormError(f"`{' '.join(command)}` failed: {done.stderr}")
