"""Whether a run can be believed, and its exit code."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from framestorm_cli.stress import distortion, side_by_side
from framestorm_cli.stress.cell_result import CellResult
from framestorm_cli.stress.distortion import Distortion
from framestorm_cli.stress.findings import Found
from framestorm_cli.stress.plan import Plan
from framestorm_cli.stress.runner import INTERRUPTED, StressRun
from framestorm_cli.stress.side_by_side import Line
from framestorm_cli.stress.verdicts import UNJUDGED

_SHOWN = 5  # problems of one sort


@dataclass
class Outcome:
    """A run with all that is known about it."""

    run: StressRun
    found: Found
    problems: list[str] = field(default_factory=list)
    exit: int = 2

    @property
    def plan(self) -> Plan:
        return self.run.plan

    @property
    def out(self) -> Path:
        return self.run.out

    @property
    def results(self) -> list[CellResult]:
        return sorted(self.run.finished, key=lambda one: one.number)

    @cached_property
    def beside(self) -> list[Line]:
        """Samplers side by side; empty for a run without --profiler."""
        return side_by_side.lines(self.results)

    @cached_property
    def distortion(self) -> list[Distortion]:
        """Empty for a run without ground truth."""
        return distortion.of(self.results, self.out)


def judge(run: StressRun, found: Found) -> Outcome:
    """Exit code 0: nothing (new) found, 1: findings, 2: the run is not to be believed. What was found
    at a rate that is too low stands."""
    problems: list[str] = []
    slow = [one for one in run.finished if one.slow]
    unjudged = [one for one in run.finished if one.verdict == UNJUDGED]
    problems += _some([f"could not judge {one.cell}: {one.why}" for one in unjudged], "cells")
    if run.stopped == INTERRUPTED:
        problems.append(f"interrupted: {run.unfinished} of {len(run.plan.cells)} cells did not run")
    elif run.stopped:
        problems.append(run.stopped)
    if not run.finished and not run.stopped:
        problems.append("no cell ran")
    believed = not problems and not (slow and not found.new)
    problems += _some([f"rate too low, {one.cell}: {one.slow}" for one in slow], "cells")
    code = 2 if not believed else (1 if found.new else 0)
    return Outcome(run, found, problems, code)


def _some(lines: list[str], what: str) -> list[str]:
    if len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"... and {len(lines) - _SHOWN} more {what}, see summary.json"]
