"""The same program without walks: whether its failure has anything to do with walking."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from framestorm_cli import native
from framestorm_cli.stress.cell_process import CellProcess
from framestorm_cli.stress.cells import Cell
from framestorm_cli.stress.verdicts import HARMED, UNJUDGED

# The program with nothing that samples it.
Program = Callable[[CellProcess], list[str]]


@dataclass
class Baseline:
    """Runs a program once without the agent, in the settings of the cell that failed."""

    program: Program
    _known: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def judge(self, process: CellProcess, why: str) -> tuple[str, str]:
        """Verdict and reason for a cell whose program failed."""
        cell = process.cell
        key = (cell.workload, cell.gc, cell.jit)
        if key not in self._known:
            self._known[key] = self._run(process, cell)
        failure = self._known[key]
        if failure:
            return UNJUDGED, f"{why}. It {failure} without walks, too"
        return HARMED, f"{why}. Without walks it does not"

    def _run(self, process: CellProcess, cell: Cell) -> str:
        """How the program fails by itself; empty when it does not."""
        folder = process.folder / "without-walks"
        popen = native.start(self.program(process), folder)
        timed = process.seconds is not None and not process.workload.own_clock
        limit = process.seconds if timed and process.seconds else process.limit
        try:
            code = popen.wait(limit)
        except subprocess.TimeoutExpired:
            native.end(popen)
            return "" if timed else "does not end"
        finally:
            for core in folder.glob("core*"):
                core.unlink()
        return "" if code == 0 else f"fails (exit {code})"
