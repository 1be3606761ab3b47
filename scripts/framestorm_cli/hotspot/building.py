"""From a source to a finished JDK folder: additions, configure, make, assembly."""

import hashlib
import os
import shutil
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import packages, run_folder, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import (
    additions,
    boot,
    debian,
    folder,
    progress,
    running,
    sources,
    variants,
)
from framestorm_cli.hotspot.additions import Additions, PatchedTree
from framestorm_cli.hotspot.errors import writing
from framestorm_cli.hotspot.sources import Source
from framestorm_cli.hotspot.variants import Variant
from framestorm_cli.jdks import store
from framestorm_cli.jdks.jdk import Jdk

# What HotSpot's configure asks for, beside the compiler of the native programs.
PACKAGES = (
    "autoconf",
    "ccache",
    "clang-19",
    "file",
    "libasound2-dev",
    "libclang-rt-19-dev",
    "libcups2-dev",
    "libfontconfig-dev",
    "libx11-dev",
    "libxext-dev",
    "libxrandr-dev",
    "libxrender-dev",
    "libxt-dev",
    "libxtst-dev",
    "lld-19",
    "make",
    "patchelf",
    "unzip",
    "zip",
)
# Of a whole image: Debian's tarballs are without the libraries that OpenJDK's source has copies of.
IMAGE_PACKAGES = (
    "libgif-dev",
    "libharfbuzz-dev",
    "libjpeg-dev",
    "liblcms2-dev",
    "libpcsclite-dev",
    "libpng-dev",
    "pkg-config",
    "zlib1g-dev",
)
_SYSTEM_LIBRARIES = (
    *(
        f"--with-{name}=system"
        for name in ("giflib", "harfbuzz", "lcms", "libjpeg", "libpng", "zlib")
    ),
    "--with-extra-cflags=-I/usr/include/PCSC",
)
CC, CXX = "clang-19", "clang++-19"
# Free disk that a build needs, bytes: the unpacked source, a build folder, a finished JDK.
ROOM_TREE, ROOM_BUILD, ROOM_HOME = 1 << 30, 3 << 30, 1 << 30
_FORMAT = 1  # of a finished JDK folder: a higher number makes all of them anew
_CONFIGURED = "framestorm_configured"
_SOURCE_FOLDERS = ("share", "os/linux", "os/posix", "cpu/x86", "os_cpu/linux_x86")


@dataclass(frozen=True)
class Request:
    """What `jdk build` is asked for."""

    source: str = sources.DEFAULT
    boot_jdk: Path | None = None
    variant: str = variants.DEFAULT
    gcs: tuple[str, ...] = ()
    jobs: int | None = None


def ensure(request: Request) -> Path:
    """The finished JDK for a request: the one that is there, or a new one. Raises FramestormError."""
    with writing(store.folder()):
        build = build_of(request)
        home = build.home()
        if store.read(home) is None:
            with build.locked() as lock:
                home = build.home()
                if store.read(home) is None:
                    home = build.make(lock)
        store.used(home)
    return home


def build_of(request: Request, added: Additions | None = None) -> "Build":
    """What a request comes to; what a build needs is downloaded and installed. `added`: instead of
    harness/hotspot's. Raises FramestormError."""
    variant = variants.named(request.variant)
    gcs = variants.collectors(request.gcs)
    cache = store.folder()
    cache.mkdir(parents=True, exist_ok=True)
    source = sources.resolve(request.source, cache / "downloads")
    _check_variant(variant, source)
    boot_jdk = boot.choose(request.boot_jdk, source.version)
    packages.ensure(PACKAGES)
    return Build(source, boot_jdk, variant, gcs, request.jobs or os.cpu_count() or 1, added)


def _check_variant(variant: Variant, source: Source) -> None:
    """Raises FramestormError for one whose coverage would need the additions, which do not fit."""
    added = additions.load()
    if added.fit(source.version.feature) or variant.name == variants.PLAIN:
        return
    known = ", ".join(map(str, added.jdk))
    raise FramestormError(
        f"--source is of JDK {source.version}; framestorm's walkers and its coverage are written for the "
        f"source of JDK {known}. --variant {variants.PLAIN} builds it without them. To bring them to another "
        "release: `jdk` and the anchors in harness/hotspot/edits.toml, and docs/reference/stack-walkers.md "
        "for the names of HotSpot they use"
    )


