"""JDKs with a planted bug each, one with every mutant, one without additions: the instrumented JDK with
another libjvm.

<cache>/jdk/planted/<variant>-<bug>-<key>: hard links to the JDK without a bug, and libjvm.so with its debug
sections compressed. All are built in the tree of the variant, where only what an edit touches is compiled.
"""

import hashlib
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from framestorm_cli.base import steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.coverage import tables
from framestorm_cli.coverage.run import FLOOR
from framestorm_cli.detect import catalogue, mutation
from framestorm_cli.detect.catalogue import Bug
from framestorm_cli.detect.mutation import Mutant, Mutator
from framestorm_cli.hotspot import additions, building, folder
from framestorm_cli.hotspot.additions import Additions, Edit
from framestorm_cli.hotspot.building import Build, Request
from framestorm_cli.hotspot.errors import writing
from framestorm_cli.jdks import store

_LIBJVM = Path("lib") / "server" / "libjvm.so"
_MUTANTS = "mutants.json"
_ADDITIONS = "additions"
_MAKE = "make/"
_OBJCOPY = "llvm-objcopy-19"


@cache
def control(variant: str) -> Path:
    """The JDK without a bug. Raises FramestormError."""
    return building.ensure(Request(variant=variant))


def planted(bug: Bug, variant: str) -> Path:
    """The JDK with this bug, built when it is not there. Raises FramestormError."""
    edited = bug.planted(additions.load())
    return _with_other(variant, bug.id, edited, f"planting {bug.id} in {variant}")


def without_additions(variant: str) -> Path:
    """The JDK with HotSpot's own libjvm, compiled with the same flags; built when it is not there. Raises
    FramestormError."""
    less = flags_alone(additions.load())
    return _with_other(variant, "without", less, f"building {variant} without the additions")


def _with_other(variant: str, name: str, added: Additions, doing: str) -> Path:
    """The JDK of the variant with other additions."""
    without = control(variant)
    with writing(store.folder()):
        build = building.build_of(Request(variant=variant), added)
        home = _home(variant, name, build)
        if home.exists():
            return home
        steps.say(doing)
        with build.locked() as lock:
            if not home.exists():
                _assemble(without, build.library(lock), home)
    return home


def flags_alone(added: Additions) -> Additions:
    """What HotSpot's files are compiled with, and no source."""
    return Additions(
        {name: content for name, content in added.files.items() if name.startswith(_MAKE)},
        tuple(edit for edit in added.edits if edit.file.startswith(_MAKE)),
        added.jdk,
    )


@cache
def mutated(variant: str, *, statements: bool = False) -> Path:
    """The JDK with every mutant, built when it is not there; read_mutants() says which. `statements`: as
    Mutator has it. Raises FramestormError."""
    with writing(store.folder()):
        added = additions.load()
        build = building.build_of(Request(variant=variant), added)
        name = "statements" if statements else "mutants"
        home = _home(variant, name, build, mutation.rules() + _ADDITIONS.encode())
        if home.exists():
            return home
        without = control(variant)
        steps.say(f"mutating the walkers of {variant}")
        with build.locked() as lock:
            if not home.exists():
                # What make keeps of each file's command is there once it was compiled.
                build.library(lock)
                more, mutants = _mutations(build, added, statements=statements)
                library = building.build_of(Request(variant=variant), more).library(lock)
                sources = {f"{_ADDITIONS}/{name}": content for name, content in more.files.items()}
                _assemble(
                    without, library, home, {**sources, _MUTANTS: msgspec.json.encode(mutants)}
                )
    return home


def read_mutants(home: Path) -> list[Mutant]:
    """Of a JDK that mutated() gave."""
    return msgspec.json.decode((home / _MUTANTS).read_bytes(), type=list[Mutant])


def mutated_additions(home: Path) -> Path:
    """Of the same: src/hotspot of the sources that are added to HotSpot, with their mutants."""
    return home / _ADDITIONS / "src" / "hotspot"


def _home(variant: str, name: str, build: Build, more: bytes = b"") -> Path:
    """`more`: that shapes it beside the build."""
    key = hashlib.sha256(build.key.encode() + more).hexdigest()
    return store.folder() / "planted" / f"{variant}-{name}-{key[:12]}"


def _mutations(
    build: Build, added: Additions, *, statements: bool
) -> tuple[Additions, list[Mutant]]:
    """What is added to a source tree so that the floor's functions have all their mutants."""
    objects = build.folder / "hotspot" / "variant-server" / "libjvm" / "objs"
    source = build.patched.source
    mutator = Mutator(set(tables.read_floor(FLOOR)), statements=statements)
    edits = []
    stems = tables.walker_stems()
    for command in sorted(objects.glob("*.o.cmdline")):
        file = command.name.replace(".o.cmdline", ".cpp")
        path = next((source / "src" / "hotspot").rglob(file), None)
        if path is None or tables.stem_of(file) not in stems:
            continue
        name = str(path.relative_to(source))
        before = len(mutator.mutants)
        arguments = mutation.arguments_of(command.read_text(encoding="utf-8"))
        text = mutator.mutated(path, name, arguments)
        if text is not None:
            steps.say(f"{name}: {len(mutator.mutants) - before} mutants")
            edits.append(Edit(name, r"\A[\s\S]*\Z", "replace", text))
    return added.with_edits(edits, catalogue.canary_files()), mutator.mutants


def _assemble(
    without: Path, library: Path, home: Path, files: Mapping[str, bytes] | None = None
) -> None:
    """`files`: more of the home, by their path in it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    variant_and_name = home.name.rpartition("-")[0]
    for older in home.parent.glob(f"{variant_and_name}-????????????"):
        shutil.rmtree(older, ignore_errors=True)
    scratch = home.with_name(f".new-{home.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    folder.link_base(without, scratch)
    for name in (_LIBJVM, Path(store.RECORD)):  # a file of its own, not through the hard link
        (scratch / name).unlink()
    shutil.copyfile(without / store.RECORD, scratch / store.RECORD)
    _call(_OBJCOPY, "--compress-debug-sections=zstd", str(library), str(scratch / _LIBJVM))
    if steps.captured([scratch / "bin" / "java", "-Xshare:on", "-version"]).returncode:
        # The archives know their libjvm by the time it was built at.
        for archive in (scratch / _LIBJVM.parent).glob("*.jsa"):
            archive.unlink()
        folder.finish(scratch, store.folder() / "logs" / "planted.log")
    for more, content in (files or {}).items():
        (scratch / more).parent.mkdir(parents=True, exist_ok=True)
        (scratch / more).write_bytes(content)
    scratch.rename(home)


def _call(*command: str) -> None:
    done = steps.captured(command)
    if done.returncode != 0:
        raise FramestormError(f"`{' '.join(command)}` failed: {done.stderr}")
