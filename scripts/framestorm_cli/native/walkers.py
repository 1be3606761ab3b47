"""The walkers and the fuzz targets, as the native programs know them, and which of them a JDK has."""

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.native import processes


@dataclass(frozen=True)
class Walker:
    """A row of the table in harness/input/walker_table.h."""

    name: str
    description: str
    symbol: str  # its entry point in libjvm; empty: it needs none
    origin: str  # jdk, added (to the JDKs of `jdk build`), shared-object
    needs_running_vm: bool
    comparable: bool  # gives traces of threads that run, as others do; not so JFR's two stages
    same_thread: bool
    separate_thread: bool

    @property
    def samples(self) -> bool:
        """Whether it walks threads where a signal found them."""
        return self.comparable or self.origin == "shared-object"

    def walks_in(self, mode: str) -> bool:
        return self.same_thread if mode == "same-thread" else self.separate_thread

    def why_missing(self, libjvm: Path) -> str:
        """Empty when the JDK has it."""
        if not self.symbol or elf.exports(libjvm, self.symbol):
            return ""
        what = f"libjvm.so does not export {self.symbol}"
        return f"{what} (see `framestorm jdk build`)" if self.origin == "added" else what


@dataclass(frozen=True)
class Table:
    names: Mapping[str, Any]  # all names of the text form
    walkers: Mapping[str, Walker]
    targets: Mapping[str, Sequence[str]]  # the walkers that each can be used on

    def added(self) -> tuple[str, ...]:
        """The walkers that harness/hotspot adds to HotSpot; not those of HotSpot's own code, which it
        only lets be called."""
        return tuple(
            name
            for name, walker in self.walkers.items()
            if walker.origin == "added" and walker.comparable
        )

    def samplers(self, libjvm: Path) -> list[str]:
        """Those that the JDK has and that can sample; but plugins, which are not the JDK's."""
        return [
            name
            for name, walker in self.walkers.items()
            if walker.samples
            and walker.origin != "shared-object"
            and not walker.why_missing(libjvm)
        ]

    def usable_targets(self, libjvm: Path, walker: str = "") -> tuple[list[str], dict[str, str]]:
        """All targets that the JDK (and --walker) has a walker for, and why it has none for the
        others."""
        wanted = set(names(walker))
        usable, left_out = [], {}
        for target, fitting in self.targets.items():
            why = [self.walkers[name].why_missing(libjvm) for name in fitting]
            if wanted and not wanted & set(fitting):
                left_out[target] = f"--walker {walker} is none of {', '.join(fitting)}"
            elif all(why):
                left_out[target] = why[0]
            else:
                usable.append(target)
        return usable, left_out


@functools.cache
def table(native: Path, plugin: str = "") -> Table:
    """What the framestorm-native at this path says; of `plugin` (FILE[=OPTIONS]) what it declares. Raises
    FramestormError."""
    more = ["--walker-plugin", plugin] if plugin else []
    said = json.loads(processes.query([native, "names", *more]))
    return Table(
        said,
        {row["name"]: Walker(**row) for row in said["walker_table"]},
        {row["name"]: tuple(row["walkers"]) for row in said["targets"]},
    )


def names(walker: str) -> tuple[str, ...]:
    """The names that --walker lists."""
    return tuple(name for name in walker.split(",") if name)


def plugin_path(wanted: Collection[str], plugin: str | None) -> str:
    """resolve_plugin() of what was given; `wanted`: the walkers asked for. Raises FramestormError unless
    both name a plugin or neither."""
    if ("plugin" in wanted) != (plugin is not None):
        raise FramestormError("--walker plugin and --walker-plugin FILE go together")
    return resolve_plugin(plugin)


def split_plugin(plugin: str) -> tuple[Path, str]:
    """File and options of FILE[=OPTIONS] (plugin_spec() of harness/walkers/plugin.cpp): a file that has a
    = in its name can be given without options."""
    file, _, options = ("", "", "") if Path(plugin).is_file() else plugin.partition("=")
    return Path(file or plugin), options


def resolve_plugin(plugin: str | None) -> str:
    """FILE[=OPTIONS] with the file's whole path, as it is recorded; empty without one. Raises
    FramestormError when there is no such file."""
    if not plugin:
        return ""
    file, options = split_plugin(plugin)
    if not file.is_file():
        raise FramestormError(f"walker plugin {file} does not exist")
    return f"{file.resolve()}={options}" if options else str(file.resolve())


def replaced_plugin(recorded: str, given: str | None) -> str:
    """What to replay with: `given`, if anything, and without options of its own with the recorded ones.
    Raises FramestormError."""
    if not given:
        return recorded
    options = split_plugin(recorded)[1]
    own = split_plugin(given)[1]
    return resolve_plugin(given if own or not options else f"{given}={options}")
