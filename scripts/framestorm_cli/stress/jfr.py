"""JFR as a walker: what its samplers are started with under a workload, and where their recordings are.

JFR walks by itself: no other walker is in the process. What is left to see from outside is crashes (exit
status and hs_err, as for any cell), samples that were lost or failed, and the traces (recordings.py).
"""

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.stress.recordings import Recorded

EXECUTION = "jfr-execution"
CPU_TIME = "jfr-cpu-time"
WALKERS = (EXECUTION, CPU_TIME)
_MILLISECOND = 1_000_000
_DEPTH = 64  # JFR's default; more frames than that: truncated
_MOST_DEPTH = 2048
_CPU_TIME_JDK = 25
_MOST_BYTES = 4 << 30  # JFR throws the oldest away beyond that; its own default is 250 MB


# Name of the event, and of its setting that is the rate.
_EVENTS = {
    EXECUTION: ("jdk.ExecutionSample", "period"),
    CPU_TIME: ("jdk.CPUTimeSample", "throttle"),
}


def excluded(walker: str, jdk: Jdk) -> str | None:
    """Why this JDK has no such sampler; None when it has."""
    if walker == CPU_TIME and jdk.feature < _CPU_TIME_JDK:
        return f"{CPU_TIME} needs JDK {_CPU_TIME_JDK} or later, {jdk} is {jdk.feature}"
    modules = jdks.read_release(jdk.home).get("MODULES")
    if modules is not None and "jdk.jfr" not in modules.split():
        return f"{walker}: {jdk} has no module jdk.jfr"
    return None


def delivered_interval(walker: str, interval_ns: int) -> int:
    """The interval JFR takes for what is asked: jdk.ExecutionSample has whole milliseconds, at least 1."""
    if walker == EXECUTION:
        return max(1, -(-interval_ns // _MILLISECOND)) * _MILLISECOND
    return interval_ns


@dataclass(frozen=True)
class Recording:
    """What a cell records, in the folder it runs in."""

    walker: str
    folder: Path
    interval_ns: int  # as asked for
    depth: int = _DEPTH

    @property
    def _file(self) -> Path:
        return self.folder / "recording.jfr"

    @property
    def _repository(self) -> Path:
        return self.folder / "jfr-repository"

    def start(self) -> list[str]:
        """Writes JFR's settings and returns the JVM's arguments. Raises FramestormError."""
        if self.walker not in WALKERS:
            raise FramestormError(f"there is no JFR walker {self.walker}: {', '.join(WALKERS)}")
        if not 1 <= self.depth <= _MOST_DEPTH:
            raise FramestormError(f"JFR takes a depth of 1 to {_MOST_DEPTH}, not {self.depth}")
        self.folder.mkdir(parents=True, exist_ok=True)
        for stale in self._recorded():
            stale.unlink()
        settings = self.folder / "framestorm.jfc"
        settings.write_text(self._settings(), encoding="utf-8")
        # Quoted: a comma in a path would end it.
        start = (
            f'settings="{settings}",filename="{self._file}",dumponexit=true,maxsize={_MOST_BYTES}'
        )
        options = f'repository="{self._repository}",stackdepth={self.depth}'
        return [
            f"-XX:StartFlightRecording:{start}",
            f"-XX:FlightRecorderOptions:{options}",
            "-Xlog:jfr+startup=error",
        ]

    def _settings(self) -> str:
        event, rate = _EVENTS[self.walker]
        if self.walker == EXECUTION:
            value = f"{delivered_interval(self.walker, self.interval_ns) // _MILLISECOND} ms"
        else:
            value = f"{self.interval_ns}ns"
        lines = [(event, "enabled", "true"), (event, rate, value)]
        if self.walker == CPU_TIME:
            lines.append(("jdk.CPUTimeSamplesLost", "enabled", "true"))
        events = "".join(
            f"<event name={quoteattr(name)}><setting name={quoteattr(key)}>{text}</setting></event>\n"
            for name, key, text in lines
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<configuration version="2.0" label="framestorm">\n{events}</configuration>\n'
        )

    def _recorded(self) -> list[Path]:
        """The recording; of a JVM that died, what JFR saved on the way down, else its chunks."""
        if self._file.exists() and self._file.stat().st_size > 0:
            return [self._file]
        saved = sorted(self.folder.glob("hs_err_pid*.jfr"))
        return saved or sorted(self._repository.rglob("*.jfr"))

    def recorded(self) -> Recorded:
        """Raises FramestormError when there is no recording."""
        files = self._recorded()
        if not files:
            raise FramestormError(
                f"JFR left no recording in {self.folder}: did the JVM start? See its log there"
            )
        interval = delivered_interval(self.walker, self.interval_ns)
        whole = files == [self._file]
        events = _EVENTS[self.walker][:1]
        return Recorded(self.walker, files, interval, self.depth, whole, events)
