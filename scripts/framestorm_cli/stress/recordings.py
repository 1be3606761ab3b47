"""Recordings of samplers that are no part of framestorm: JFR, and profilers as shipped. Their samples become
a cell's numbers, each trace held to the program's bytecode (stress/recordings).
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm_cli.base import paths, steps
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.findings.records import Json
from framestorm_cli.jdks import jdk as jdks
from framestorm_cli.jdks.jdk import Jdk
from framestorm_cli.native import toolchain
from framestorm_cli.stress.cells import SELF_MODE

# Samples of JFR, of async-profiler and of java-profiler: each has its own of these.
EVENTS = (
    "jdk.ExecutionSample", "jdk.CPUTimeSample", "profiler.WallClockSample",
    "datadog.ExecutionSample", "datadog.MethodSample",
)  # fmt: skip
VERDICTS = ("whole", "cut", "short", "wrong", "misplaced", "none")  # of a trace (Samples.java)
_READER = paths.CHECKOUT / "stress" / "recordings" / "Samples.java"
_READER_JDK = 24  # java.lang.classfile
_READ_SECONDS = 900
_TRACES = "traces.tsv"


def judge(walker: str, shadows: Path, traces: Path) -> Json:
    """A profiler's samples held against the shadow stacks of its handlers (stress/agent/recorded_truth.h).
    Raises FramestormError."""
    command = [str(toolchain.native_program(toolchain.STEP)), "recorded-truth", "--walker", walker]
    done = steps.captured([*command, shadows, traces])
    if done.returncode != 0:
        raise FramestormError(f"the traces of {walker} cannot be judged: {done.stderr.strip()}")
    judged: Json = json.loads(done.stdout)
    return judged


@dataclass(frozen=True)
class Recorded:
    """What a sampler left. `depth`: the most frames that it takes. `whole`: the JVM ended in order."""

    walker: str
    files: Sequence[Path]
    interval_ns: int  # that it was to sample at
    depth: int
    whole: bool
    events: Sequence[str] = EVENTS

    def stats(
        self,
        jdk: Jdk,
        class_path: Sequence[Path],
        cpu_seconds: float,
        wall_seconds: float,
        shadows: Path | None = None,
    ) -> dict[str, Any]:
        """In the fields of stats.jsonl (see stress/agent/README.md).

        `cpu_seconds` is the process's CPU time; compiler and collector threads are in it, so `rate_share`
        is a lower bound. Fields of their own: `verdicts` of the traces, with `examples`; `calls_judged` and
        `calls_unknown` by the bytecode; `other_threads`, samples of threads that run no Java; `failed`,
        `empty`, `biased` (samples taken at a safepoint instead), `frame_types`, `whole`. With `shadows`,
        what the observer noted, traces are judged by that too: `truth`. Raises FramestormError when nothing
        can be read.
        """
        traces = None if shadows is None else shadows.with_name(_TRACES)
        said = self._read(jdk, class_path, traces)
        if said["unreadable"] == len(self.files) and said["samples"] == 0:
            raise FramestormError(
                f"the recording in {self.files[0].parent} cannot be read: {said['problem']}"
            )
        asked = 1e9 / self.interval_ns
        rate = said["taken"] / cpu_seconds if cpu_seconds > 0 else 0.0
        by_code: dict[str, int] = {}
        for entry in said["codes"]:
            by_code[entry["code"]] = by_code.get(entry["code"], 0) + entry["count"]
        verdicts = {name: int(said["verdicts"].get(name, 0)) for name in VERDICTS}
        broken = verdicts["wrong"] + verdicts["misplaced"]
        truth: Json | None = None
        if shadows is not None and traces is not None:
            judged = judge(self.walker, shadows, traces)
            truth, said["examples"] = judged["truth"], judged["examples"]
            by_truth = truth["walkers"][self.walker]
            broken = by_truth["wrong"] - by_truth["verdicts"]["short"]
        return {
            "seconds": wall_seconds,
            "ended": "vm-death" if self.whole else None,
            "walker": [self.walker],
            "mode": SELF_MODE,
            "interval_ns": self.interval_ns,
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
                    "at_depth_limit": verdicts["cut"],
                    "truncated": said["truncated"],
                    "ends_compared": said["traces"],
                    "ends_early": verdicts["short"],
                }
            },
            "checks": {
                "call": {
                    "made": said["calls_judged"] + said["calls_unknown"],
                    "broken": broken,
                }
            },
            "findings": broken,
            "contained": 0,
            "threads": {"seen": said["threads"]},
            "truncated": said["truncated"],
            "failed": by_code.get("failed", 0),
            "empty": by_code.get("empty", 0),
            "whole": self.whole and said["unreadable"] == 0,
            "verdicts": verdicts,
            **({} if truth is None else {"truth": truth}),
            **{
                name: said[name]
                for name in (
                    "biased", "frame_types", "examples", "calls_judged", "calls_unknown", "other_threads",
                )
            },
        }  # fmt: skip

    def _read(
        self, jdk: Jdk, class_path: Sequence[Path], traces: Path | None = None
    ) -> dict[str, Any]:
        # A stock JDK of at least that version reads it: an instrumented one is slow, and may not start.
        least = max(jdk.feature, _READER_JDK)
        reader = next((other for other in jdks.usable() if other.feature >= least), None)
        if reader is None:
            raise FramestormError(
                f"recordings of {jdk} are read by a JDK {least} or later, and none is installed"
            )
        java = reader.home / "bin" / "java"
        command = [
            str(java), str(_READER), ",".join(self.events), str(self.depth), str(jdk.home),
            ":".join(map(str, class_path)), str(traces or ""), *map(str, self.files),
        ]  # fmt: skip
        folder = self.files[0].parent
        try:
            done = steps.captured(command, timeout=_READ_SECONDS)
            found: dict[str, Any] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise FramestormError(
                f"{java} could not read the recording in {folder}: {error}"
            ) from error
        found["problem"] = (done.stderr.strip().splitlines() or [""])[-1]
        return found
