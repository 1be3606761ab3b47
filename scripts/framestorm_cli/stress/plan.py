"""What a run is to do, as it is written down before its first cell, for --resume."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from framestorm_cli.base import files
from framestorm_cli.base.errors import FramestormError
from framestorm_cli.native import jvm_modes
from framestorm_cli.profilers.outside import OutsideWalker
from framestorm_cli.stress.cells import Cell

PLAN = "plan.json"
START_LIMIT = 60.0  # seconds a cell may take beside its sampling, on a busy machine
# The same for a benchmark of Renaissance: it ends with an iteration, which may take half a minute by
# itself, and several times that when it is sampled. Instrumented programs are as slow at their start.
BENCHMARK_LIMIT = 300.0
SLOWNESS = 4.0  # times its sampling


@dataclass(frozen=True)
class Plan:
    """Cells in their order, and what they have in common."""

    cells: tuple[Cell, ...]
    seconds: float | None  # of each cell; None: as many `iterations` as are asked for
    iterations: int | None
    limit: float  # seconds of wall time after which a cell hangs
    seed: int
    threads: str
    parallel: int
    jdk_home: str
    jdk_version: str
    libjvm_build_id: str
    jvm_args: tuple[str, ...] = ()
    plugin: str = ""
    renaissance: str = ""
    truth: bool = False  # samples are held against shadow stacks
    truth_classes: str = ""  # which ones keep them; empty: all but the JDK's
    truth_share: float = 1.0  # of their methods
    profilers: Mapping[str, OutsideWalker] = field(
        default_factory=dict
    )  # by the walker of their cells
    gc_flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(jvm_modes.GCS))
    jit_flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(jvm_modes.JITS))
    format: Literal[1] = 1

    def cell_seed(self, number: int) -> int:
        return self.seed + number

    def vm_flags(self, cell: Cell) -> tuple[str, ...]:
        return (*self.gc_flags[cell.gc], *self.jit_flags[cell.jit], *self.jvm_args)

    def write(self, out: Path) -> None:
        files.write_json(out / PLAN, self)

    @staticmethod
    def read(out: Path) -> "Plan":
        """Raises FramestormError when the folder is not one that a run can be resumed in."""
        try:
            return msgspec.json.decode((out / PLAN).read_bytes(), type=Plan)
        except msgspec.ValidationError as error:
            raise FramestormError(f"{out / PLAN} is damaged ({error}): start a new run") from error
        except (OSError, msgspec.DecodeError) as error:
            raise FramestormError(
                f"{out} has no {PLAN} of `framestorm stress`: --resume takes the folder of an earlier run"
            ) from error


def default_limit(seconds: float | None, *, benchmarks: bool, truth: bool = False) -> float:
    if seconds is None:
        return 30 * START_LIMIT
    return (BENCHMARK_LIMIT if benchmarks or truth else START_LIMIT) + SLOWNESS * seconds


def cores() -> int:
    return len(os.sched_getaffinity(0))
