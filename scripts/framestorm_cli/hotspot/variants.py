"""The variants of an instrumented JDK: what configure and the compiler are told for each."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.base.files import write_if_different
from framestorm_cli.hotspot import additions

FLAGS = additions.FOLDER / "flags"
COLLECTORS = {
    "serial": "serialgc",
    "parallel": "parallelgc",
    "g1": "g1gc",
    "z": "zgc",
    "shenandoah": "shenandoahgc",
}
# A file of the build folder that make/hotspot/lib/framestorm_walker_files.gmk reads.
FLAGS_FILE = "framestorm_flags.gmk"

_COVERAGE = ("-fsanitize-coverage=inline-8bit-counters,pc-table",)
# HotSpot calls through other types on purpose (function), is built without RTTI (vptr), reads Java
# heap and bytecodes unaligned (alignment), and shifts negative numbers by its own portable rules
# (shift-base): OpenJDK's --enable-ubsan leaves the last two out as well.
_UBSAN = ("-fsanitize=undefined", "-fno-sanitize=function,vptr,alignment,shift-base")
# Where there is nothing to say: to make a file's flags that are gone are no change.
_NOTHING = ("-DFRAMESTORM_PLAIN",)
# A walk goes on after ASan's report, which is a finding like any other.
_RECOVER = ("-fsanitize-recover=address",)
# HotSpot's walkers read other functions' stack frames on purpose: no redzones there.
_ASAN = "-mllvm -asan-stack=0"


@dataclass(frozen=True)
class Variant:
    name: str
    what: str
    debug_level: str
    sanitized: bool
    coverage: bool
    # UBSan in the walkers without ASan. Its name tells it in flags_digest(), so that keys of JDKs that
    # were built before it hold.
    undefined: bool = field(default=False, repr=False)

    @property
    def configured(self) -> str:
        """What configure is told, by one name: variants of the same one share a build folder."""
        return "sanitized" if self.sanitized else self.debug_level


PLAIN = "plain"
VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(
            "sanitized", "release, ASan, UBSan in the walkers, coverage", "release", True, True
        ),
        Variant("fastdebug", "HotSpot's assertions, coverage", "fastdebug", False, True),
        Variant("coverage", "release, coverage", "release", False, True),
        Variant(
            "undefined", "release, UBSan in the walkers, coverage", "release", False, True, True
        ),
        Variant(PLAIN, "release, neither sanitizers nor coverage", "release", False, False),
    )
}
DEFAULT = "sanitized"


def named(name: str) -> Variant:
    """Raises FramestormError for a name that is none."""
    if name not in VARIANTS:
        raise FramestormError(f"there is no variant {name}; variants: {', '.join(VARIANTS)}")
    return VARIANTS[name]


def collectors(names: tuple[str, ...]) -> tuple[str, ...]:
    """The collectors to build, in one order; all when none is named. Raises FramestormError."""
    unknown = sorted(set(names) - COLLECTORS.keys())
    if unknown:
        raise FramestormError(
            f"there is no collector {', '.join(unknown)}; collectors: {', '.join(COLLECTORS)}"
        )
    return tuple(name for name in COLLECTORS if not names or name in names)


def configure_arguments(variant: Variant, gcs: tuple[str, ...]) -> list[str]:
    """What this variant adds to configure's arguments."""
    arguments = [
        f"--with-debug-level={variant.debug_level}",
        # In libjvm.so itself: the harness and llvm-symbolizer read them there.
        "--with-native-debug-symbols=internal",
    ]
    absent = [feature for name, feature in COLLECTORS.items() if name not in gcs]
    if absent:
        arguments.append(f"--with-jvm-features={','.join(f'-{feature}' for feature in absent)}")
    if variant.sanitized:
        arguments += ["--enable-asan", f"--with-extra-cxxflags={_ASAN}"]
    return arguments


def flag_files(variant: Variant) -> dict[str, Path]:
    """The option of each list that the variant is compiled with, and the list."""
    files = {}
    if variant.coverage:
        files["-fsanitize-coverage-ignorelist"] = FLAGS / "coverage-ignorelist.txt"
    if variant.sanitized or variant.undefined:
        files["-fsanitize-ignorelist"] = FLAGS / "ubsan-ignorelist.txt"
    return files


def write_flags(variant: Variant, build: Path) -> None:
    """Writes FLAGS_FILE and the lists it names into the build folder.

    A list has its content's hash in its name, so that make (and ccache) see a changed list as a
    changed command, and only the walkers' files are compiled again.
    """
    options: list[str] = []
    options += _COVERAGE if variant.coverage else ()
    options += _UBSAN if variant.sanitized or variant.undefined else ()
    options += _RECOVER if variant.sanitized else ()
    for option, path in flag_files(variant).items():
        content = path.read_bytes()
        name = f"{path.stem}-{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"
        write_if_different(build / name, content)
        options.append(f"{option}={build / name}")
    text = (
        "# Line tables only.\n"
        "CFLAGS_DEBUG_SYMBOLS := $(patsubst -g,-g1,$(CFLAGS_DEBUG_SYMBOLS))\n"
        f"FRAMESTORM_WALKER_CXXFLAGS := {' '.join(options or _NOTHING)}\n"
    )
    write_if_different(build / FLAGS_FILE, text.encode())


def flags_digest(variant: Variant) -> str:
    """Changes with the lists and with what this module passes."""
    whole = hashlib.sha256(repr((_COVERAGE, _NOTHING, _UBSAN, _RECOVER, _ASAN, variant)).encode())
    for option, path in flag_files(variant).items():
        whole.update(option.encode() + path.read_bytes())
    return whole.hexdigest()