class Build:
    """One variant of one source with one boot JDK. make() needs the tree's lock to be held."""

    def __init__(
        self,
        source: Source,
        boot_jdk: Jdk,
        variant: Variant,
        gcs: tuple[str, ...],
        jobs: int,
        added: Additions | None = None,
    ) -> None:
        self.source = source
        self.boot_jdk = boot_jdk
        self.variant = variant
        self.gcs = gcs
        self.jobs = jobs
        added = added or additions.load()
        # A JDK of another release has the walkers that it is shipped with.
        self.added = added if added.fit(source.version.feature) else additions.NONE
        self.compiler = _compiler_version()
        some = "" if gcs == variants.collectors(()) else "-" + "-".join(gcs)
        self.name = variant.name + some
        # Variants that differ in the walkers' flags only share a tree: a switch compiles those again.
        self.configured = variant.configured + some
        self.tree_name = f"{source.key[:12]}-{self.configured}"
        self.tree = store.folder() / "trees" / self.tree_name
        self.patched = PatchedTree(self.tree / "source", self.tree / "originals")
        self.folder = self.tree / "build"
        self._lock: int | None = None
        self.drop_in = boot.same_version(boot_jdk, source.version)
        self.image_of_debian = not self.drop_in and source.asked.startswith(debian.PREFIX)
        # As it is now: the checkout may change while a build runs.
        self.key = self._key()

    def _key(self) -> str:
        """Of everything that shapes the finished JDK."""
        parts = (
            _FORMAT,
            self.source.content,
            self.added.digest(),
            variants.flags_digest(self.variant),
            # Where compiled objects are kept shapes nothing.
            [a for a in self.configure_arguments() if not a.startswith("--with-ccache-dir=")],
            self.compiler,
            self.boot_jdk.version,
            hashlib.sha256(folder.options_source()).hexdigest() if self.variant.sanitized else "",
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def home(self) -> Path:
        return store.home_of(self.variant.name, str(self.source.version), self.key)

    def locked(self) -> AbstractContextManager[int]:
        """The tree's lock: its descriptor."""
        return steps.locked(f"jdk-{self.tree_name}", f"building JDK {self.source.version}")

    def library(self, lock: int) -> Path:
        """Builds libjvm.so alone; where it is in the tree until the next build there. `lock` as of make()."""
        self._prepare(lock)
        return self._libjvm()

    def make(self, lock: int) -> Path:
        """Builds and assembles. What is interrupted goes on from there the next time.

        `lock` is the descriptor of the tree's lock, which make inherits.
        """
        began = time.monotonic()
        self._prepare(lock)
        base = self._base()
        return self._assemble(base, self._libjvm(), began)

    def _libjvm(self) -> Path:
        self._build("hotspot")
        return self.folder / "support" / "modules_libs" / "java.base" / "server" / "libjvm.so"

    def _prepare(self, lock: int) -> None:
        """Makes the tree's copy of the source current."""
        self._lock = lock
        self._check_room()
        if self.image_of_debian:
            packages.ensure(IMAGE_PACKAGES)
        self.tree.mkdir(parents=True, exist_ok=True)
        sources.bring(self.source, self.patched)
        if self.source.folder is not None and (
            sources.content_of_tree(self.source.folder) != self.source.content
        ):
            raise FramestormError(f"{self.source.folder} changed while it was read: run this again")
        self.patched.apply(self.added)

    def configure_arguments(self) -> list[str]:
        """All of configure's arguments."""
        version = self.boot_jdk.version if self.drop_in else f"{self.source.version}-framestorm"
        return [
            "--with-toolchain-type=clang",
            f"CC={shutil.which(CC)}",
            f"CXX={shutil.which(CXX)}",
            f"--with-boot-jdk={self.boot_jdk.home}",
            "--enable-ccache",
            f"--with-ccache-dir={store.folder() / 'ccache'}",
            "--disable-warnings-as-errors",
            # Ends with make, instead of lingering after it.
            "--disable-javac-server",
            f"--with-version-string={version}",
            *(_SYSTEM_LIBRARIES if self.image_of_debian else ()),
            *variants.configure_arguments(self.variant, self.gcs),
        ]

    def _base(self) -> Path:
        """The files of the JDK that are not libjvm: the boot JDK's, or those of an image built here."""
        home = f"{self.boot_jdk.home}{self.boot_jdk.version}"
        origin = (
            home if self.drop_in else self.source.content,
            (self.compiler, folder.options_source()) if self.variant.sanitized else None,
        )
        base = store.folder() / "bases" / hashlib.sha256(repr(origin).encode()).hexdigest()[:12]
        if base.exists():
            return base
        base.parent.mkdir(parents=True, exist_ok=True)
        if self.drop_in:
            return self._copy_base(self.boot_jdk.home, base)
        # Without sanitizers, whatever the variant: its programs have to run while it is built.
        plain, every = variants.VARIANTS[variants.PLAIN], variants.collectors(())
        image = Build(self.source, self.boot_jdk, plain, every, self.jobs)
        if image.tree_name == self.tree_name:
            return self._copy_base(self._image(), base)
        with image.locked() as lock:
            image._prepare(lock)
            return self._copy_base(image._image(), base)

    def _image(self) -> Path:
        self._build("jdk-image")
        return self.folder / "images" / "jdk"

    def _copy_base(self, home: Path, base: Path) -> Path:
        with steps.locked(f"jdk-base-{base.name}", "copying the boot JDK"):
            if not base.exists():
                folder.copy_base(home, base, CC if self.variant.sanitized else None)
        return base

    def _build(self, target: str) -> None:
        build = self.folder
        build.mkdir(exist_ok=True)
        self._configure()
        variants.write_flags(self.variant, build)
        log = store.folder() / "logs" / f"{self.tree_name}-{target}.log"
        what = f"building JDK {self.source.version}, {self.name}"
        steps.say(f"{what} with {self.jobs} jobs (log: {log})")
        began = time.monotonic()

        hotspot = self.patched.source / "src" / "hotspot"
        files = sum(1 for name in _SOURCE_FOLDERS for _ in (hotspot / name).rglob("*.cpp"))
        there = any((build / "hotspot" / "variant-server" / "libjvm" / "objs").glob("*.o"))
        with progress.Compiling(f"{what}: {target}", log, 0 if there else files) as news:
            running.run(
                ["make", target, "LOG=info", f"JOBS={self.jobs}", "CONF_CHECK=ignore"],
                what=what,
                log=log,
                advice="Fix what it names and run the command again: it goes on from there. "
                "If that does not help, `scripts/framestorm jdk clean` and start from nothing.",
                cwd=build,
                env=running.environment(),
                news=news,
                lock=self._lock,
            )
        steps.say(f"{what}: {target} done in {time.monotonic() - began:.0f} s")

    def _configure(self) -> None:
        arguments = self.configure_arguments()
        stamp = self.folder / _CONFIGURED
        wanted = repr((arguments, self.compiler, self.boot_jdk.version))
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        what = f"configuring JDK {self.source.version}, {self.name}"
        steps.say(what)
        running.run(
            ["bash", str(self.patched.source / "configure"), *arguments],
            what=what,
            log=store.folder() / "logs" / f"{self.tree_name}-configure.log",
            advice="configure says above what it misses.",
            cwd=self.folder,
            env=running.environment(),
            lock=self._lock,
        )
        stamp.write_text(wanted, encoding="utf-8")

    def _assemble(self, base: Path, library: Path, began: float) -> Path:
        home = self.home()
        home.parent.mkdir(parents=True, exist_ok=True)
        for left in home.parent.glob(f".new-{self.tree_name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = home.parent / f".new-{self.tree_name}-{os.getpid()}"
        log = store.folder() / "logs" / f"{self.tree_name}-assemble.log"
        log.write_bytes(b"")
        try:
            folder.link_base(base, scratch)
            folder.put_libjvm(library, scratch, with_additions=bool(self.added.files))
            folder.put_headers(self.added, scratch)
            folder.finish(scratch, log)
            store.write(
                scratch,
                store.Record(
                    variant=self.variant.name,
                    version=str(self.source.version),
                    source=self.source.asked,
                    boot_jdk=str(self.boot_jdk.home),
                    collectors=self.gcs,
                    key=self.key,
                    tree=self.tree_name,
                    base=base.name,
                    built=time.time(),
                    seconds=round(time.monotonic() - began, 1),
                ),
            )
            if home.exists():  # without a record: nothing that was finished
                shutil.rmtree(home)
            scratch.rename(home)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        store.remove_older(self.variant.name, self.tree_name)
        steps.say(f"{home} is ready, {time.monotonic() - began:.0f} s")
        return home

    def _check_room(self) -> None:
        need = ROOM_HOME
        need += 0 if self.patched.source.exists() else ROOM_TREE
        need += 0 if (self.folder / _CONFIGURED).exists() else ROOM_BUILD
        run_folder.check_cache(store.folder(), need, "this build")


def _compiler_version() -> str:
    try:
        done = steps.captured([CXX, "--version"])
    except FileNotFoundError as error:
        raise FramestormError(
            f"the compiler {CXX} is missing: install the packages clang-19, lld-19, libclang-rt-19-dev"
        ) from error
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""
