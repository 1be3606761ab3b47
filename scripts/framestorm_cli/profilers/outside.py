"""A walker that is not the JDK's own: a plugin, or a profiler as it is shipped. What --profiler and
--walker-plugin come to, how a process is told of it, and what is written down for replays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framestorm_cli.base import files, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import names, walkers
from framestorm_cli.profilers import obtaining, table
from framestorm_cli.profilers.table import JVM, OUT

PLUGIN, PROFILER = "plugin", "profiler"  # as --walker names them
_KEPT = ("name", "version", "options", "sha256")


@dataclass(frozen=True)
class OutsideWalker:
    """False when there is none. `%o` in options and JVM arguments is the folder of the process."""

    walker: str = ""  # PLUGIN or PROFILER
    file: str = ""  # the library, or JVM
    name: str = ""
    version: str = ""  # empty: not known, or the JDK's
    options: str = ""
    sha256: str = ""  # of the library
    jvm_args: tuple[str, ...] = ()  # beside those of --jvm-arg

    def __bool__(self) -> bool:
        return bool(self.walker)

    def __str__(self) -> str:
        options = f" ({self.options})" if self.options else ""
        return f"{self.name} {self.version}".strip() + options

    @property
    def profiler(self) -> str:
        """Its name; empty when it is none."""
        return self.name if self.walker == PROFILER else ""

    @property
    def libraries(self) -> tuple[Path, ...]:
        return (Path(self.file),) if self.file and self.file != JVM else ()

    @property
    def spec(self) -> str:
        """FILE[=OPTIONS]."""
        return f"{self.file}={self.options}" if self.options else self.file

    @property
    def sampling(self) -> str:
        """--profiler of `stress`, where it samples programs by itself into a JFR file; empty when its
        options write none and no other ones are known."""
        known = table.BY_NAME.get(self.name)
        if known is not None and known.released is None:
            return self.name
        records = OUT in self.options and ".jfr" in self.options
        by_default = known is not None and self.options == known.options
        options = self.options if records and not by_default else table.sampling_of(self.file)
        return f"{self.file}={options}" if options else ""

    def arguments(self, out: Path) -> list[str]:
        """For a native program that writes into `out`."""
        if not self:
            return []

        option = "--walker-plugin" if self.walker == PLUGIN else "--profiler"
        parts = [option, self.spec]
        for argument in self.jvm_args:
            parts += ["--jvm-arg", argument]
        return [part.replace(OUT, str(out.resolve())) for part in parts]

    def recorded(self) -> dict[str, Any]:
        """As it is kept beside an artifact, for from_recorded(); empty when there is none."""
        if self.walker == PLUGIN:
            return {"walker_plugin": self.spec}
        if not self:
            return {}
        kept = {name: getattr(self, name) for name in _KEPT}
        # Where a known one is, is every machine's own matter.
        return {"profiler": kept if self.name in table.BY_NAME else {**kept, "file": self.file}}


NONE = OutsideWalker()


def plugin(spec: str) -> OutsideWalker:
    """The plugin of FILE[=OPTIONS]; none when that is empty."""
    file, options = walkers.split_plugin(spec)
    return OutsideWalker(PLUGIN, str(file), file.name, options=options) if spec else NONE


def from_recorded(data: Mapping[str, Any]) -> OutsideWalker:
    """What recorded() wrote. Its library need not be here: see again()."""
    kept = data.get("profiler")
    if not isinstance(kept, dict):
        return plugin(str(data.get("walker_plugin") or ""))
    name, version, options, sha256 = (str(kept.get(key) or "") for key in _KEPT)
    return OutsideWalker(PROFILER, str(kept.get("file") or ""), name, version, options, sha256)


def check(walker_plugin: str | None, profiler: str | None) -> None:
    """Raises FramestormError, before anything is set up, for options that name nothing or do not go
    together."""
    walkers.resolve_plugin(walker_plugin)
    if profiler is None:
        return
    if walker_plugin is not None:
        raise FramestormError("--profiler and --walker-plugin do not go together: one at a time")
    name, _, _ = profiler.partition("=")
    if name == JVM or name in table.BY_NAME:
        return
    if "/" not in name and not name.endswith(".so"):
        others = f"; or give the file of an agent library, or {JVM} for what --jvm-arg starts"
        names.known("profiler", [name], table.BY_NAME, others)
    if not Path(name).is_file():
        raise FramestormError(f"profiler {name} does not exist")


def resolve(profiler: str, jdk: Jdk) -> OutsideWalker:
    """--profiler NAME[=OPTIONS], FILE[=OPTIONS] or `jvm`; the library is fetched when it is missing.
    Raises FramestormError."""
    check(None, profiler)
    name, own, options = profiler.partition("=")
    known = table.BY_NAME.get(name)
    if known is None:
        if name == JVM:
            return OutsideWalker(PROFILER, JVM, JVM)
        file = Path(name).resolve()
        sha256 = files.sha256(file)
        return OutsideWalker(PROFILER, str(file), file.name, "", options, sha256)
    if not known.walks_on(jdk.feature):
        raise FramestormError(
            f"--profiler {name} on {jdk}: {known.why_not} (see `scripts/framestorm profilers`)"
        )
    if known.released is None:
        if own:
            raise FramestormError(f"{name} takes no options: give --jvm-arg, and --profiler {JVM}")
        return OutsideWalker(PROFILER, JVM, name, jvm_args=known.jvm_args_on(jdk.feature))
    file = obtaining.library(known)
    options = options if own else known.options
    return OutsideWalker(PROFILER, str(file), name, known.version, options, files.sha256(file))


def with_file(profiler: str, file: str) -> str:
    """--profiler with another library and the same options."""
    name, own, options = profiler.partition("=")
    known = table.BY_NAME.get(name)
    options = known.options if known is not None and not own else options
    return f"{file}={options}" if options else file


def check_walker(walker: str, walker_plugin: str | None, profiler: str | None) -> None:
    """check(), and that --walker means the same. Without --walker, --profiler is enough."""
    asked = walkers.names(walker)
    if asked and (PROFILER in asked) != (profiler is not None):
        raise FramestormError("--walker profiler and --profiler NAME go together")
    walkers.plugin_path(asked, walker_plugin)
    check(walker_plugin, profiler)


def given(walker_plugin: str | None, profiler: str | None, jdk: Jdk) -> OutsideWalker:
    """What the two options mean on a JDK. Raises FramestormError."""
    check(walker_plugin, profiler)
    return resolve(profiler, jdk) if profiler else plugin(walkers.resolve_plugin(walker_plugin))


def again(
    was: OutsideWalker, walker_plugin: str | None, profiler: str | None, jdk: Jdk
) -> OutsideWalker:
    """What an artifact was recorded with, for a replay. What an option names is taken instead, with the
    recorded options unless it has its own. Raises FramestormError when it is not to be had here."""
    check(walker_plugin, profiler)
    if walker_plugin is not None:
        recorded = was.spec if was.walker == PLUGIN else ""
        return plugin(walkers.replaced_plugin(recorded, walker_plugin))
    if profiler is not None:
        found = resolve(profiler, jdk)
        keeps = was.walker == PROFILER and was.options and "=" not in profiler
        return replace(found, options=was.options) if keeps else found
    if was.walker != PROFILER:
        return was
    known = table.BY_NAME.get(was.name)
    if known is not None and known.version == was.version:
        found = replace(resolve(was.name, jdk), options=was.options)
    elif was.file == JVM:
        return was
    elif was.file and Path(was.file).is_file():
        found = replace(was, sha256=files.sha256(Path(was.file)))
    else:
        raise FramestormError(
            f"the artifact was recorded with the profiler {was}, which is not here: give it, or another "
            "version, with --profiler FILE or NAME"
        )
    if was.sha256 and found.sha256 != was.sha256:
        steps.say(f"{found.file} is not the file that was recorded: its SHA-256 differs")
    return found
