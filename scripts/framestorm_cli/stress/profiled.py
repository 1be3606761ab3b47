"""Profilers as shipped in stress: started with the program, sampling by their own timers, and read by their
recordings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.binaries import elf
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.profilers import outside, table
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.profilers.table import INTERVAL, OUT
from framestorm_cli.stress import jfr
from framestorm_cli.stress.recordings import Recorded

DEPTH = 2048  # frames, of async-profiler and of java-profiler
_JFR = "jfr"
# Of java-profiler, which walks only if it is started as dd-trace does it (stress/agent/start_profiler.cpp).
_STARTED_FROM_JAVA = "Java_com_datadoghq_profiler_JavaProfiler_execute0"
_STARTER = "framestorm_start"


def names(given: Sequence[str]) -> list[str]:
    """--profiler: each a list of names, or one name with options, which have commas of their own."""
    return [name for text in given for name in ([text] if "=" in text else text.split(",")) if name]


def resolve(given: Sequence[str], jdk: Jdk) -> tuple[list[str], dict[str, OutsideWalker]]:
    """The walkers of cells, and those of them that are profilers with a library, which is fetched when
    it is missing. Walkers of the JDK may be among them. Raises FramestormError."""
    walkers: list[str] = []
    profilers: dict[str, OutsideWalker] = {}
    for text in names(given):
        name, own, options = text.partition("=")
        known = table.BY_NAME.get(name)
        if name == _JFR:
            if own:
                raise FramestormError(f"{name} takes no options here")
            newest = jfr.excluded(jfr.CPU_TIME, jdk) is None
            walkers.append(jfr.CPU_TIME if newest else jfr.EXECUTION)
            continue
        if known is not None or "/" in name or name.endswith(".so"):
            found = outside.resolve(name, jdk)
            sampling = options if own else table.sampling_of(name)
            if OUT not in sampling:
                raise FramestormError(
                    f"--profiler {text}: its options have to write a recording below {OUT}, such as "
                    f"file={OUT}/samples.jfr"
                )
            profilers[text] = replace(found, options=sampling)
        walkers.append(text)
    return list(dict.fromkeys(walkers)), profilers


@dataclass(frozen=True)
class Recording:
    """What a profiler records of a cell, in the folder it runs in."""

    walker: str
    profiler: OutsideWalker
    folder: Path
    interval_ns: int

    def start(self) -> list[str]:
        """The JVM's arguments."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for stale in self.folder.glob("*.jfr"):
            stale.unlink()
        options = self.profiler.options.replace(INTERVAL, f"{self.interval_ns}ns")
        agent = f"{self.profiler.file}={options.replace(OUT, str(self.folder))}"
        if elf.exports(Path(self.profiler.file), _STARTED_FROM_JAVA):
            agent = f"{toolchain.product(_STARTER, f'stress/agent/lib{_STARTER}.so')}={agent}"
        return [f"-agentpath:{agent}"]

    def recorded(self) -> Recorded:
        """Raises FramestormError when there is no recording."""
        files = sorted(one for one in self.folder.glob("*.jfr") if one.stat().st_size)
        if not files:
            raise FramestormError(
                f"{self.profiler.name} left no recording in {self.folder}: see the log beside it"
            )
        return Recorded(self.walker, files, self.interval_ns, DEPTH, whole=True)
