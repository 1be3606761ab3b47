"""Which walkers a JDK has, by what its libjvm exports."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf


@dataclass(frozen=True)
class Walker:
    description: str
    symbol: str | None = None  # its entry point in libjvm; None: it needs none
    built_in: bool = False  # into the JDKs of `jdk build` only
    outside_only: bool = False  # walks a thread from another one only

    def why_missing(self, libjvm: Path) -> str:
        """Empty when the JDK has it."""
        if self.symbol is None or elf.exports(libjvm, self.symbol):
            return ""
        what = f"libjvm.so does not export {self.symbol}"
        return f"{what} (see `framestorm jdk build`)" if self.built_in else what


def _instrumented(symbol: str, description: str, *, outside_only: bool = False) -> Walker:
    return Walker(description, symbol, built_in=True, outside_only=outside_only)


WALKERS = {
    "asgct": Walker("AsyncGetCallTrace", "AsyncGetCallTrace"),
    "gst": Walker("JVMTI GetStackTrace, at safepoints only: the reference"),
    "plugin": Walker("a .so with framestorm_walker.h's functions (--walker-plugin FILE)"),
    "asgst": _instrumented("AsyncGetStackTrace", "AsyncGetStackTrace (JEP 435), by the context"),
    "asgst-env": _instrumented(
        "AsyncGetStackTraceOfEnv", "the same by JNIEnv, from another thread only", outside_only=True
    ),
    "asgst-thread": _instrumented(
        "AsyncGetStackTraceOfThread",
        "the same by OS thread id, from another thread only",
        outside_only=True,
    ),
    "asgct2": _instrumented("AsyncGetCallTrace2", "AsyncGetCallTrace2"),
    "asgst-iterator": _instrumented("ASGST_RunWithIterator", "iterators from a context"),
    "asgst-frame": _instrumented(
        "ASGST_RunWithIteratorFromFrame", "iterators from a frame's sp, fp and pc"
    ),
}

# Targets that not every walker is for.
_NEEDED = {"fuzz_iterator": ("asgst-iterator", "asgst-frame")}


def target_problem(target: str, libjvm: Path) -> str:
    """Why the JDK has no walker for a target; empty when it has."""
    why = [WALKERS[name].why_missing(libjvm) for name in _NEEDED.get(target, ())]
    return why[0] if why and all(why) else ""


def usable_targets(libjvm: Path, walker: str = "") -> tuple[Sequence[str], dict[str, str]]:
    """All targets that the JDK (and --walker) has a walker for, and why it has none for the others."""
    wanted = set(names(walker))
    usable, left_out = [], {}
    for target in paths.TARGETS:
        if wanted and target in _NEEDED and not wanted & set(_NEEDED[target]):
            left_out[target] = f"--walker {walker} has no iterator"
        elif problem := target_problem(target, libjvm):
            left_out[target] = problem
        else:
            usable.append(target)
    return usable, left_out


def names(walker: str) -> tuple[str, ...]:
    """The names that --walker lists."""
    return tuple(name for name in walker.split(",") if name)


def plugin_path(wanted: Collection[str], plugin: Path | None) -> str:
    """Where the walker in a shared object is, empty without; `wanted`: the walkers asked for. Raises
    FramestormError unless both name a plugin or neither."""
    if ("plugin" in wanted) != (plugin is not None):
        raise FramestormError("--walker plugin and --walker-plugin FILE go together")
    if plugin is None:
        return ""
    if not plugin.is_file():
        raise FramestormError(f"walker plugin {plugin} does not exist")
    return str(plugin.resolve())
