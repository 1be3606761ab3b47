"""Everything the native side needs before it can run: packages, programs, Java victims.

A second start finds all of it in place: one dpkg-query, one `ninja` with nothing to do, one stat.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import packages, paths, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import choosing
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import java_sources
from framestorm_cli.native.java_sources import Part

NATIVE = "framestorm-native"
STEP = "framestorm-step"
FUZZING = (*paths.TARGETS, NATIVE)  # all that fuzzing and its replays start
PROGRAMS = (*FUZZING, STEP)
_JAVA = paths.CHECKOUT / "harness" / "victim" / "java"
BUILD_ROOM = 400 << 20  # bytes below the cache folder, checked before the first build


@dataclass(frozen=True)
class Toolchain:
    """Programs and victims for one JDK under test."""

    bin: Path
    classes: Path
    jdk: Jdk

    def program(self, name: str) -> Path:
        """Path of a native program. Raises FramestormError when the build did not make it."""
        path = self.bin / name
        if not path.exists():
            raise FramestormError(f"native program {path} is missing: was the build interrupted?")
        return path


def prepare(jdk_option: Path | None, programs: tuple[str, ...] = PROGRAMS) -> Toolchain:
    """All set-up a command that starts a JVM needs, these programs included. Raises FramestormError."""
    jdk = choosing.choose(jdk_option)
    folder = native_programs(jdk, programs)
    return Toolchain(folder, victims(jdk), jdk)


def native_programs(jdk: Jdk | None = None, programs: tuple[str, ...] = PROGRAMS) -> Path:
    """Builds what is out of date of these and returns the folder that they are in.

    FRAMESTORM_BIN names a folder with programs that are used as they are; nothing is built then.
    """
    own = os.environ.get("FRAMESTORM_BIN")
    if own:
        folder = Path(own) / "asan" if jdk is not None and jdk.has_asan else Path(own)
        missing = [name for name in programs if not (folder / name).exists()]
        if missing:
            raise FramestormError(f"FRAMESTORM_BIN={own}: {folder} has no {', '.join(missing)}")
        return folder.resolve()
    packages.ensure()
    if jdk is not None and jdk.has_asan:
        build(tuple(f"{name}-asan" for name in programs), jdk)
        return paths.build() / "bin" / "asan"
    build(programs, jdk)
    return paths.build() / "bin"


def native_program(name: str = NATIVE) -> Path:
    """One program alone, for what needs no JVM; built when it is out of date."""
    return native_programs(programs=(name,)) / name


def headers(jdk: Jdk | None) -> Path:
    """The JNI headers to build with. Those of the newest JDK, not of the one under test: the build
    must not start over with every --jdk."""
    found = [one.include for one in (*jdks.usable(), jdk) if one and one.include]
    if not found:
        packages.ensure([packages.JDK_PACKAGE])
        found = [one.include for one in jdks.usable() if one.include]
    if not found:
        raise FramestormError(
            f"no JDK with include/jvmti.h found: install a full JDK, for example {packages.JDK_PACKAGE}"
        )
    return found[0]


def build(targets: tuple[str, ...], jdk: Jdk | None = None) -> None:
    """cmake and ninja in the cache folder; `targets` empty builds everything."""
    folder = paths.build()
    with steps.locked(folder.name, "building"):
        if not folder.exists():
            run_folder.check_cache(paths.cache(), BUILD_ROOM, "a build")
        _configure(folder, headers(jdk))
        _ninja(folder, targets, what="the native programs", log_name="build")


def build_apart(name: str, targets: tuple[str, ...], options: Sequence[str]) -> Path:
    """The same in a folder of its own in the build, with more options of cmake. Returns the folder."""
    folder = paths.build() / name
    with steps.locked(paths.build().name, "building"):
        _configure(folder, headers(None), options)
        _ninja(folder, targets, what=", ".join(targets), log_name=f"build-{name}")
    return folder


def _ninja(folder: Path, targets: tuple[str, ...], *, what: str, log_name: str) -> None:
    steps.run_logged(
        ["ninja", "-C", str(folder), *targets],
        what=f"building {what}",
        log_name=log_name,
        advice=f"Fix the error, or remove {folder} to build from nothing.",
    )


def product(target: str, file: str, jdk: Jdk | None = None) -> Path:
    """A target's program or shared object, `file` in the build that the native programs are of; built when it
    is out of date. Raises FramestormError."""
    own = os.environ.get("FRAMESTORM_BIN")
    if not own:
        packages.ensure()
        build((target,), jdk)
    # FRAMESTORM_BIN is the folder bin/ of a build.
    root = Path(own).resolve().parent if own else paths.build()
    found = root / file
    if not found.exists():
        raise FramestormError(
            f"{found} is missing: build {target}"
            + (f", or unset FRAMESTORM_BIN ({own})" if own else "")
        )
    return found


def _configure(folder: Path, include: Path, more: Sequence[str] = ()) -> None:
    options = [f"-DFRAMESTORM_JNI_INCLUDE={include}", *more]
    options += [f"-D{name}={value}" for name, value in compiler_launchers().items()]
    key = hashlib.sha256(
        (paths.CHECKOUT / "CMakePresets.json").read_bytes() + "\n".join(options).encode()
    ).hexdigest()
    stamp = folder / "framestorm-configured"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return
    steps.run_logged(
        ["cmake", "--preset", "default", "-B", str(folder), *options],
        what="configuring the native build",
        log_name="configure",
        advice=f"See `scripts/framestorm doctor`, or remove {folder} to start from nothing.",
        cwd=paths.CHECKOUT,
    )
    stamp.write_text(key, encoding="utf-8")


def compiler_launchers() -> dict[str, str]:
    """CMake's variables, by which a checkout that comes again at the same path is not compiled anew though
    its files are younger. Empty without ccache, and where the environment has its own launchers."""
    names = [f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX")]
    program = shutil.which("ccache")
    if program is None or any(name in os.environ for name in names):
        return {}
    settings = [f"CCACHE_DIR={paths.cache() / 'ccache'}"]
    # CMakeLists.txt asks for the first. By the second the compiler, which ninja has say what it read, is
    # asked instead of a preprocessor.
    settings += ["CCACHE_SLOPPINESS=pch_defines,time_macros", "CCACHE_DEPEND=1"]
    return dict.fromkeys(names, ";".join(["cmake", "-E", "env", *settings, program]))


def sampled_by_tests(jdk: Jdk) -> Path:
    """Compiles the program that the agent's tests start again and again, and returns the class folder."""
    return java_sources.compiled(
        jdk,
        name="sampled",
        what="the program that the agent's tests sample",
        root=paths.CHECKOUT / "stress" / "agent" / "programs",
        parts=[Part(".", 17, ("--release", "17"))],
    )


def test_environment(jdk: Jdk) -> dict[str, str]:
    """Of ctest's tests on this JDK; compiles the Java classes that they need."""
    return {
        "FRAMESTORM_TEST_JDK": str(jdk.home),
        "FRAMESTORM_TEST_CLASSES": str(victims(jdk)),
        "FRAMESTORM_TEST_SAMPLED": str(sampled_by_tests(jdk)),
    }


def victims(jdk: Jdk) -> Path:
    """Compiles the Java victims for this JDK and returns the class folder."""
    # Else each JVM generates classes for them as it starts.
    every = ["-XDstringConcat=inline"]
    newer = ["-source", str(jdk.feature), "-target", str(jdk.feature), "-Xlint:-options"]
    newer += ["--add-exports", "java.base/jdk.internal.vm=ALL-UNNAMED"]
    return java_sources.compiled(
        jdk,
        name="classes",
        what="the Java victims",
        root=_JAVA,
        parts=[
            Part("common", 17, ("--release", "17", *every)),
            Part("jdk22", 22, (*newer, *every)),
        ],
    )
