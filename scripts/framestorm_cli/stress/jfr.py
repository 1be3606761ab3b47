"""JFR as a walker: its samplers recorded under a workload, and their recordings read as a cell's numbers.

JFR walks by itself: no sample passes an oracle of framestorm's, and no other walker is in the process.
What is left to see from outside is crashes (exit status and hs_err, as for any cell), samples that were
lost or failed, and traces that are truncated.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from framestorm_cli.base import paths
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk

EXECUTION = "jfr-execution"
CPU_TIME = "jfr-cpu-time"
WALKERS = (EXECUTION, CPU_TIME)
_MODE = "jfr"

_READER = paths.CHECKOUT / "stress" / "jfr" / "Samples.java"
_READ_SECONDS = 600
_MILLISECOND = 1_000_000
_DEPTH = 64  # JFR's default; more frames than that: truncated
_MOST_DEPTH = 2048
_CPU_TIME_JDK = 25
_MOST_BYTES = 4 << 30  # JFR throws the oldest away beyond that; its own default is 250 MB


@dataclass(frozen=True)
class _Event:
    name: str
    rate_setting: str


_EVENTS = {
    EXECUTION: _Event("jdk.ExecutionSample", "period"),
    CPU_TIME: _Event("jdk.CPUTimeSample", "throttle"),
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
        event = _EVENTS[self.walker]
        if self.walker == EXECUTION:
            value = f"{delivered_interval(self.walker, self.interval_ns) // _MILLISECOND} ms"
        else:
            value = f"{self.interval_ns}ns"
        lines = [(event.name, "enabled", "true"), (event.name, event.rate_setting, value)]
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

    def stats(self, jdk: Jdk, cpu_seconds: float, wall_seconds: float) -> dict[str, Any]:
        """What the recording shows, in the fields of stats.jsonl (see stress/agent/README.md).

        `cpu_seconds` is the process's CPU time; compiler and collector threads are in it, which JFR does
        not sample, so `rate_share` is a lower bound. Fields of JFR's own: `truncated`, `failed`, `empty`,
        `biased` (samples taken at a safepoint instead), `frame_types`, `whole` (the JVM ended in order).
        Raises FramestormError when there is no recording that can be read.
        """
        files = self._recorded()
        if not files:
            raise FramestormError(
                f"JFR left no recording in {self.folder}: did the JVM start? See its log there"
            )
        said = self._read(files, jdk)
        if said["unreadable"] == len(files) and said["samples"] == 0:
            raise FramestormError(f"JFR's recording in {self.folder} cannot be read")
        interval = delivered_interval(self.walker, self.interval_ns)
        asked = 1e9 / interval
        rate = said["samples"] / cpu_seconds if cpu_seconds > 0 else 0.0
        by_code: dict[str, int] = {}
        for entry in said["codes"]:
            by_code[entry["code"]] = by_code.get(entry["code"], 0) + entry["count"]
        return {
            "seconds": wall_seconds,
            "ended": "vm-death" if files == [self._file] else None,
            "walker": [self.walker],
            "mode": _MODE,
            "interval_ns": interval,
            "threads_asked": "running",
            "ticks": said["samples"] + said["lost"],
            "samples": said["samples"],
            "running_seconds": cpu_seconds,
            "rate_hz": rate,
            "rate_asked_hz": asked,
            "rate_share": min(1.0, rate / asked),
            "lost": {"buffer-full": said["lost"]} if said["lost"] else {},
            "codes": [{"walker": self.walker, **entry} for entry in said["codes"]],
            "latency_ns": {},
            "frames": {
                self.walker: {
                    "count": said["traces"],
                    "sum": said["frames"],
                    "max": said["most_frames"],
                    "at_depth_limit": said["truncated"],
                }
            },
            "checks": {},
            "findings": 0,
            "contained": 0,
            "threads": {"seen": said["threads"]},
            "truncated": said["truncated"],
            "failed": by_code.get("failed", 0),
            "empty": by_code.get("empty", 0),
            "biased": said["biased"],
            "frame_types": said["frame_types"],
            "whole": files == [self._file] and said["unreadable"] == 0,
        }

    def _read(self, files: list[Path], jdk: Jdk) -> dict[str, Any]:
        # A stock JDK of at least that version reads it: an instrumented one is slow, and may not start.
        reader = next((other for other in jdks.usable() if other.feature >= jdk.feature), jdk)
        java = reader.home / "bin" / "java"
        command = [str(java), str(_READER), _EVENTS[self.walker].name, *map(str, files)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_READ_SECONDS
            )
            found: dict[str, Any] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise FramestormError(
                f"{java} could not read JFR's recording in {self.folder}: {error}"
            ) from error
        return found
