"""What is judged, and what it is compared with: a source tree, a JDK, a walker's .so, or a profiler."""

from dataclasses import dataclass, replace
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.hotspot import building
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks import store
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain, walkers
from framestorm_cli.native.toolchain import Toolchain
from framestorm_cli.profilers import outside
from framestorm_cli.profilers.outside import OutsideWalker


@dataclass(frozen=True)
class Request:
    """`plugin` or `profiler` with `jdk`: that walker, on that JDK. `source`: a JDK built from it."""

    source: Path | None = None
    jdk: Path | None = None
    plugin: str | None = None  # FILE[=OPTIONS]
    profiler: str | None = None  # the same, or NAME[=OPTIONS]
    variant: str = "sanitized"
    boot_jdk: Path | None = None
    walker: str = ""  # as for fuzz; empty: all


@dataclass(frozen=True)
class Subject:
    """Ready to be walked."""

    what: str  # "change" or "base"
    tools: Toolchain
    source: Path | None = None
    outside: OutsideWalker = outside.NONE
    stressed: Jdk | None = None  # at real speed: not one with sanitizers; None: there is none
    walker: str = ""

    @property
    def has_coverage(self) -> bool:
        """Whether its libjvm counts edges. A plugin's code is elsewhere."""
        record = store.read(self.tools.jdk.home)
        return not self.outside and record is not None and record.variant != "plain"

    def __str__(self) -> str:
        of = self.outside.file or self.source
        return f"{of} ({self.tools.jdk})" if of else str(self.tools.jdk)


def check(request: Request) -> None:
    """Raises FramestormError unless exactly one thing is to be judged."""
    outside.check(request.plugin, request.profiler)
    own = request.plugin or request.profiler
    if request.source is not None and (request.jdk is not None or own):
        raise FramestormError("--jdk-source goes with none of --jdk, --walker-plugin, --profiler")
    if request.source is None and request.jdk is None and not own:
        raise FramestormError(
            "say what is to be judged: --jdk-source DIR, --jdk PATH, or --walker-plugin SO or --profiler SO "
            "(with --jdk)"
        )
    if own and request.walker:
        raise FramestormError("--walker-plugin or --profiler is the walker: leave out --walker")


def base_request(base: Path, request: Request) -> Request:
    """What --base means beside `request`. Raises FramestormError when the two cannot be compared."""
    own = request.plugin is not None or request.profiler is not None
    if own and not walkers.split_plugin(str(base))[0].is_file():
        raise FramestormError(
            f"--base {base} is no .so: that is what --walker-plugin and --profiler compare with"
        )
    if request.profiler is not None:
        return replace(request, profiler=outside.with_file(request.profiler, str(base)))
    if request.plugin is not None:
        return replace(request, plugin=walkers.replaced_plugin(request.plugin, str(base)))
    if (base / "configure").exists():
        if request.source is None:
            raise FramestormError(
                f"--base {base} is a source tree: that is what --jdk-source compares with"
            )
        return replace(request, source=base)
    return replace(request, source=None, jdk=base)


def prepare(request: Request, what: str) -> Subject:
    """Builds what is out of date: of a source tree, the variant to fuzz and the one to stress. Raises
    FramestormError."""
    home = request.jdk
    if request.source is not None:
        home = _built(request, request.variant)
    source = request.source.resolve() if request.source is not None else None
    tools = toolchain.prepare(home)
    walked = outside.given(request.plugin, request.profiler, tools.jdk)
    stressed: Jdk | None = tools.jdk
    if tools.jdk.has_asan:
        stressed = jdks.validate(_built(request, "plain")) if source else _sibling(tools.jdk)
    return Subject(what, tools, source, walked, stressed, walked.walker or request.walker)


def _built(request: Request, variant: str) -> Path:
    return building.ensure(building.Request(str(request.source), request.boot_jdk, variant))


def _sibling(jdk: Jdk) -> Jdk | None:
    """The JDK without sanitizers that was built from the same source."""
    record = store.read(jdk.home)
    found = store.finished("plain")
    same = [home for home, one in found if record is not None and one.source == record.source]
    return jdks.validate(same[0]) if same else None
